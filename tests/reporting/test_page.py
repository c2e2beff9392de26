"""The report's page: escaped, self-contained, and accessible."""

import base64
import json
import re
from html import unescape
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from transformer.evaluation.headline import comparisons, headline, shortfall, splits, value, with_interval
from transformer.families.seq2seq.report import marked
from transformer.reporting.content import (
    Example,
    Marked,
    Page,
    Picture,
    Section,
    Table,
    _course,
    confusion_chart,
    interval_chart,
    line_chart,
    reliability_chart,
)
from transformer.reporting.page import render
from transformer.reporting.result import training_times
from transformer.reporting.style import STEPS, packed

HOSTILE = """</script><script>alert("x")</script><!-- <img src=http://x.invalid/a.png onerror=alert(1)> & "quoted\""""


class Parsed(HTMLParser):
    """Elements with their attributes, and the text of each kind of element."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, list[str]] = {}
        self._open: list[str] = []
        self._going_on = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "wbr":  # where a long word may continue in the next line
            self._going_on = True
            return
        self.elements.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._open and self._going_on:
            self.text[self._open[-1]][-1] += data
        elif self._open:
            self.text.setdefault(self._open[-1], []).append(data)
        self._going_on = False

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def page(text: str) -> str:
    history = {"epoch": ["1", "2"], "train_loss": ["2.5", "1.5"], "validation_loss": ["3", "2"]}
    chart = line_chart("Loss", history, x="epoch", ys={"train_loss": text, "missing": "x"}, y_label="nats")
    table = Table(text, ["a", text], [["1", text], ["2", "b"]], long=True)
    tables = [table, Table("none", ["a"], [], folded=True)]
    sections = [Section(text, text, [text], [chart, Picture(text, b"<svg/>")], tables)]
    examples = [Example(text, [(text, text), ("answer", Marked([(text, True), (" and ", False), (text, False)]))])]
    maps = [{"name": text, "queries": {}, "keys": {}, "panels": []}]
    return render(Page(text, text, [text], chart, examples, sections, json.dumps({"texts": maps})))


def page_of(table: Table) -> str:
    return render(Page("t", "h", [], None, [], [Section("s", tables=[table])], ""))


def test_texts_are_escaped_wherever_they_stand() -> None:
    plain, hostile = Parsed(page("harmless")), Parsed(page(HOSTILE))
    assert [name for name, _ in hostile.elements] == [name for name, _ in plain.elements]
    assert HOSTILE in hostile.text["h1"] and HOSTILE in hostile.text["td"]
    (data,) = (text for text in hostile.text["script"] if text.startswith("{"))
    assert json.loads(data)["texts"][0]["name"] == HOSTILE


def test_a_cell_of_a_megabyte_is_cut() -> None:
    table = Table("errors", ["label", "text"], [["1", "x" * 1_000_000], ["2", "y" * 20_000]])
    parsed = Parsed(page_of(table))
    assert "".join(parsed.text["td"]) == "x" * 19_999 + "…" + "y" * 20_000


def test_nothing_is_loaded_from_anywhere() -> None:
    parsed = Parsed(page("text"))
    for _, attributes in parsed.elements:
        for name in ("src", "href", "action", "data"):
            assert (attributes.get(name) or "data:").startswith(("data:", "#"))
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest", "".join(parsed.text["style"] + parsed.text["script"]))
    policy = next(meta["content"] for meta in parsed.all("meta") if meta.get("http-equiv"))
    assert policy is not None and policy.startswith("default-src 'none';")


def test_figures_have_words_and_tables_have_headers() -> None:
    parsed = Parsed(page("text"))
    assert all(image["alt"] for image in parsed.all("img"))
    assert {header.get("scope") for header in parsed.all("th")} == {"col", "row"}
    assert len(parsed.all("caption")) == len(parsed.all("table"))
    assert parsed.all("html") == [{"lang": "en"}]
    levels = [int(tag[1]) for tag, _ in parsed.elements if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1 and set(levels[1:]) == {2}


def test_a_chart_has_its_numbers_and_its_course_in_words() -> None:
    history = {"epoch": ["1", "2", "3"], "loss": ["2.5", "", "1.25"]}
    chart = line_chart("Loss", history, x="epoch", ys={"loss": "training", "other": "x"}, y_label="nats")
    assert chart.alt == "Loss. training: from 2.5 at 1 to 1.25 at 3."
    assert _course([(1, 0.9), (2000, 0.9996)]) == "from 0.9 at 1 to 0.9996 at 2,000", "neither all nor 2e+03"
    assert chart.numbers and chart.numbers.rows == [["1", "2.5"], ["2", ""], ["3", "1.25"]]


def test_groups_have_their_intervals_and_numbers() -> None:
    groups = {"words": ["1-8", "9-"], "bleu": ["30.5", "20"], "low": ["28", ""], "high": ["33", ""], "n": ["5", "7"]}
    how: Any = {"group": "words", "value": "bleu", "label": "words", "x_label": "BLEU"}
    shown = interval_chart("BLEU", groups, **how, count="n")
    assert shown.alt == "BLEU. 1-8 (n = 5): 30.5; 9- (n = 7): 20." and b"1-8 (n = 5)" in shown.svg
    assert shown.numbers and shown.numbers.rows == [["1-8", "30.5", "28", "33", "5"], ["9-", "20", "", "", "7"]]
    columns = {"words": ["a"], "bleu": ["3.5812345"], "low": ["-1"], "high": ["4"], "n": ["123456"]}
    counts = interval_chart("Tokens", columns, **how, count="n")
    assert counts.numbers and counts.numbers.rows[0][::4] == ["a", "123456"], "counts are exact"
    earlier = {name: cells for name, cells in groups.items() if name not in ("low", "high")}
    assert interval_chart("BLEU", earlier, **how, count="n").alt == shown.alt, "a table of an earlier version"
    assert interval_chart("Cost", columns, **how, zero=True).alt == "Cost. The interval excludes 0 for: none."


def test_a_confusion_has_the_counts_in_the_picture_in_words_and_in_numbers() -> None:
    chart = confusion_chart("Reviews", ["bad", "good"], [[7, 1], [0, 1234]])
    assert chart.alt == "Reviews. 7 bad as bad; 1 bad as good; 0 good as bad; 1,234 good as good."
    assert chart.numbers and chart.numbers.rows == [["actually bad", "7", "1"], ["actually good", "0", "1234"]]
    assert b"1,234" in chart.svg
    many = confusion_chart("Reviews", [f"l{n}" for n in range(30)], np.eye(30, dtype=int).tolist())
    assert many.alt == "Reviews, of 30 labels." and b"l29" in many.svg


def test_reliability_has_its_counts() -> None:
    columns = {"probability": ["0.1", "0.9"], "positive": ["0.2", "0.8"], "calibrated": ["0.1", "0.9"]}
    columns |= {"low": ["0.1", "0.7"], "high": ["0.3", "0.9"], "reviews": ["1234", "99"]}
    chart = reliability_chart("Reliability", columns, x_label="probability", y_label="share", count="reviews")
    assert chart.alt == "Reliability. 0.1 predicted, 0.2 true (n = 1234); 0.9 predicted, 0.8 true (n = 99)."
    assert b"1,234" in chart.svg and chart.numbers and chart.numbers.rows[1] == ["0.9", "0.8", "0.7", "0.9", "99"]


def test_the_first_screen_comes_before_what_is_folded() -> None:
    html = page("text")
    first, _, rest = html.partition("<details><summary><h2>")
    assert rest and "<mark>text</mark> and text" in first
    assert [part in first for part in ('class="headline"', "<figure>", "Examples")] == [True] * 3
    assert html.count("<h2>") == html.count("<summary><h2>") + 1, "all headings but the example's are of a fold"


@pytest.mark.parametrize(
    ("one", "two", "only"),
    [
        ("A red dog sleeps.", "a dog sleeps .", (["red "], [])),
        ("Ein Hund", "", (["Ein ", "Hund"], [])),
        ("the same", "the same", ([], [])),
        ("一只狗睡觉", "一只猫睡觉", (["狗"], ["猫"])),
        ("लड़की किताब", "लड़का किताब", (["लड़की "], ["लड़का "])),
        ("น้ำดี", "น้ำดำ", (["ดี"], ["ด", "ำ"])),
    ],
)
def test_words_that_only_one_text_has_are_marked(one: str, two: str, only: tuple[list[str], list[str]]) -> None:
    found = marked(one, two)
    assert tuple(map(str, found)) == (one, two)
    assert tuple([text for text, is_marked in each.parts if is_marked] for each in map(as_marked, found)) == only


def as_marked(cell: object) -> Marked:
    assert isinstance(cell, Marked)
    return cell


def test_long_texts_are_not_compared() -> None:
    assert marked("a " * 2_000, "b") == ("a " * 2_000, "b")


def test_where_training_spent_its_time_is_shares_of_the_whole_and_a_curve() -> None:
    points = [
        {"step": 10, "tokens_per_second": 4000.0},
        {"step": 20, "tokens_per_second": 3900.5},
        {"step": 20, "epoch_update_seconds": 90.0, "epoch_validation_seconds": 5.0, "epoch_saving_seconds": 0.0},
        {"step": 40, "epoch_update_seconds": 90.0, "epoch_validation_seconds": 5.0, "epoch_saving_seconds": 10.0},
    ]
    section = training_times(points)
    assert "Training took 3 min 20 s where it ran" in section.text
    assert "updates 90.0 %, validation 5.0 %, saving its state 5.0 %" in section.text
    (picture,) = section.pictures
    assert picture.numbers is not None
    assert picture.numbers.rows == [["10", "4000"], ["20", "3900.5"]]
    assert not training_times(points[2:]).pictures
    assert "took 1 h 33 min where" in training_times([{"step": 1, "epoch_update_seconds": 5599.7}]).text
    assert "took 59.9 s where" in training_times([{"step": 1, "epoch_update_seconds": 59.9}]).text


def test_weights_are_packed_row_by_row() -> None:
    weights = np.array([[0, 1, 0.5], [0.25, 0.75, 0]], dtype=np.float32)
    unpacked = np.frombuffer(base64.b64decode(packed(weights)), dtype=np.uint8).reshape(2, 3) / STEPS
    np.testing.assert_allclose(unpacked, weights, atol=0.5 / STEPS)


EVALUATION: dict[str, dict[str, Any]] = {
    "signatures": {"bleu": "v1"},
    "test_2017": {"bleu": 31.25},
    "test": {"bleu": 38.04, "bleu_low": 36.96, "bleu_high": 39.11, "accuracy": 0.8766},
    "validation": {"bleu": 40.0},
}


def test_the_headline_is_of_the_main_test_split() -> None:
    assert splits(EVALUATION) == ["test", "test_2017", "validation"]
    assert headline("bleu", EVALUATION) == "BLEU 38.0 on test, 95 % interval 37.0 to 39.1"
    assert headline("accuracy", EVALUATION) == "Accuracy 87.7 % on test"
    assert headline("chrf", EVALUATION) == ""


def compared(metric: str, other: str, own: float, their: float, p: float | None) -> dict[str, Any]:
    """Scores that compare the model with another system."""
    names = (metric, f"{other}_{metric}", f"{metric}_minus_{other}", f"{metric}_minus_{other}_p")
    found = dict(zip(names, (own, their, own - their, p), strict=True))
    return {name: figure for name, figure in found.items() if figure is not None}


LINEAR, GIVEN = "the linear baseline: accuracy", "Does not beat the result in evaluate.baseline:"
LEAKED = {"duplicates": 900, "near_duplicates": 334}
IN_BOTH = "1,234 texts of test are in an earlier split, exactly or nearly"
UNBEATEN = compared("accuracy", "baseline", 0.4, 0.41, 0.4)
SHORTFALLS: list[tuple[dict[str, Any], str]] = [
    (
        compared("accuracy", "linear", 0.882, 0.914, 0.000999),
        f"Does not beat {LINEAR} 88.2 % against 91.4 % on test (p = 0.001).",
    ),
    (
        compared("accuracy", "linear", 0.9232, 0.9229, 0.0503),
        f"Is not significantly better than {LINEAR} 92.32 % against 92.29 % on test (p = 0.0503).",
    ),
    (compared("accuracy", "linear", 0.93, 0.785, 0.000999), ""),
    (
        compared("accuracy", "linear", 0.5, 0.5, None),
        f"Does not beat {LINEAR} 50.0 % against 50.0 % on test.",
    ),
    (
        compared("bleu_13a_cased", "baseline", 36.4, 43.0, 0.000999),
        f"{GIVEN} BLEU, cased 13a 36.4 against 43.0 on test (p = 0.001).",
    ),
    (
        compared("bits_per_byte", "baseline", 1.25, 1.2, 0.001),
        f"{GIVEN} bits per byte 1.250 against 1.200 on test (p = 0.001).",
    ),
    (compared("bits_per_byte", "baseline", 1.1, 1.2, 0.001), ""),
    (compared("bits_per_byte", "baseline", 1.1, 1.2, 0.001) | UNBEATEN, ""),
    (EVALUATION["test"], ""),
    (
        {"accuracy": 0.9, "accuracy_without_duplicates": 0.7} | LEAKED,
        f"{IN_BOTH}: without them, accuracy is 70.0 % and not 90.0 %.",
    ),
    (
        {"bleu_13a_cased": 40.0} | LEAKED,
        f"{IN_BOTH}: the scores may say little about new texts.",
    ),
    (
        {"accuracy": 0.9, "truncated_rate": 0.1},
        "10 % of the texts of test are longer than model.max_length: only their beginning was read.",
    ),
    ({"accuracy": 0.9, "truncated_rate": 0.09}, ""),
]


@pytest.mark.parametrize(("test", "sentence"), SHORTFALLS)
def test_a_model_that_does_not_beat_its_baseline_says_so(test: dict[str, Any], sentence: str) -> None:
    ahead = compared("accuracy", "linear", 0.99, 0.01, 0.001)
    assert shortfall({"test": test, "validation": ahead}) == sentence


def test_what_a_result_is_compared_with_stands_in_a_line_each() -> None:
    linear = compared("accuracy", "linear", 0.985, 0.793, 0.001)
    linear |= {"accuracy_minus_linear_low": 0.167, "accuracy_minus_linear_high": 0.219}
    other = compared("bits_per_byte", "baseline", 1.1, 1.25, None)
    assert [*comparisons({"test": linear | other, "validation": {}})] == [
        "The linear baseline has accuracy 79.3 %, this model 98.5 % (+19.2 points, 95 % interval +16.7 to +21.9).",
        "The result in evaluate.baseline has bits per byte 1.250, this model 1.100 (-0.150).",
    ]
    assert [*comparisons(EVALUATION)] == []


def test_every_baseline_that_is_not_beaten_is_named() -> None:
    linear, other = (compared("accuracy", name, 0.8, 0.9, 0.01) for name in ("linear", "baseline"))
    assert shortfall({"test": linear | other}) == f"{shortfall({'test': linear})} {shortfall({'test': other})}"


@pytest.mark.parametrize(
    ("metric", "number", "text"),
    [
        ("accuracy", 1, "100.0 %"),
        ("accuracy", 0.99996, "99.996 %"),
        ("accuracy", 0.99949, "99.9 %"),
        ("f1", 0.00049, "0.05 %"),
        ("roc_auc", 0.99996, "0.99996"),
        ("roc_auc", 1.0, "1.000"),
        ("bleu", 99.96, "99.96"),
        ("perplexity", 1.001, "1.001"),
        ("perplexity", 999_999.4, "999999.40"),
        ("word_perplexity", 1.0142e304, "1.01e+304"),
    ],
)
def test_only_what_is_all_or_nothing_is_shown_so(metric: str, number: float, text: str) -> None:
    assert value(metric, number) == text


@pytest.mark.parametrize(
    ("name", "split", "words"),
    [("bleu", "test", "38.0 (37.0 to 39.1)"), ("bleu", "test_2017", "31.2"), ("accuracy", "validation", "")],
)
def test_a_value_has_its_interval_where_there_is_one(name: str, split: str, words: str) -> None:
    assert with_interval(name, EVALUATION[split]) == words


@pytest.mark.parametrize("length", [30, 31, 400])
def test_a_very_long_word_of_a_table_may_be_broken(length: int) -> None:
    word = f"https://example.org/{'<&' * length}"[:length]
    text = f"see {word} or  {word}"
    html = page_of(Table("Sentences", ["split", "source"], [["test", text]], long=True))
    (cell,) = re.findall(r"<td dir=\"auto\">(.*?)</td>", html)
    assert unescape(cell.replace("<wbr>", "")) == text
    assert max(len(unescape(piece)) for piece in re.split(r"<wbr>|\s", cell)) <= 30
