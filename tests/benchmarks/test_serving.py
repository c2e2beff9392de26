"""The comparison of engines measures the right answers."""

from pathlib import Path

import pytest

from benchmarks.serving import MARIAN, METHODS, RULE, Turn, open_subject, serve
from tests.benchmarks.weights import distinct
from tests.inference.models import PARAMS, vocabulary
from transformer.core.files import write_json
from transformer.core.task import open_task
from transformer.families.seq2seq.decode import DecodingParams
from transformer.inference.bundle import write_bundle
from transformer.nn.trained import save_trained


@pytest.mark.parametrize("name", ["torch", MARIAN])
def test_a_contender_answers_as_the_bundle_does(name: str, tmp_path: Path) -> None:
    model = distinct()
    trained, vocab, tokens, bundle = (tmp_path / part for part in ("trained", "vocab", "tokens", "bundle"))
    save_trained(trained, model.config, dict(model.state_dict()))
    for side, size in (("source", 40), ("target", 30)):
        vocabulary(size).save(vocab / side / "tokenizer.json")
    split = {"kind": "whitespace", "language": None, "lowercase": False, "html_breaks": "keep"}
    write_json(tokens / "pretokenizer.json", {"source": split, "target": split})
    task, config = open_task("translation"), {"decoding": PARAMS}
    write_bundle(bundle, task, trained=trained, vocab=vocab, tokens=tokens, card="", config=config)
    texts = ["w1 w2 w3", "w4", "w5 w6", "w7 w8 w9 w1"]
    opened, _ = open_subject(bundle)
    expected = opened.translate(texts, decoding=opened.decoding.model_copy(update=RULE | METHODS["greedy"]))
    take = serve(name, bundle, 1)
    for size, clients in ((1, 1), (3, 1), (1, 4)):
        assert take(Turn("greedy", size, clients, texts)).texts == expected


def test_all_contenders_search_by_one_rule_however_the_bundle_decodes() -> None:
    """Each leaf is the rule's, the method's, the same for all, or of what the rule excludes."""
    settings = DecodingParams(**(PARAMS | {"mbr_utility": "bleu"})).model_copy(update=RULE | METHODS["beam 4"])
    assert (settings.candidates, settings.reranks) == (1, False)
    limits, idle = {"max_length", "max_length_extra"}, {"mbr_scale", "temperature", "top_k", "top_p", "seed"}
    assert {*RULE, "method", "beam_size"} | limits | idle == {*DecodingParams.model_fields}
