"""Example code for users of a converted language model who do not have this package."""

import json
from collections.abc import Sequence

from transformer.families.language.decoding.with_torch import TorchLanguageModel

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
