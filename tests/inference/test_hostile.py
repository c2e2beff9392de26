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
import torch

from tests.kit import TASKS
from transformer.cli import main
from transformer.core.errors import UserError
from transformer.inference.bundle import open_bundle

Fault = Callable[[Path], None]


def missing(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def binary(path: Path) -> None:
    path.write_bytes(random.Random(0).randbytes(1000))


def list_instead(path: Path) -> None:
    path.write_text("[1, 2]")


def empty_mapping(path: Path) -> None:
    path.write_text("{}")


def number(path: Path) -> None:
    path.write_text("1")


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def large_numbers(path: Path) -> None:
    """Make all numbers of a JSON file huge; double any other file."""
    try:
        path.write_text(json.dumps(json.loads(path.read_text()), indent=0).replace(": 1", ": 1" + "0" * 12))
    except ValueError:
        path.write_bytes(path.read_bytes() * 2)


def pickled(path: Path) -> None:
    path.write_bytes(pickle.dumps(Malicious()))


FAULTS: list[Fault] = [
    missing,
    empty,
    truncated,
    binary,
    list_instead,
    empty_mapping,
    number,
    folder,
    large_numbers,
    pickled,
]
SIGN = "MALICIOUS_PICKLE_WAS_LOADED"


class Malicious:
    """Leaves a trace when unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.putenv, (SIGN, "1")


def answer(model: Any) -> list[Any]:
    texts = ["Ein Hund schläft.", ""]
    if model.family == "language":
        return [*model.score(texts), *model.fill("Ein [MASK].")]
    return list(model.translate(texts) if model.family == "seq2seq" else model.classify(texts))


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_model_folder_is_one_line_or_answers_as_before(
    task: str, fault: Fault, bundles: dict[str, Path], tmp_path: Path
) -> None:
    before = answer(open_bundle(bundles[task], "cpu"))
    files = [path.relative_to(bundles[task]) for path in bundles[task].rglob("*") if path.is_file()]
    assert len(files) >= 5
    for name in files:
        copy = tmp_path / "-".join(name.parts)
        shutil.copytree(bundles[task], copy)
        fault(copy / name)
        try:
            answered = answer(open_bundle(copy, "cpu"))
        except UserError as error:
            assert len(str(error).splitlines()) == 1 and len(str(error)) < 1000, (name, str(error))
            assert str(copy) in str(error), (name, str(error))
        else:
            assert answered == before, name
    assert SIGN not in os.environ and os.popen(f"echo ${SIGN}").read() == "\n"


@pytest.mark.parametrize("task", TASKS)
def test_a_mistake_of_the_code_is_not_blamed_on_the_model(
    task: str, bundles: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def mistaken(*_: object) -> None:
        raise AttributeError("our own mistake")

    names = {
        "translation": "seq2seq.torch_translator.TorchTranslator",
        "sentiment": "classifier.torch_classifier.TorchClassifier",
        "language": "language.torch_model.TorchLanguageModel",
    }
    monkeypatch.setattr(f"transformer.families.{names[task]}", mistaken)
    with pytest.raises(AttributeError, match="our own mistake"):
        open_bundle(bundles[task], "cpu")


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_a_device_that_is_not_there_is_not_blamed_on_the_model(
    device: str, bundles: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    with pytest.raises(UserError, match=f"^device `{device}` is not available: use `auto` or `cpu`$"):
        open_bundle(bundles["translation"], device)


@pytest.mark.parametrize("task", TASKS)
def test_the_parts_of_another_model_are_one_line(task: str, bundles: dict[str, Path], tmp_path: Path) -> None:
    other = bundles["sentiment" if task == "translation" else "translation"]
    for part in ("config.json", "model", "vocab", "pretokenizer.json"):
        copy = tmp_path / part
        shutil.copytree(bundles[task], copy)
        shutil.rmtree(copy / part) if (copy / part).is_dir() else (copy / part).unlink()
        (shutil.copytree if (other / part).is_dir() else shutil.copy)(other / part, copy / part)
        with pytest.raises(UserError) as caught:
            answer(open_bundle(copy, "cpu"))
        assert len(str(caught.value).splitlines()) == 1, str(caught.value)


@pytest.mark.parametrize("task", TASKS)
def test_a_vocabulary_of_another_size_is_one_line(task: str, bundles: dict[str, Path], tmp_path: Path) -> None:
    copy = shutil.copytree(bundles[task], tmp_path / "bundle")
    for path in (copy / "vocab").rglob("tokenizer.json"):
        content = json.loads(path.read_text())
        content["model"]["vocab"]["neither"] = len(content["model"]["vocab"])
        path.write_text(json.dumps(content))
    with pytest.raises(UserError, match=r"the vocabulary has \d+ tokens, but the model \d+"):
        open_bundle(copy, "cpu")


def test_a_pickle_beside_the_weights_is_never_loaded(bundles: dict[str, Path], tmp_path: Path) -> None:
    copy = shutil.copytree(bundles["sentiment"], tmp_path / "bundle")
    for name in ("model.pkl", "model.pt", "pytorch_model.bin", "model/model.pt"):
        torch.save(Malicious(), copy / name)
    assert answer(open_bundle(copy, "cpu")) == answer(open_bundle(bundles["sentiment"], "cpu"))
    assert os.popen(f"echo ${SIGN}").read() == "\n"


TEXTS = [
    "",
    " ",
    "\t",
    "\0",
    "a\0b",
    "\x1b[2J\x07",
    "\ufeffBOM",
    "\u202eright to left\u202c",
    "שלום עולם",
    "مرحبا بالعالم",
    "👩‍👩‍👧‍👦🏳️‍🌈" * 20,
    "e\u0301" * 50,
    "\u0300" * 200,
    "中文没有空格" * 50,
    "<s></s><pad><bos><eos>[CLS][SEP][MASK]",
    "-" * 5000,
    "wort " * 20_000,
    "x" * 1_000_000,
    "\u2028\u2029\x85\x0b\x0c",
    "{}{{%s}}\\n$(touch x)`touch x`",
    "\U0010ffff\ufffe\uffff",
    "-m nowhere",
    "a\rb",
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


@pytest.mark.parametrize("command", ["translate", "classify"])
@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"gut\n\xc3", b"\xed\xa0\x80", random.Random(1).randbytes(5000)])
def test_what_is_no_text_is_one_line_that_says_where(
    command: str, content: bytes, bundles: dict[str, Path], asked: Callable[..., list[str]]
) -> None:
    task = "translation" if command == "translate" else "sentiment"
    with pytest.raises(SystemExit, match=r"^error: stdin, line \d+: not UTF-8"):
        asked(command, "-m", str(bundles[task]), stdin=content)


def test_any_option_is_an_answer_or_one_line(bundles: dict[str, Path], asked: Callable[..., list[str]]) -> None:
    values = ["-1", "0", "1", "1e400", "nan", "inf", "x", "", "99999999999999999999", "1.5", "first"]
    beam, sample = ["--beam", "2"], ["--sample"]
    options = {
        "--beam": [],
        "--n-best": beam,
        "--length-penalty": [*beam, "--length-normalization", "length"],
        "--stopping": beam,
        "--temperature": sample,
        "--top-k": sample,
        "--top-p": sample,
        "--seed": sample,
        "--max-length": sample,
    }
    for option, needed in options.items():
        refused = 0
        for value in values:
            try:
                asked("translate", "-m", str(bundles["translation"]), *needed, option, value, "ein Hund")
            except SystemExit as ended:
                refused += 1
                assert ended.code == 2 or len(str(ended.code).splitlines()) == 1, (option, value, ended.code)
                assert "has no effect" not in str(ended.code), (option, value)
        assert 0 < refused < len(values), option
    for given in (["--beam", "10001"], ["--sample", "--n-best", "10001"]):  # more would end in the kernel's hands
        with pytest.raises(SystemExit, match="10000") as refusal:
            asked("translate", "-m", str(bundles["translation"]), *given, "ein Hund")
        assert len(str(refusal.value.code).splitlines()) == 1
