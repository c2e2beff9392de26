"""A head that is removed is as if its part of the output projection were zero."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.builders import language, reformer, seq2seq, transformer_xl
from transformer.commands.ask import heads_that_matter
from transformer.core.files import read_table
from transformer.core.observer import Observer
from transformer.inference.heads import Measured, without_head, write_head_costs

IDS = torch.randint(5, 30, (2, 9), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("model", [language, transformer_xl, reformer], ids=lambda build: build.__name__)
def test_a_removed_head_is_one_without_weights(model: Any) -> None:
    model = model("causal") if model is language else model()
    with torch.inference_mode():
        whole = model(IDS)
        layer = model.encoder.layers[1]
        attention = getattr(layer.attention, "attention", layer.attention)
        with without_head(attention, 2):
            without = model(IDS)
        assert torch.equal(model(IDS), whole) and not torch.allclose(whole, without)
        attention.output.weight[:, 8:12] = 0.0
        torch.testing.assert_close(model(IDS), without)


def test_the_cost_is_what_the_score_loses(tmp_path: Path) -> None:
    model = seq2seq()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("attention.output.weight") and not name.startswith("decoder.layers.1.source"):
                weight.zero_()  # all heads but those of one cross-attention are worth nothing

    def measure() -> Measured:
        with torch.inference_mode():
            score = float(model(IDS, IDS).abs().mean())
        return score, np.array([score - 0.1, score, score + 0.2])

    write_head_costs(tmp_path, model, measure, Observer())
    rows = list(read_table(tmp_path / "heads.tsv"))
    assert len(rows) == 4 * (2 + 2 * 2)
    worth = {row["attention"] for row in rows if abs(float(row["cost"])) > 1e-9}
    assert worth == {"decoder layer 2, cross-attention"}
    bundle = tmp_path / "models/task/bundle"
    (tmp_path / "reports/task/tables").mkdir(parents=True)
    assert [*heads_that_matter(bundle)] == [*heads_that_matter(Path("/bundle"))] == [], "wherever a bundle was moved"
    (tmp_path / "heads.tsv").rename(tmp_path / "reports/task/tables/heads.tsv")
    (line,) = heads_that_matter(bundle)
    costly = [row for row in rows if float(row["low"]) > 0]
    assert line.count("head ") == max(1, len(costly))
    assert all(f"cross-attention, head {row['head']} ({float(row['cost']):.3g})" in line for row in costly)
    assert all(float(row["low"]) == pytest.approx(float(row["cost"]), abs=1e-5) for row in rows)
