"""The comparison of engines runs, and its numbers are of the right answers."""

import argparse
from pathlib import Path

import pytest
import torch

from benchmarks.harness import Options
from benchmarks.served import METHODS, RULE
from benchmarks.serving import Pairs, compare, open_subject
from tests.builders import seq2seq
from tests.decoding.models import PARAMS, vocabulary
from transformer.checkpoint.device import Compute
from transformer.checkpoint.trained import save_trained
from transformer.core.errors import UserError
from transformer.core.files import write_json
from transformer.core.schema import Hardware
from transformer.core.task import open_task
from transformer.export.bundle import write_bundle
from transformer.families.seq2seq.decoding.config import DecodingParams

ENGINES = ("ctranslate2", "onnx-int8")


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A model that was not trained, for words `w0` to `w25`."""
    model = seq2seq().float()
    save_trained(tmp_path / "trained", model.config, dict(model.state_dict()))
    for side, size in (("source", 40), ("target", 30)):
        vocabulary(size).save(tmp_path / "vocab" / side / "tokenizer.json")
    split = {"kind": "whitespace", "language": None, "lowercase": False, "html_breaks": "keep"}
    write_json(tmp_path / "tokens" / "pretokenizer.json", {"source": split, "target": split})
    write_bundle(
        tmp_path / "bundle",
        open_task("translation"),
        trained=tmp_path / "trained",
        vocab=tmp_path / "vocab",
        tokens=tmp_path / "tokens",
        card="",
        config={"decoding": PARAMS},
    )
    return tmp_path / "bundle"


@pytest.mark.stress
def test_every_engine_has_a_value_in_every_table(bundle: Path) -> None:
    texts = ["w1 w2 w3", "w4", "w5 w6", "w7 w8 w9 w1"]
    opened = open_subject(bundle)
    decoding = opened.decoding.model_copy(update={"method": "beam", "stopping": "first"})
    pairs = Pairs(texts, opened.translate(texts, decoding=decoding))
    hardware = Hardware(device="cpu", precision="fp32", threads=1, deterministic=False)
    more = argparse.Namespace(engines=ENGINES, single=2, clients=2)
    report = compare(opened, bundle, pairs, Options(1, None, hardware, Compute(torch.device("cpu"), "fp32"), more))
    tables = {table.title: table.values for table in report.tables}
    assert len(tables) == 2 * 5 + 3
    assert all(list(values) == list(ENGINES) for values in tables.values())
    assert all(len(found) == 1 for values in tables.values() for found in values.values())
    speeds = {title: values for title, values in tables.items() if "quality" not in title}
    assert all(found[0] > 0 for values in speeds.values() for found in values.values())
    sizes = tables["Size of the model"]
    assert 0 < sizes["onnx-int8"][0] < 2 * sizes["ctranslate2"][0]
    assert report.notes["greedy, identical to ctranslate2"]["ctranslate2"] == "4 of 4"
    assert str(bundle) not in str(report.notes), "the file is committed, and this machine's paths are nobody's business"


def test_what_is_no_translation_model_ends_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not an exported model"):
        open_subject(tmp_path)


def test_all_contenders_search_by_one_rule_however_the_bundle_decodes() -> None:
    """Each leaf is the rule's, the method's, the same for all, or of what the rule excludes."""
    settings = DecodingParams(**(PARAMS | {"mbr_utility": "bleu"})).model_copy(update=RULE | METHODS["beam 4"])
    assert (settings.candidates, settings.reranks) == (1, False)
    limits, idle = {"max_length", "max_length_extra"}, {"mbr_scale", "temperature", "top_k", "top_p", "seed"}
    assert {*RULE, "method", "beam_size"} | limits | idle == {*DecodingParams.model_fields}
