"""Names from outside never act on a terminal, end a line, or become markup of the model card."""

import sys
from argparse import Namespace

import pytest
from markdown_it import MarkdownIt

from tests.training.small import smoke
from transformer.commands.ask import _answer
from transformer.core.errors import UserError, in_markdown, printable
from transformer.core.task import Answer
from transformer.core.validation import Runtime
from transformer.families.classifier.export import in_a_row
from transformer.inference.exporting import model_card
from transformer.workflow.mlflow import in_words
from transformer.workflow.stage import StageObserver

HOSTILE = "a\x1b[2J\nb\r\u2028c\u202ed\x9be\udcfff"
SHOWN = r"a\x1b[2J\nb\r\u2028c\u202ed\x9be\udcfff"


def test_a_message_escapes_what_would_act(capsys: pytest.CaptureFixture[str]) -> None:
    assert printable(HOSTILE) == SHOWN == printable(SHOWN), "a message within a message is escaped once"
    assert str(UserError(f"no label {HOSTILE}")) == f"no label {SHOWN}"
    assert printable("Žluťoučký כושר 漢字 🎬 a\u200db") == "Žluťoučký כושר 漢字 🎬 a\u200db"
    assert in_words(ValueError("\x1b[31m")) == r"\x1b[31m"
    runtime = Runtime(**smoke("sentiment", {})["runtime"] | {"tracking": False})
    StageObserver("sentiment", "train", runtime, "0").say(f"label {HOSTILE}")
    assert capsys.readouterr().err == f"train@sentiment: label {SHOWN}\n"


@pytest.mark.parametrize("terminal", [True, False])
def test_an_answer_is_escaped_on_a_terminal_and_whole_in_a_pipe(
    terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    text = "gut\x1b[2J"
    _answer(Namespace(texts=[text], file=None), lambda texts: [Answer([f"0.5\t{each}"], ()) for each in texts])
    assert capsys.readouterr().out == f"0.5\t{printable(text) if terminal else text}\n"


def test_the_model_card_shows_labels_as_they_are() -> None:
    labels = ["<script>x</script>", "[a](http://b)", "![i](j)", "__init__", "*b*", "c|d", "`e`", "&amp;", "f\\"]
    card = model_card(
        "Title",
        f"Says {in_a_row([*map(in_markdown, labels)])}.",
        provenance={"rows": dict.fromkeys(labels, 1)},
        params={"train": {"learning_rate": 0.1}},
        figures={"test": dict.fromkeys(labels, 0.5)},
    )
    assert "| train.learning_rate | 0.1 |" in card, "the names of parameters stay readable"
    inline = [token for token in MarkdownIt().enable("table").parse(card) if token.type == "inline"]
    kinds = {child.type for token in inline for child in token.children or ()}
    assert kinds <= {"text", "text_special", "softbreak"}
    shown = ["".join(child.content for child in token.children or ()) for token in inline]
    assert all(f"rows.{label}" in shown and f"test.{label}" in shown for label in labels)
