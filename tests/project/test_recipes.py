"""A hyperparameter takes its leaf, its field and its use; a position encoding takes a class and its name."""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT
from tests.kit import clean_environment
from transformer.commands.profiles import profile_params

NEIGHBOURS = '''class NeighbourPositions(AttentionPositions):
    """Adds a score to each query's own place and the one before it."""

    def bias(self, queries: int, keys: int) -> Tensor | None:
        """As `AttentionPositions.bias`."""
        distance = torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)
        return distance.abs().le(1).float()[None]


'''
ANSWERS = """
from pathlib import Path
import torch
from transformer.core.params import read_params, stage_params
from transformer.families.seq2seq.interface import Seq2SeqConfig
from transformer.families.seq2seq.network import build_model
from transformer.families.seq2seq.train import Params

def answer(**changes):
    content = read_params(Path("params.yaml"))
    content["translation"]["model"] |= {"scale_power": 0.5} | changes
    model = stage_params(content, "translation", Params, where=Path("params.yaml")).model
    config = Seq2SeqConfig(model=model, source_size=9, target_size=9, source_pad_id=0, target_pad_id=0)
    torch.manual_seed(1)
    built, ids = build_model(config).eval(), torch.tensor([[2, 4, 5, 6, 3]])
    return built.output(built(ids, ids)).abs().sum().item()

changes = ({}, {"scale_power": 0.25}, {"positions": "none"}, {"positions": "neighbours"})
print(len({answer(**each) for each in changes}))
"""


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, (path, text.count(old))
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_a_hyperparameter_and_a_position_encoding_take_two_files_of_code(tmp_path: Path) -> None:
    """The hyperparameter is an exponent of the embeddings' scale."""
    package = shutil.copytree(ROOT / "transformer", tmp_path / "transformer")
    config, positions = package / "nn/config.py", package / "nn/positions.py"
    (tmp_path / "params.yaml").write_text(profile_params(ROOT, "smoke"), encoding="utf-8")
    edit(config, "    scale_embeddings: bool\n", "    scale_embeddings: bool\n    scale_power: float = Field(ge=0)\n")
    edit(positions, "math.sqrt(params.d_model) if", "params.d_model**params.scale_power if")
    edit(positions, "# By the value of `model.positions`", NEIGHBOURS + "# By the value of `model.positions`")
    table = "_IN_ATTENTION: dict[str, Callable[[PositionedParams], AttentionPositions]] = {\n"
    edit(positions, table, table + '    "neighbours": lambda params: NeighbourPositions(),\n')
    edit(config, 'positions: Literal["learned", ', 'positions: Literal["learned", "neighbours", ')
    environment = clean_environment(PYTHONPATH=str(tmp_path))
    run = subprocess.run((sys.executable, "-c", ANSWERS), cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert run.stdout == "4\n", run.stderr
