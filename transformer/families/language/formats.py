"""Language models in other formats: CTranslate2 and ONNX, each with an example that uses it alone."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from ctranslate2.specs import TransformerDecoderModelSpec, TransformerDecoderSpec

from transformer.data.vocabulary import Vocabulary
from transformer.families.language.network import LanguageTransformer, OutputTransform
from transformer.families.language.torch_model import TorchLanguageModel
from transformer.inference.ctranslate2_layers import (
    entries,
    fill_embedding,
    fill_layer,
    fill_norm,
    save,
    stack_options,
)
from transformer.inference.onnx_layers import (
    FLOAT,
    INTEGER,
    Graph,
    array,
    counted,
    embedded,
    encoded,
    hidden_later,
    normed,
    stack,
)

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
_PAST = f"""given = {_GIVEN[:-1]}, "place": np.array([0]), "rows": np.array([0])}}
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


PARTS = ("key", "value")


def language_graph(model: LanguageTransformer) -> onnx.ModelProto:
    """Return the graph of a language model; places index the flattened ids (B * S,)."""
    graph = Graph("language_model")
    ids, places = graph.input("ids", INTEGER, ["B", "S"]), graph.input("places", INTEGER, ["M"])
    states = _continued(graph, model, ids) if model.causal else _states(graph, model, ids)
    width = model.config.model.d_model
    chosen = graph.add("Gather", graph.add("Reshape", states, graph.integers(-1, width)), places, axis=0)
    if isinstance(model.transform, OutputTransform):
        linear = model.transform.linear
        chosen = graph.add("Gelu", graph.linear(chosen, array(linear.weight), array(linear.bias)))
        chosen = normed(graph, model.transform.norm, chosen)
    bias = None if model.output.bias is None else array(model.output.bias)
    logits = graph.linear(chosen, array(model.output.weight), bias)
    graph.output("states", states, FLOAT, ["B", "S", width])
    graph.output("log_probabilities", graph.add("LogSoftmax", logits, axis=-1), FLOAT, ["M", model.config.entries])
    return graph.model()


def _states(graph: Graph, model: LanguageTransformer, ids: str) -> str:
    """Return the states (B, S, C) of ids (B, S) with bidirectional attention."""
    real = graph.add("Not", graph.add("Equal", ids, graph.constant(model.config.pad_id, np.int64)))
    positions = counted(graph, ids)
    return encoded(graph, model.encoder, embedded(graph, model.embedding, ids, positions), real, positions)


def _continued(graph: Graph, model: LanguageTransformer, ids: str) -> str:
    """Return the states (B, S, C) of ids (B, S) with causal attention to the past; declares past and present.

    Padding needs no mask: it is at the end, after all real tokens.
    """
    place, rows = graph.input("place", INTEGER, [1]), graph.input("rows", INTEGER, ["B"])
    start, one = graph.add("Squeeze", place), graph.constant(1, np.int64)
    stop = graph.add("Add", start, graph.add("Squeeze", graph.size(ids, 1)))
    positions = graph.add("Range", start, stop, one)
    keys = graph.add("Range", graph.constant(0, np.int64), stop, one)
    params = model.config.model
    heads, width = params.heads, params.dimension_of_head
    past = [
        [graph.input(f"past.{layer}.{part}", FLOAT, ["P", heads, "T", width]) for part in PARTS]
        for layer in range(params.layers)
    ]
    present: dict[str, str] = {}

    def extend(layer: int, key: str, value: str) -> tuple[str, str]:
        kept = (graph.add("Gather", part, rows, axis=0) for part in past[layer])
        both = [graph.add_many("Concat", pair, 1, axis=2)[0] for pair in zip(kept, (key, value), strict=True)]
        present.update({f"present.{layer}.{part}": each for part, each in zip(PARTS, both, strict=True)})
        return both[0], both[1]

    states = embedded(graph, model.embedding, ids, positions)
    states = stack(graph, model.encoder, states, hidden_later(graph, positions, keys), positions, extend)
    for name, each in present.items():
        graph.output(name, each, FLOAT, ["B", heads, "T_present", width])
    return states
