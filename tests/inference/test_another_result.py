"""The workspace's own model when it is not the one in dvc.lock."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.inference.converting import Conversion
from tests.system.tracking.conftest import run_in
from transformer.cli import main

DVC_YAML = """\
stages:
  export:
    matrix: {{task: [sentiment]}}
    cmd: cp -r {bundles}/${{item.task}} models/${{item.task}}/bundle
    outs: ["models/${{item.task}}/bundle"]
  convert:
    matrix: {{task: [sentiment]}}
    cmd: cp -r {converted} models/${{item.task}}/converted
    outs: ["models/${{item.task}}/converted"]
"""


@pytest.fixture(scope="module")
def exported(bundles: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository in which DVC really exported small models."""
    root = tmp_path_factory.mktemp("exported")
    shutil.copytree(bundles["sentiment"], root / "bundles/sentiment")
    (root / "models/sentiment").mkdir(parents=True)
    conversion = Conversion("sentiment-transformer", root / "conversion")
    conversion.run(formats=["onnx"], int8=False)
    (root / "dvc.yaml").write_text(DVC_YAML.format(bundles=root / "bundles", converted=conversion.paths.converted))
    run_in(root, "git", "init", "-q")
    run_in(root, "dvc", "init", "-q")
    run_in(root, "dvc", "repro", "-q")
    return root


@pytest.mark.parametrize("part", ["bundle", "converted/onnx"])
def test_a_model_that_is_not_that_of_dvc_lock_answers_with_a_warning(
    part: str, exported: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As after `git checkout` without `dvc checkout`; a model elsewhere is not bound to any dvc.lock."""
    folder, elsewhere = exported / "models/sentiment" / part, exported / "elsewhere" / part
    shutil.copytree(folder, elsewhere)
    (exported / "notes").mkdir(exist_ok=True)
    monkeypatch.chdir(exported / "notes")

    def warning(*options: str) -> str:
        monkeypatch.setattr(sys, "argv", ["transformer", "classify", *options, "A fine film."])
        monkeypatch.chdir(exported / "notes")
        main()
        said = capsys.readouterr()
        assert said.out.count("\n") == 1
        return "".join(line for line in said.err.splitlines(keepends=True) if not line.startswith("note: "))

    assert warning("--model", str(folder)) == warning() == ""
    card = folder / "README.md"
    before = card.read_bytes()
    card.unlink()  # may be a link into DVC's cache
    card.write_bytes(before + b"another")
    by_path = [("--model", f"../models/sentiment/{part}"), ("--model", str(folder))]
    for options in [(), *by_path] if part == "bundle" else by_path:
        said = warning(*options)
        name = part.partition("/")[0]
        assert said.startswith(f"warning: models/sentiment/{name} is not what dvc.lock says: run `dvc checkout`")
        assert said.count("\n") == 1
    assert warning("--model", str(elsewhere)) == ""
    run_in(exported, "dvc", "checkout", "-q", "--force", f"models/sentiment/{part.partition('/')[0]}")
    assert warning() == ""
    (exported / "dvc.lock").rename(exported / "lock")
    assert warning() == "", "nothing to compare with"
    (exported / "lock").rename(exported / "dvc.lock")
