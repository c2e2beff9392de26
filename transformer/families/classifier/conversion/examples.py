"""Example code for users of a converted classifier who do not have this package."""

import json
from collections.abc import Sequence

import numpy as np

from transformer.encoded.vocabulary import clip
from transformer.families.classifier.decoding.with_torch import TorchClassifier

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
_CTRANSLATE2 = """
head = np.load("model/head.npz")
states = np.asarray(ctranslate2.Encoder("model").forward_batch([{put_before} + ids]).last_hidden_state)[0]
state = {pooled}
logits = head["weight"] @ state + head["bias"]
probabilities = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
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
    """Return code that classifies with ONNX Runtime."""
    return (_HEAD + _ONNX).format(
        library="ONNX Runtime", packages="onnxruntime numpy", module="onnxruntime", **_values(text, ids, classifier)
    )


def ctranslate2_example(text: str, ids: Sequence[int], classifier: TorchClassifier) -> str:
    """Return code that classifies with CTranslate2's encoder and NumPy."""
    config, pooling = classifier.model.config, classifier.model.params.pooling
    return (_HEAD + _CTRANSLATE2).format(
        library="CTranslate2",
        packages="ctranslate2 numpy",
        module="ctranslate2",
        put_before=[config.size] if pooling == "cls" else [],
        pooled=_POOLED[pooling],
        **_values(text, ids, classifier),
    )


def _values(text: str, ids: Sequence[int], classifier: TorchClassifier) -> dict[str, object]:
    return {
        "text": json.dumps(text[:100], ensure_ascii=False),
        "ids": clip(np.array(ids), classifier.scorer.positions).tolist(),
        "classes": json.dumps([*classifier.classes], ensure_ascii=False),
    }
