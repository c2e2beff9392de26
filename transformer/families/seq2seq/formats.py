"""Translation models in other formats: CTranslate2 and ONNX, each with an example that uses it alone."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import onnx
from ctranslate2.specs import TransformerDecoderSpec, TransformerSpec

from transformer.core.files import write_json
from transformer.data.vocabulary import Vocabulary
from transformer.families.seq2seq.interface import Seq2SeqParams
from transformer.families.seq2seq.network import Seq2SeqTransformer
from transformer.families.seq2seq.torch_translator import TorchTranslator
from transformer.inference.ctranslate2_layers import (
    encoder_spec,
    entries,
    fill_embedding,
    fill_layer,
    fill_linear,
    fill_norm,
    save,
    stack_options,
)
from transformer.inference.onnx_layers import (
    BOOLEAN,
    FLOAT,
    INTEGER,
    Attention,
    Graph,
    array,
    counted,
    embedded,
    encoded,
    feed_forward,
    hidden_padding,
    normed,
    quantized,
    residual,
    write_model,
)
from transformer.nn.layers import DecoderLayer

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
for place in range({limit}):
    given = {{"last": [token], "place": [place], "rows": [0], "count": [1]}}
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
    encoder = encoder_spec(params.encoder_layers, params, model.source_embedding, model.encoder)
    spec = TransformerSpec(encoder, decoder)
    spec.config.decoder_start_token = target.specials.begin
    spec.register_source_vocabulary(entries(source))
    spec.register_target_vocabulary(entries(target))
    fill_embedding(decoder, decoder.embeddings, model.target_embedding, params)
    for theirs, ours in zip(decoder.layer, decoder_layers(model), strict=True):
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


PARTS = ("key", "value")


def write_onnx(folder: Path, model: Seq2SeqTransformer, source: Vocabulary, target: Vocabulary, *, int8: bool) -> None:
    """Write both graphs, and the vocabulary entries in id order, to `folder`."""
    for name, graph in (("encoder", encoder_graph(model)), ("decoder", decoder_graph(model, target))):
        write_model(folder / f"{name}.onnx", quantized(graph) if int8 else graph)
    for side, vocabulary in (("source", source), ("target", target)):
        write_json(folder / f"{side}.json", vocabulary.entries(range(vocabulary.size)))


def encoder_graph(model: Seq2SeqTransformer) -> onnx.ModelProto:
    """Return the graph `ids` (N, S) -> `real` (N, S), False at padding; `source.L.key`, `.value`: (N, H, S, D)."""
    graph = Graph("encoder")
    ids = graph.input("ids", INTEGER, ["N", "S"])
    real = graph.add("Not", graph.add("Equal", ids, graph.constant(model.config.source_pad_id, np.int64)))
    positions = counted(graph, ids)
    states = embedded(graph, model.source_embedding, ids, positions)
    states = encoded(graph, model.encoder, states, real, positions)
    graph.output("real", real, BOOLEAN, ["N", "S"])
    heads, width = _sizes(model)
    for number, layer in enumerate(decoder_layers(model)):
        memory = Attention(graph, layer.source_attention).keys_and_values(states)
        for part, value in zip(PARTS, memory, strict=True):
            graph.output(f"source.{number}.{part}", value, FLOAT, ["N", heads, "S", width])
    return graph.model()


def decoder_graph(model: Seq2SeqTransformer, target: Vocabulary) -> onnx.ModelProto:
    """Return the graph of one decoding step: the distribution after one more token of every hypothesis.

    `last` (B,): the token; `place` (1,): its position; `rows` (B,): index of the hypothesis that each row continues,
    among the P of the last step; `past.L.key` and `.value` (P, H, T, D); `real` and `source.L...` are encoder outputs,
    each row shared by B / N adjacent hypotheses; `count` (1,). Outputs: `values` and `tokens` (B, count), most probable
    first; `log_probabilities` (B, V), -inf for padding and begin token, which are never targets; `present.L...`, the
    next past.
    """
    graph = Graph("decoder")
    heads, width = _sizes(model)
    last, place, rows, count = (
        graph.input(name, INTEGER, dims)
        for name, dims in (("last", ["B"]), ("place", [1]), ("rows", ["B"]), ("count", [1]))
    )
    hidden = hidden_padding(graph, graph.input("real", BOOLEAN, ["N", "S"]))
    sources = graph.size("real", 0)
    grouped = graph.add_many("Concat", [sources, graph.integers(-1, model.d_model)], 1, axis=0)[0]
    states = embedded(graph, model.target_embedding, graph.add("Unsqueeze", last, graph.integers(1)), place)
    present = []
    for number, layer in enumerate(decoder_layers(model)):
        past = [graph.input(f"past.{number}.{part}", FLOAT, ["P", heads, "T", width]) for part in PARTS]
        memory = [graph.input(f"source.{number}.{part}", FLOAT, ["N", heads, "S", width]) for part in PARTS]
        target_attention = Attention(graph, layer.attention)
        source_attention = Attention(graph, layer.source_attention)

        def attend_to_target(x: str, attention: Attention = target_attention, past: list[str] = past) -> str:
            new = attention.keys_and_values(x, place)
            kept = [graph.add("Gather", part, rows, axis=0) for part in past]
            both = [graph.add_many("Concat", pair, 1, axis=2)[0] for pair in zip(kept, new, strict=True)]
            present.extend(both)
            return attention.attended(x, both[0], both[1], None, place)

        def attend_to_source(x: str, attention: Attention = source_attention, memory: list[str] = memory) -> str:
            queries = graph.add("Reshape", x, grouped)  # (B, 1, C) -> (N, B / N, C)
            read = attention.attended(queries, memory[0], memory[1], hidden)
            return graph.add("Reshape", read, graph.integers(-1, 1, model.d_model))

        states = residual(graph, layer.attention_residual, states, attend_to_target)
        states = residual(graph, layer.source_residual, states, attend_to_source)
        states = residual(graph, layer.feed_forward_residual, states, partial(feed_forward, graph, layer.feed_forward))
    states = graph.add("Squeeze", normed(graph, model.decoder.norm, states), graph.integers(1))
    bias = array(model.output.bias).copy()
    bias[[target.pad_id, target.begin_id]] = -np.inf
    logits = graph.linear(states, array(model.output.weight), bias)
    log_probabilities = graph.add("LogSoftmax", logits, axis=-1)
    values, tokens = graph.add_many("TopK", [log_probabilities, count], 2, axis=-1)
    graph.output("values", values, FLOAT, ["B", "K"])
    graph.output("tokens", tokens, INTEGER, ["B", "K"])
    graph.output("log_probabilities", log_probabilities, FLOAT, ["B", model.config.target_size])
    for number, value in enumerate(present):
        name = f"present.{number // 2}.{PARTS[number % 2]}"
        graph.output(name, value, FLOAT, ["B", heads, "T_present", width])
    return graph.model()


def decoder_layers(model: Seq2SeqTransformer) -> list[DecoderLayer]:
    """Return the decoder's layers, typed."""
    return [layer for layer in model.decoder.layers if isinstance(layer, DecoderLayer)]


def _sizes(model: Seq2SeqTransformer) -> tuple[int, int]:
    """Return the number of heads and the dimension of a head."""
    params = model.config.model
    assert isinstance(params, Seq2SeqParams)
    return params.heads, params.dimension_of_head
