"""Language models in other formats: CTranslate2 and ONNX, each with an example that uses it alone."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import torch
from ctranslate2.specs import TransformerDecoderModelSpec, TransformerDecoderSpec

from transformer.data.vocabulary import Vocabulary
from transformer.families.language.interface import LanguageParams
from transformer.families.language.network import LanguageTransformer
from transformer.families.language.torch_model import TorchLanguageModel
from transformer.inference.ctranslate2_layers import (
    array,
    entries,
    fill_embedding,
    fill_layer,
    fill_norm,
    save,
    stack_options,
)
from transformer.inference.onnx_export import Input, Tensors, by_layer, exported, flat, memory
from transformer.nn.layout import Cache

_HEAD = '''"""The likeliest tokens with {library} alone: pip install {packages}, then python example.py here."""

import {module}
import numpy as np
from tokenizers import Tokenizer

# A text as the ids of vocab/text/tokenizer.json; pretokenizer.json says how text is split before.
ids = {ids}
tokenizer = Tokenizer.from_file("vocab/text/tokenizer.json")
'''
_ONNX = """
session = onnxruntime.InferenceSession("model/language_model.onnx")
place = {place}  # {meaning}
{before}(found,) = session.run(["log_probabilities"], {given})
for token in found[0].argsort()[::-1][:5]:
    print(tokenizer.id_to_token(int(token)), np.exp(found[0][token]))
"""
_GIVEN = '{"ids": np.array([ids]), "places": np.array([place])}'
_PAST = f"""given = {_GIVEN[:-1]}, "rows": np.array([0])}}
for each in session.get_inputs():
    if each.name.startswith("past."):  # of what was read before: nothing
        given[each.name] = np.zeros((1, each.shape[1], 0, each.shape[3]), np.float32)
"""
_CTRANSLATE2 = """
found = np.asarray(ctranslate2.Generator("model").forward_batch([ids], return_log_probs=True))[0, -1]
for token in found.argsort()[::-1][:5]:  # {meaning}
    print(tokenizer.id_to_token(int(token)), np.exp(found[token]))
"""


def onnx_example(model: TorchLanguageModel, ids: Sequence[int]) -> str:
    """Return code that predicts a token with ONNX Runtime. ids: of a text, from begin to end token."""
    before, given = (_PAST, "given") if model.engine.causal else ("", _GIVEN)
    template = (_HEAD + _ONNX).replace("{before}", _escaped(before)).replace("{given}", _escaped(given))
    return _filled(template, model, ids, library="ONNX Runtime", packages="onnxruntime", module="onnxruntime")


def ctranslate2_example(model: TorchLanguageModel, ids: Sequence[int]) -> str:
    """Return code that predicts the next token with CTranslate2. ids: as in `onnx_example`."""
    return _filled(
        _HEAD + _CTRANSLATE2, model, ids, library="CTranslate2", packages="ctranslate2", module="ctranslate2"
    )


def _filled(template: str, model: TorchLanguageModel, ids: Sequence[int], *, packages: str, **names: str) -> str:
    given = [int(number) for number in ids][: model.engine.positions]
    if model.engine.causal:
        given, meaning = given[:-1] or given, "what follows the text"
        place = len(given) - 1
    else:
        place, meaning = len(given) // 2, "what may stand where the mask is"
        given[place] = model.engine.mask_id
    return template.format(
        ids=json.dumps(given), place=place, meaning=meaning, packages=f"{packages} numpy tokenizers", **names
    )


def _escaped(code: str) -> str:
    return code.replace("{", "{{").replace("}", "}}")


def write_ctranslate2(folder: Path, model: LanguageTransformer, vocabulary: Vocabulary, *, int8: bool) -> None:
    """Write the model to `folder`, which must not exist."""
    params = model.config.model
    assert isinstance(params, LanguageParams)
    decoder = TransformerDecoderSpec(params.layers, with_encoder_attention=False, **stack_options(params))
    fill_embedding(decoder, decoder.embeddings, model.embedding, params)
    for theirs, ours in zip(decoder.layer, model.encoder.layers, strict=True):
        fill_layer(theirs, ours)
    if params.norm == "pre":
        fill_norm(decoder.layer_norm, model.encoder.norm)
    decoder.projection.weight = array(model.output.weight)
    decoder.projection.bias = np.zeros(model.config.entries, dtype=np.float32)
    spec = TransformerDecoderModelSpec(decoder)
    spec.register_vocabulary(entries(vocabulary))
    save(spec, folder, vocabulary, int8=int8)


def language_graph(model: LanguageTransformer) -> onnx.ModelProto:
    """Return the model of `states` (B, S, C) of `ids` (B, S), and of `log_probabilities` (M, V) at `places` (M,) of
    the flattened ids (B * S,).

    Causal: `rows` (B,) of the P texts whose keys and values `past.L.key` and `.value` (P, H, T, D) precede the ids;
    `present.L...` is the next past.
    """
    params = model.config.model
    inputs = {"ids": Input(torch.int64, ["B", "S"]), "places": Input(torch.int64, ["M"])}
    if model.causal:
        inputs["rows"] = Input(torch.int64, ["B"])
        inputs |= memory("past", params.layers, "P", params.heads, "T", params.dimension_of_head)

    def compute(given: Tensors) -> Tensors:
        cache = Cache()
        if model.causal:
            cache.held = dict(enumerate(by_layer("past", given, params.layers)))
            cache.select(given["rows"])
        states = model.read(given["ids"], cache if model.causal else None)
        chosen = model.logits(states.flatten(0, 1).index_select(0, given["places"])).log_softmax(dim=-1)
        return {"states": states, "log_probabilities": chosen} | flat("present", [*cache.held.values()])

    return exported(model, compute, inputs, {"B": 2, "S": 2, "M": 2, "P": 2, "T": 2})
