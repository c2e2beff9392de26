"""A hyperparameter takes its leaf, its field and its use; a position encoding takes a class and its name."""

import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.kit import TASKS, clean_environment, copy_working_tree, set_leaves
from transformer.commands.profiles import profile_params

NEIGHBOURS = '''class NeighbourPositions(AttentionPositions):
    """Adds a score to each query's own place and the one before it."""

    def bias(self, queries: int, keys: int) -> Tensor | None:
        """As `AttentionPositions.bias`."""
        distance = torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)
        return distance.abs().le(1).float()[None]


'''
FORWARD = """
import sys
from pathlib import Path
import torch
from transformer.core.params import read_params, stage_params
from transformer.families.seq2seq.interface import Seq2SeqConfig
from transformer.families.seq2seq.network import build_model
from transformer.families.seq2seq.train import Params
model = stage_params(read_params(Path("params.yaml")), "translation", Params, where=Path("params.yaml")).model
torch.manual_seed(1)
built = build_model(Seq2SeqConfig(model=model, source_size=9, target_size=9, source_pad_id=0, target_pad_id=0)).eval()
ids = torch.tensor([[2, 4, 5, 6, 3]])
print(built.output(built(ids, ids)).abs().sum().item())
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    copy_working_tree(tmp_path, profile_params(ROOT, "smoke"))
    return tmp_path


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, (path, text.count(old))
    path.write_text(text.replace(old, new), encoding="utf-8")


def run(clone: Path, *code: str) -> str:
    environment = clean_environment(PYTHONPATH=str(clone), OMP_NUM_THREADS="1")
    return subprocess.run(code, cwd=clone, env=environment, capture_output=True, text=True, check=True).stdout


def test_a_hyperparameter_takes_three_files(clone: Path) -> None:
    """An exponent of the embeddings' scale."""
    set_leaves(
        clone / "params.yaml", {f"{task}.model.scale_power": 0.25 if task == "translation" else 0.5 for task in TASKS}
    )
    config, positions = clone / "transformer/nn/config.py", clone / "transformer/nn/positions.py"
    edit(config, "    scale_embeddings: bool\n", "    scale_embeddings: bool\n    scale_power: float = Field(ge=0)\n")
    edit(positions, "math.sqrt(params.d_model) if", "params.d_model**params.scale_power if")
    run(clone, "python", "-c", "from transformer.cli import main; main()", "check", "params.yaml")
    scaled = run(clone, "python", "-c", FORWARD)
    set_leaves(clone / "params.yaml", {"translation.model.scale_power": 0.5})
    assert run(clone, "python", "-c", FORWARD) != scaled


def test_a_position_encoding_takes_a_class_and_its_name(clone: Path) -> None:
    config, positions = clone / "transformer/nn/config.py", clone / "transformer/nn/positions.py"
    edit(positions, "# By the value of `model.positions`", NEIGHBOURS + "# By the value of `model.positions`")
    edit(
        positions,
        '    "rotary": lambda',
        '    "neighbours": lambda params: NeighbourPositions(),\n    "rotary": lambda',
    )
    edit(config, '"rotary", "none"]', '"rotary", "neighbours", "none"]')
    answers = set()
    for name in ("none", "neighbours"):
        set_leaves(clone / "params.yaml", {"translation.model.positions": name})
        answers.add(run(clone, "python", "-c", FORWARD))
    assert len(answers) == 2
