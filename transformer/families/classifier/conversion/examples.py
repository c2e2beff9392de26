"""Code for people who have a converted classifier and not this package."""

import json
from collections.abc import Sequence

from transformer.families.classifier.decoding.with_torch import TorchClassifier
from transformer.families.classifier.nn.wide import WideBranch

_HEAD = '''"""Classifies with {library} alone: pip install {packages}, then python example.py in this folder."""

import numpy as np
import {module}

# {text}
# as the ids of vocab/text/tokenizer.json, which the library tokenizers opens; pretokenizer.json says how text is split
# before.
ids = {ids}
classes = {classes}
'''
_ONNX = """
session = onnxruntime.InferenceSession("model/classifier.onnx")
probabilities = session.run(["probabilities"], {{"ids": np.array([ids])}})[0][0]
print(classes[probabilities.argmax()], probabilities.max())
"""
_ONNX_LOGITS = """
session = onnxruntime.InferenceSession("model/classifier.onnx")
logits = session.run(["logits"], {{"ids": np.array([{read}])}})[0][0]
"""
_CTRANSLATE2_LOGITS = """
head = np.load("model/head.npz")
states = np.asarray(ctranslate2.Encoder("model").forward_batch([{put_before} + {read}]).last_hidden_state)[0]
state = {pooled}
logits = head["weight"] @ state + head["bias"]
"""
_WIDE = """
# The n-grams of the text add their weights; the network reads no more than {positions} ids.
wide = np.load("model/wide.npz")
inner, size = np.array(ids[1:-1], dtype=np.int64), int(wide["size"])
keys = [inner]
for length in range(2, int(wide["longest"]) + 1):
    keys.append(size * (keys[-1][:-1] + 1) + inner[length - 1 :])
known = np.isin(wide["keys"], np.concatenate(keys))
logits = logits + wide["weights"][known].sum(axis=0) + wide["bias"]
"""
_VECTORS = """
# So does the direction of the text's vector, which is regressed on those of its n-grams.
own = wide["vector_vectors"][np.isin(wide["vector_places"], np.flatnonzero(known))].astype(np.float32)
if len(own):
    own /= np.linalg.norm(own, axis=1, keepdims=True)
    matrix = own.T @ own + len(own) * wide["vector_matrix"]
    vector = np.linalg.solve(matrix, own.sum(axis=0) - len(own) * wide["vector_shift"])
    logits = logits + vector / np.linalg.norm(vector) @ wide["vector_slopes"]
"""
_ANSWER = """probabilities = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
print(classes[probabilities.argmax()], probabilities.max())
"""
_POOLED = {
    "mean": "states.mean(axis=0)",
    "max": "states.max(axis=0)",
    "first": "states[0]",
    "cls": "states[0]",
    "attention": """(lambda scores: np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum())(
    np.tanh(states @ head["hidden_weight"].T + head["hidden_bias"]) @ head["score"]
) @ states""",
}


def onnx_example(text: str, ids: Sequence[int], classifier: TorchClassifier) -> str:
    """Code that classifies with ONNX Runtime."""
    rest = _ONNX if classifier.wide is None else _ONNX_LOGITS + _wide(classifier.wide) + _ANSWER
    return (_HEAD + rest).format(
        library="ONNX Runtime", packages="onnxruntime numpy", module="onnxruntime", **_values(text, ids, classifier)
    )


def ctranslate2_example(text: str, ids: Sequence[int], classifier: TorchClassifier) -> str:
    """Code that classifies with CTranslate2's encoder and NumPy."""
    config = classifier.model.config
    rest = _CTRANSLATE2_LOGITS + ("" if classifier.wide is None else _wide(classifier.wide)) + _ANSWER
    return (_HEAD + rest).format(
        library="CTranslate2",
        packages="ctranslate2 numpy",
        module="ctranslate2",
        put_before=[config.size] if config.model.pooling == "cls" else [],
        pooled=_POOLED[config.model.pooling],
        **_values(text, ids, classifier),
    )


def _wide(branch: WideBranch) -> str:
    return _WIDE if branch.vectors is None else _WIDE + _VECTORS


def _values(text: str, ids: Sequence[int], classifier: TorchClassifier) -> dict[str, object]:
    positions = classifier.scorer.positions
    ids = [int(number) for number in ids]
    cut = [*ids[: positions - 1], ids[-1]] if len(ids) > positions else ids
    return {
        "text": json.dumps(text[:100], ensure_ascii=False),
        "ids": cut if classifier.wide is None else ids,
        "read": f"ids[: {positions - 1}] + ids[-1:]" if len(ids) > positions and classifier.wide else "ids",
        "positions": positions,
        "classes": json.dumps([*classifier.classes], ensure_ascii=False),
    }
