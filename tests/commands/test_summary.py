"""The table of scores at the end of `make repro`."""

import pytest

from transformer.commands.summary import WIDTH, scores_table


@pytest.mark.parametrize(("task", "rows"), [("translation", 2), ("sentiment", 3)])
def test_scores_fit_a_terminal_whatever_their_number(task: str, rows: int) -> None:
    """Splits are in rows, and in columns where the metrics would be too many beside each other."""
    names = {"translation": ("bleu", "chrf"), "sentiment": ("accuracy", "f1", "roc_auc")}[task]
    scores = {f"{name}{end}": 0.97123 for name in names for end in ("", "_low", "_high")}
    table = scores_table(task, {"test": scores, "validation": scores}).splitlines()
    assert len(table) == 2 + rows and max(map(len, table)) <= WIDTH
    assert sum(line.count("[") for line in table) == 2 * len(names)
