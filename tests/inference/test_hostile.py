"""Broken and foreign model folders, and hostile texts: a one-line error, or a defined prediction."""

import io
import json
import os
import pickle
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit import TASKS
from transformer.cli import main
from transformer.core.errors import UserError
from transformer.inference.bundle import open_bundle


def large_numbers(path: Path) -> None:
    """Make all numbers of a JSON file huge; double any other file."""
    try:
        path.write_text(json.dumps(json.loads(path.read_text()), indent=0).replace(": 1", ": 1" + "0" * 12))
    except ValueError:
        path.write_bytes(path.read_bytes() * 2)


SIGN = "MALICIOUS_PICKLE_WAS_LOADED"


class Malicious:
    """Leaves a trace when unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.putenv, (SIGN, "1")


def as_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


FAULTS: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "a folder": as_a_folder,
    "empty": lambda path: path.write_bytes(b""),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "binary": lambda path: path.write_bytes(random.Random(0).randbytes(1000)),
    "a list": lambda path: path.write_text("[1, 2]"),
    "lists in lists": lambda path: path.write_text("[" * 100_000),
    "an empty mapping": lambda path: path.write_text("{}"),
    "large numbers": large_numbers,
    "a pickle": lambda path: path.write_bytes(pickle.dumps(Malicious())),
}


def answer(model: Any) -> list[Any]:
    texts = ["Ein Hund schläft.", ""]
    if model.family == "language":
        return [*model.score(texts), *model.fill("Ein [MASK].")]
    return list(model.translate(texts) if model.family == "seq2seq" else model.classify(texts))


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_model_folder_is_one_line_or_answers_as_before(
    task: str, fault: str, bundles: dict[str, Path], tmp_path: Path
) -> None:
    before = answer(open_bundle(bundles[task], "cpu"))
    files = [path.relative_to(bundles[task]) for path in bundles[task].rglob("*") if path.is_file()]
    assert len(files) >= 5
    for name in [*files, Path("model.pkl")]:
        copy = tmp_path / "-".join(name.parts)
        shutil.copytree(bundles[task], copy)
        (copy / name).touch()
        FAULTS[fault](copy / name)
        try:
            answered = answer(open_bundle(copy, "cpu"))
        except UserError as error:
            assert len(str(error).splitlines()) == 1 and len(str(error)) < 1000, (name, str(error))
            assert str(copy) in str(error), (name, str(error))
        else:
            assert answered == before, name
    assert SIGN not in os.environ and os.popen(f"echo ${SIGN}").read() == "\n"


TEXTS = ["", " ", "\t", "\0", "a\0b", "\x1b[2J\x07", "\ufeffBOM", "\u202eright to left\u202c", "שלום עולם", "a\rb"]
TEXTS += ["👩‍👩‍👧‍👦🏳️‍🌈" * 20, "\u0300" * 200, "中文没有空格" * 50, "<s></s><pad>[CLS][SEP][MASK]", "-m nowhere"]
TEXTS += [
    "wort " * 20_000,
    "x" * 1_000_000,
    "\u2028\u2029\x85\x0b\x0c",
    "{}{{%s}}\\n$(touch x)`touch x`",
    "\U0010ffff\ufffe\uffff",
]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., list[str]]]:
    """Calls the console command in this process and returns the lines it prints."""

    def ask(*arguments: str, stdin: bytes = b"") -> list[str]:
        monkeypatch.setattr(sys, "argv", ["transformer", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin))))
        main()
        return capsys.readouterr().out.split("\n")[:-1]

    yield ask


@pytest.mark.parametrize(("command", "task"), [("translate", "translation"), ("classify", "sentiment")])
def test_any_text_has_one_line_as_its_answer(
    command: str, task: str, bundles: dict[str, Path], asked: Callable[..., list[str]]
) -> None:
    content = "\n".join(TEXTS).encode()
    lines = asked(command, "-m", str(bundles[task]), stdin=content)
    assert len(lines) == len(TEXTS)
    if command == "classify":
        assert all(line.split("\t", 2)[0] in ("negative", "positive") for line in lines)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"gut\n\xc3", b"\xed\xa0\x80"])
def test_what_is_no_text_is_one_line_that_says_where(
    content: bytes, bundles: dict[str, Path], asked: Callable[..., list[str]]
) -> None:
    with pytest.raises(SystemExit, match=r"^error: stdin, line \d+: not UTF-8"):
        asked("classify", "-m", str(bundles["sentiment"]), stdin=content)


@pytest.mark.parametrize("option", ["--beam", "--length-penalty", "--stopping", "--top-p"])
def test_any_option_is_an_answer_or_one_line(
    option: str, bundles: dict[str, Path], asked: Callable[..., list[str]]
) -> None:
    search = ["--sample"] if option == "--top-p" else ["--beam", "2"]
    refused = 0
    for value in ("-1", "0", "1", "nan", "x", "99999999999999999999", "1.5", "first"):
        try:
            asked("translate", "-m", str(bundles["translation"]), *search, option, value, "ein Hund")
        except SystemExit as ended:
            refused += 1
            assert ended.code == 2 or len(str(ended.code).splitlines()) == 1, (value, ended.code)
    assert 0 < refused < 8
