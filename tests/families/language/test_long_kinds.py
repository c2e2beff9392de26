"""Transformer-XL and Reformer in all stages, and what each of their heads is worth."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import transformer
from tests.builders import reformer, transformer_xl
from tests.kit import fresh_profile
from tests.stages import Stages
from transformer.core.files import read_json, read_table
from transformer.core.task import open_task
from transformer.families.language.model import LanguageModel
from transformer.families.language.network import LanguageNetwork
from transformer.families.language.report import LanguageReporting
from transformer.reporting.result import Files

KINDS = {"long": ("memory_length", "memory_reach.svg"), "long-reformer": ("hash_rounds", "buckets.svg")}
FEW = {
    "train.batch_size": 8,
    "evaluate.head_texts": 5,
    "evaluate.max_texts": 10,
    "convert.formats": ["ctranslate2", "onnx"],
}


@pytest.fixture(scope="module", params=KINDS)
def chain(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A folder in which every stage has run, with few texts."""
    root, name = tmp_path_factory.mktemp("chain"), request.param
    with pytest.MonkeyPatch.context() as patch:
        stages = Stages(root, "language", patch, FEW)
        content = stages.content["language"]
        content["model"] = fresh_profile(name)["language"]["model"] | {"d_model": 16, "d_ff": 16}
        content["download"]["held_out"] = "data/local/none"
        stages.run("download", "tokenize", "build_vocab", "train", "evaluate", "figures", "export", "convert")
    return name, root


@pytest.mark.parametrize("build", [transformer_xl, reformer])
def test_gradients_in_bf16_are_those_in_fp32_but_for_rounding(build: Callable[[], LanguageNetwork]) -> None:
    model, found = build().float().train(), []
    ids = torch.randint(5, 30, (4, 15), generator=torch.Generator().manual_seed(1))
    for precision in (torch.float32, torch.bfloat16):
        torch.manual_seed(0)
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == torch.bfloat16):
            loss = model.logits(model(ids)).float().square().mean()
        loss.backward()  # type: ignore[no-untyped-call]
        found.append(torch.cat([weight.grad.flatten() for weight in model.parameters() if weight.grad is not None]))
    assert len(found[0]) == sum(weight.numel() for weight in model.parameters())
    assert torch.cosine_similarity(found[0], found[1], dim=0) > 0.95


def test_a_bundle_scores_and_generates_as_it_was_evaluated(chain: tuple[str, Path]) -> None:
    name, root = chain
    _, figure = KINDS[name]
    reports = root / "reports/language"
    model = transformer.load(str(root / "models/language/bundle"))
    assert isinstance(model, LanguageModel)
    rows = list(read_table(reports / "predictions.tsv"))[:5]
    for row, found in zip(rows, model.score([row["text"] for row in rows]), strict=True):
        assert found.log_probability == pytest.approx(float(row["log_probability"]), abs=1e-3)
    assert model.generate("The film").startswith("The film")
    assert (reports / "figures" / figure).is_file() and (reports / "figures/self_attention_1.svg").is_file()
    refused = {kind: found["refused"] for kind, found in read_json(reports / "conversion.json").items()}
    assert refused.keys() == {"ctranslate2", "onnx"}, refused


def test_evaluation_has_its_own_memory_or_rounds(chain: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    name, root = chain
    leaf, _ = KINDS[name]
    before = read_json(root / "reports/language/evaluation.json")["test"]["loss"]
    stages = Stages(root, "language", monkeypatch, FEW)
    stages.content["language"]["model"] = fresh_profile(name)["language"]["model"]
    stages.content["language"]["evaluate"][leaf] = 0
    stages.run("evaluate")
    assert read_json(root / "reports/language/evaluation.json")["test"]["loss"] != before


def test_the_report_says_what_each_head_is_worth(chain: tuple[str, Path]) -> None:
    _, root = chain
    rows = list(read_table(root / "reports/language/tables/heads.tsv"))
    assert len(rows) == 8 and rows[0]["attention"] == "encoder layer 1, self-attention"
    costs = np.array([[float(row[name]) for name in ("low", "cost", "high")] for row in rows])
    assert (np.diff(costs, axis=1) >= 0).all() and costs[:, 1].any()
    sections = LanguageReporting().sections(open_task("language"), Files(root, "language"))
    assert "Attention heads" in [section.title for section in sections]
