"""Example code (greedy search for one sentence) for users of a converted translation model without this package."""

import json
from collections.abc import Sequence

from transformer.families.seq2seq.decoding.with_torch import TorchTranslator

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
