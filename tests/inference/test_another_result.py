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
    matrix: {{task: [translation, sentiment]}}
    cmd: cp -r {bundles}/${{item.task}} models/${{item.task}}/bundle
    outs: ["models/${{item.task}}/bundle"]
  convert:
    matrix: {{task: [sentiment]}}
    cmd: cp -r {converted} models/${{item.task}}/converted
    outs: ["models/${{item.task}}/converted"]
"""
ASKED = {"translation": ("translate", "Ein Mann"), "sentiment": ("classify", "A fine film.")}


@pytest.fixture(scope="module")
def exported(bundles: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository in which DVC really exported small models."""
    root = tmp_path_factory.mktemp("exported")
    for task, bundle in bundles.items():
        shutil.copytree(bundle, root / "bundles" / task)
        (root / "models" / task).mkdir(parents=True)
    conversion = Conversion("sentiment-transformer", root / "conversion")
    conversion.run(formats=["onnx"], int8=False)
    (root / "dvc.yaml").write_text(DVC_YAML.format(bundles=root / "bundles", converted=conversion.paths.converted))
    run_in(root, "git", "init", "-q")
    run_in(root, "dvc", "init", "-q")
    run_in(root, "dvc", "repro", "-q")
    return root


@pytest.mark.parametrize("task", ASKED)
def test_a_model_that_is_not_that_of_dvc_lock_answers_with_a_warning(
    task: str,
    exported: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As after `git checkout` without `dvc checkout`; a bundle elsewhere is not bound to any dvc.lock."""
    own = exported / "models" / task / "bundle"
    (exported / "notes").mkdir(exist_ok=True)
    monkeypatch.chdir(exported / "notes")

    def asked(*options: str) -> tuple[int, str]:
        command, text = ASKED[task]
        monkeypatch.setattr(sys, "argv", ["transformer", command, *options, text])
        monkeypatch.chdir(exported / "notes")
        main()
        said = capsys.readouterr()
        warned = [line for line in said.err.splitlines(keepends=True) if not line.startswith("note: ")]
        return said.out.count("\n"), "".join(warned)

    assert asked() == (1, "")
    card = own / "README.md"
    before = card.read_bytes()
    card.unlink()  # may be a link into DVC's cache
    card.write_bytes(before + b"another")
    warning = (
        f"warning: models/{task}/bundle is not what dvc.lock says: run `dvc checkout` to get the result's own file"
    )
    for options in ((), ("--model", f"../models/{task}/bundle"), ("--model", str(own))):
        lines, said = asked(*options)
        assert lines == 1
        assert said.startswith(warning) and said.count("\n") == 1
    assert asked("--model", str(exported / "bundles" / task)) == (1, "")
    run_in(exported, "dvc", "checkout", "-q", "--force", f"models/{task}/bundle")
    assert asked() == (1, "")
    (exported / "dvc.lock").rename(exported / "lock")
    assert asked() == (1, ""), "nothing to compare with"
    (exported / "lock").rename(exported / "dvc.lock")


def test_so_does_a_converted_model(
    exported: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(exported)

    def warning(folder: str) -> str:
        monkeypatch.setattr(sys, "argv", ["transformer", "classify", "--model", folder, "A fine film."])
        main()
        return capsys.readouterr().err

    assert warning("models/sentiment/converted/onnx") == ""
    card = exported / "models" / "sentiment" / "converted" / "onnx" / "README.md"
    card.unlink()
    card.write_text("another")
    said = warning("models/sentiment/converted/onnx")
    assert said.startswith("warning: models/sentiment/converted is not what dvc.lock says: run `dvc checkout`")
    assert said.count("\n") == 1
    assert warning("conversion/models/converted/onnx") == "", "bound to no dvc.lock"
