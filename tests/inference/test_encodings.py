"""Arguments, input and output are UTF-8 in any locale."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit import ROOT, clean_environment

TEXT = "schön 漢字 „quoted“"
IN_C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def test_an_argument_that_is_not_utf_8_is_refused(bundles: dict[str, Path]) -> None:
    given: list[str | bytes] = ["classify", "-m", str(bundles["sentiment"]), "fine", b"sch\xf6n"]
    command = [sys.executable, "-m", "transformer", *given]
    done = subprocess.run(command, env=clean_environment(PYTHONPATH=str(ROOT), **IN_C_LOCALE), capture_output=True)
    assert done.returncode == 1 and done.stdout == b""
    assert done.stderr == b"error: text 2 is not UTF-8: convert it first, or give a file that is\n"


@pytest.mark.parametrize(
    ("by", "variables"),
    [*((by, IN_C_LOCALE) for by in ("argument", "file", "stdin")), ("stdin", {"PYTHONIOENCODING": "latin-1"})],
)
def test_an_answer_is_utf_8_in_any_locale(
    variables: dict[str, str], by: str, bundles: dict[str, Path], tmp_path: Path
) -> None:
    texts = tmp_path / "schön"
    texts.write_text(TEXT, encoding="utf-8")
    given = {"argument": [TEXT], "file": ["--file", str(texts)], "stdin": []}[by]
    done = subprocess.run(
        [sys.executable, "-m", "transformer", "classify", "-m", str(bundles["sentiment"]), *given],
        cwd=tmp_path,
        env=clean_environment(PYTHONPATH=str(ROOT), **variables),
        input=TEXT.encode(),
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().split("\t")[2] == f"{TEXT}\n"
    assert "schön" in done.stderr.decode(), "a note names what the vocabulary lacks: the text was read as UTF-8"
