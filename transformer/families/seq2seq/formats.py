"""Translation models in other formats: CTranslate2 and ONNX, each with an example that uses it alone."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from ctranslate2.specs import TransformerDecoderSpec, TransformerSpec

from transformer.core.files import write_json
from transformer.data.vocabulary import Vocabulary
from transformer.families.seq2seq.interface import Seq2SeqParams
from transformer.families.seq2seq.network import DecoderCache, Seq2SeqTransformer
from transformer.families.seq2seq.torch_translator import TorchTranslator
from transformer.inference.ctranslate2_layers import (
    array,
    encoder_spec,
    entries,
    fill_embedding,
    fill_layer,
    fill_linear,
    fill_norm,
    save,
    stack_options,
)
from transformer.inference.onnx_export import Input, Tensors, by_layer, exported, flat, memory, quantized, write_model
from transformer.nn.layers import Encoder
from transformer.nn.layout import selected

_HEAD = '''"""Translates with {library} alone: pip install {packages}, then python example.py in this folder."""

'''
_SOURCE = """
# {text}
# as the pieces of vocab/source/tokenizer.json, which the library tokenizers opens; pretokenizer.json says how text is
# split before.
source = {pieces}
"""
_CTRANSLATE2 = (
    _HEAD
    + "import ctranslate2\n"
    + _SOURCE
    + """
translator = ctranslate2.Translator("model")
result = translator.translate_batch([source], beam_size=1, max_decoding_length={limit})[0]
print(" ".join(result.hypotheses[0]))
"""
)
_ONNX = (
    _HEAD
    + "import json\n\nimport numpy as np\nimport onnxruntime\n"
    + _SOURCE
    + """
entries = {{side: json.load(open(f"model/{{side}}.json", encoding="utf-8")) for side in ("source", "target")}}
encoder, decoder = (onnxruntime.InferenceSession(f"model/{{part}}.onnx") for part in ("encoder", "decoder"))
ids = np.array([[entries["source"].index(piece) for piece in source]])
state = dict(zip([value.name for value in encoder.get_outputs()], encoder.run(None, {{"ids": ids}})))
shapes = {{value.name: value.shape for value in decoder.get_inputs() if value.name.startswith("past.")}}
past = {{name: np.zeros((1, heads, 0, width), np.float32) for name, (_, heads, _, width) in shapes.items()}}
names = [value.name for value in decoder.get_outputs()]
token, pieces = {begin}, []
for _ in range({limit}):
    given = {{"last": [token], "rows": [0], "count": [1]}}
    given = {{name: np.array(value) for name, value in given.items()}}
    made = dict(zip(names, decoder.run(None, given | state | past)))
    token = int(made["tokens"][0, 0])
    if token == {end}:
        break
    pieces.append(entries["target"][token])
    past = {{name: made[name.replace("past", "present")] for name in past}}
print(" ".join(pieces))
"""
)


def ctranslate2_example(text: str, pieces: Sequence[str], translator: TorchTranslator) -> str:
    """Return code that translates with CTranslate2; pieces: of the text, with begin and end token."""
    return _CTRANSLATE2.format(library="CTranslate2", packages="ctranslate2", **_values(text, pieces, translator))


def onnx_example(text: str, pieces: Sequence[str], translator: TorchTranslator) -> str:
    """Return code that translates with ONNX Runtime and NumPy; pieces: of the text, with begin and end token."""
    return _ONNX.format(library="ONNX Runtime", packages="onnxruntime numpy", **_values(text, pieces, translator))


def _values(text: str, pieces: Sequence[str], translator: TorchTranslator) -> dict[str, object]:
    target = translator.vocabularies["target"]
    return {
        "text": json.dumps(text, ensure_ascii=False),
        "pieces": json.dumps([*pieces], ensure_ascii=False),
        "limit": translator.decoding.limit(len(pieces) - 2, translator.generator.positions),
        "begin": target.begin_id,
        "end": target.end_id,
    }


_NEVER = -1e4
"""Output bias of padding and begin token, which our distribution excludes."""


def write_ctranslate2(
    folder: Path, model: Seq2SeqTransformer, source: Vocabulary, target: Vocabulary, *, int8: bool
) -> None:
    """Write the model to `folder`, which must not exist. Its inputs begin and end with our special tokens."""
    params = model.config.model
    assert isinstance(params, Seq2SeqParams)
    decoder = TransformerDecoderSpec(params.decoder_layers, **stack_options(params))
    assert isinstance(model.encoder, Encoder)
    encoder = encoder_spec(params.encoder_layers, params, model.source_embedding, model.encoder)
    spec = TransformerSpec(encoder, decoder)
    spec.config.decoder_start_token = target.specials.begin
    spec.register_source_vocabulary(entries(source))
    spec.register_target_vocabulary(entries(target))
    fill_embedding(decoder, decoder.embeddings, model.target_embedding, params)
    layers: Any = model.decoder.layers
    for theirs, ours in zip(decoder.layer, layers, strict=True):
        fill_layer(theirs, ours)
        attention = ours.source_attention
        fill_linear(theirs.attention.linear[0], attention.query)
        fill_linear(theirs.attention.linear[1], attention.key, attention.value)
        fill_linear(theirs.attention.linear[2], attention.output)
        fill_norm(theirs.attention.layer_norm, ours.source_residual.norm)
    if params.norm == "pre":
        fill_norm(decoder.layer_norm, model.decoder.norm)
    bias = array(model.output.bias).copy()
    bias[[target.pad_id, target.begin_id]] = _NEVER
    decoder.projection.weight, decoder.projection.bias = array(model.output.weight), bias.astype(np.float32)
    save(spec, folder, target, int8=int8)


def onnx_graphs(model: Seq2SeqTransformer, target: Vocabulary) -> dict[str, onnx.ModelProto]:
    """Return the encoder and the decoder."""
    return {"encoder": _encoder(model), "decoder": _decoder(model, target)}


def write_onnx(
    folder: Path, graphs: Mapping[str, onnx.ModelProto], vocabularies: Mapping[str, Vocabulary], *, int8: bool
) -> None:
    """Write both graphs, and the vocabulary entries in id order, to `folder`."""
    for name, graph in graphs.items():
        write_model(folder / f"{name}.onnx", quantized(graph) if int8 else graph)
    for side, vocabulary in vocabularies.items():
        write_json(folder / f"{side}.json", vocabulary.entries(range(vocabulary.size)))


def _encoder(model: Seq2SeqTransformer) -> onnx.ModelProto:
    """Return the model `ids` (N, S) -> `real` (N, S), False at padding; `source.L.key`, `.value`: (N, H, S, D)."""

    def compute(given: Tensors) -> Tensors:
        cache = model.start(given["ids"])
        return {"real": cache.source_mask[:, 0, 0]} | flat("source", cache.source)

    return exported(model, compute, {"ids": Input(torch.int64, ["N", "S"])}, {"N": 2, "S": 2})


def _decoder(model: Seq2SeqTransformer, target: Vocabulary) -> onnx.ModelProto:
    """Return the model of one decoding step: the distribution after one more token of every hypothesis.

    `last` (B,): the token; `rows` (B,): index of the hypothesis that each row continues, among the P of the last step;
    `past.L.key` and `.value` (P, H, T, D); `real` and `source.L...` are encoder outputs, each row shared by B / N
    adjacent hypotheses; `count` (1,). Outputs: `values` and `tokens` (B, count), most probable first;
    `log_probabilities` (B, V), -inf for padding and begin token, which are never targets; `present.L...`, the next
    past.
    """
    params = model.config.model
    assert isinstance(params, Seq2SeqParams)
    layers = params.decoder_layers
    bias = model.output.bias.detach().clone()
    bias[[target.pad_id, target.begin_id]] = -torch.inf

    def compute(given: Tensors) -> Tensors:
        cache = DecoderCache(by_layer("source", given, layers), given["real"][:, None, None])
        cache.held = {
            layer: selected(held, given["rows"]) for layer, held in enumerate(by_layer("past", given, layers))
        }
        states = model.step(given["last"], cache)
        log_probabilities = F.linear(states, model.output.weight, bias).log_softmax(dim=-1)
        count: Any = given["count"].item()
        values, tokens = log_probabilities.topk(count)
        found = {"values": values, "tokens": tokens, "log_probabilities": log_probabilities}
        return found | flat("present", [*cache.held.values()])

    inputs = {name: Input(torch.int64, dims) for name, dims in (("last", ["B"]), ("rows", ["B"]), ("count", [1]))}
    inputs["real"] = Input(torch.bool, ["N", "S"])
    inputs |= memory("source", layers, "N", params.heads, "S", params.dimension_of_head)
    inputs |= memory("past", layers, "P", params.heads, "T", params.dimension_of_head)
    return exported(model, compute, inputs, {"N": 2, "B": 4, "S": 2, "P": 2, "T": 2})
