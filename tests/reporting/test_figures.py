"""Figures are byte-identical everywhere, include the tokens, and show what they claim."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg

from tests.conftest import ROOT
from tests.inference.converting import BUNDLES
from transformer.core.files import write_table
from transformer.core.params import read_params
from transformer.families.classifier.training_params import ClassifierTrainParams
from transformer.families.seq2seq.figures import translate_with_attention
from transformer.families.seq2seq.training_params import Seq2SeqTrainParams
from transformer.families.seq2seq.translator import Translator
from transformer.inference.bundle import open_bundle
from transformer.nn.attention_weights import Maps
from transformer.reporting.attention_maps import (
    Axis,
    Drawing,
    attention_figure,
    chosen_layers,
    head_panels,
    updates,
)
from transformer.reporting.style import in_house_style, plain, save
from transformer.reporting.theory import (
    explain,
    learning_rates,
    random_weights,
    schedules_figure,
    softmax_gradient_norm,
)
from transformer.training.schedule import Schedule, TrainParams


@pytest.mark.parametrize("limit", [3, 200])
def test_a_translation_that_stops_at_its_limit_predicts_no_end_token(limit: int) -> None:
    translator = open_bundle(BUNDLES / "translation-transformer", "cpu")
    assert isinstance(translator, Translator)
    translator.decoding = translator.decoding.model_copy(update={"method": "greedy", "max_length": limit})
    found = translate_with_attention(translator, "Ein Hund schläft.", longest=40)  # type: ignore[arg-type]
    end = translator.vocabularies["target"].entries([translator.vocabularies["target"].end_id])[0]
    (source,) = translator.vocabularies["source"].encode(translator.pretokenize(["Ein Hund schläft."]))
    finished = translator.best(source).finished
    assert (found.predicted[-1] == end) == finished and end not in found.predicted[:-1]
    weights = next(weights for name, weights in found.maps.items() if name.startswith("decoder"))
    assert len(found.predicted) == len(found.given) == weights.shape[2]


TOKENS = ["<bos>", "a" * 24, "b" * 25, "größe", "$5", "a_b", "$x^{", "&", "\x00", "▁犬", "<eos>"]


def train_params() -> Seq2SeqTrainParams:
    return Seq2SeqTrainParams(**read_params(ROOT / "params.yaml")["translation"]["train"])


def test_the_updates_of_a_training_are_those_of_its_history(tmp_path: Path) -> None:
    """Its first epochs may have more than the others; what it left out when it ended early is like its last."""
    write_table(tmp_path / "history.tsv", ["epoch", "step"], [(1, 6.0), (2, 12.0), (3, 15.0)])
    assert [updates(tmp_path / "history.tsv", epochs) for epochs in (3, 5)] == [15, 21]
    write_table(tmp_path / "history.tsv", ["epoch", "step"], [(1, 6.0)])
    assert updates(tmp_path / "history.tsv", 3) == 18


def drawing(heads: int = 5) -> Drawing:
    weights = torch.rand(1, heads, 3, len(TOKENS), generator=torch.Generator().manual_seed(0)).softmax(dim=-1)
    maps: Maps = {"decoder.layers.0.source_attention": weights}
    queries = Axis("query", ["eins", "zwei", "drei"])
    return Drawing("name", "A $title$ <of> two\nlines", head_panels(maps), queries, Axis("key", TOKENS))


def texts(path: Path) -> list[str]:
    return [text.text or "" for text in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]


def test_the_same_bytes_are_written_whatever_a_person_has_set(tmp_path: Path) -> None:
    def written(name: str) -> bytes:
        save(tmp_path / name, "attention", lambda: attention_figure(drawing()))
        return (tmp_path / name).read_bytes()

    expected = written("plain.svg")
    with matplotlib.rc_context({"font.size": 20, "svg.hashsalt": "other", "image.cmap": "gray"}):
        assert written("own.svg") == expected


def test_the_figures_of_the_paper_are_small_files(tmp_path: Path) -> None:
    explain(tmp_path, Schedule(train_params(), total=200, d_model=64))
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert set(sizes) == {"masks.svg", "positions.svg", "scale.svg", "schedules.svg"}
    assert sum(sizes.values()) < 250_000


def test_tokens_and_titles_stand_in_the_file_as_they_are(tmp_path: Path) -> None:
    save(tmp_path / "figure.svg", "what it shows", lambda: attention_figure(drawing()))
    found = texts(tmp_path / "figure.svg")
    shown = ["\N{REPLACEMENT CHARACTER}" if token == "\0" else token for token in TOKENS if token != "b" * 25]
    assert {*shown, "b" * 23 + "…", "eins", "zwei", "drei"} <= set(found)
    assert {f"layer 1, head {head}" for head in range(1, 6)} <= set(found)
    assert {"A $title$ <of> two", "lines"} <= set(found)
    assert "what it shows" in (tmp_path / "figure.svg").read_text(encoding="utf-8")


def test_panels_share_one_scale_and_hold_the_weights() -> None:
    content = drawing(heads=3)
    figure = attention_figure(content)
    images = [image for axes in figure.axes for image in axes.images]
    assert len(images) == 3
    largest = max(panel.max() for panel in content.panels.values())
    for image, panel in zip(images, content.panels.values(), strict=True):
        assert image.get_clim() == (0.0, float(largest))
        np.testing.assert_array_equal(np.asarray(image.get_array()), panel)


@pytest.mark.parametrize(("layers", "expected"), [("last", ["b"]), ("all", ["a", "b"])])
def test_layers_are_chosen(layers: str, expected: list[str]) -> None:
    maps = {name: torch.ones(1, 1, 1, 1) for name in ("a", "b")}
    assert list(chosen_layers(maps, layers=layers)) == expected


def test_without_the_scale_large_keys_make_softmax_one_hot_and_its_gradient_small() -> None:
    """Section 3.2.1 and footnote 4: the variance of q·k is d_k."""
    weights = {(d_k, scaled): random_weights(d_k, scaled=scaled) for d_k in (1, 4, 512) for scaled in (True, False)}
    largest = {which: found.amax(dim=-1).mean().item() for which, found in weights.items()}
    assert largest[512, False] > 0.9 and largest[512, True] < 0.4
    assert largest[1, True] == pytest.approx(largest[1, False])
    assert largest[512, True] == pytest.approx(largest[4, True], abs=0.05)
    assert softmax_gradient_norm(weights[512, False]) < softmax_gradient_norm(weights[512, True]) / 2


def test_the_gradients_norm_is_that_of_autograd() -> None:
    scores = torch.randn(3, 5, dtype=torch.float64)
    jacobians = [torch.func.jacrev(lambda row: row.softmax(dim=-1))(row) for row in scores]
    expected = sum(float(torch.linalg.norm(jacobian)) for jacobian in jacobians) / 3
    assert softmax_gradient_norm(scores.softmax(dim=-1)) == pytest.approx(expected, abs=1e-12)


def test_the_highest_rate_of_a_short_warmup_is_the_schedules() -> None:
    """Which lies between two of the steps that are drawn."""
    params = train_params().model_copy(update={"schedule": "inverse_sqrt", "warmup": 50, "learning_rate": 3e-3})
    (axes,) = schedules_figure(Schedule(params, total=30_000, d_model=64)).axes
    labels = [str(line.get_label()) for line in axes.lines]
    assert "inverse_sqrt (this training)\nhighest 0.003" in labels


@pytest.mark.parametrize(
    ("task", "schema"), [("translation", Seq2SeqTrainParams), ("sentiment", ClassifierTrainParams)]
)
def test_schedules_are_those_of_the_schema_and_this_trainings_own(task: str, schema: type[TrainParams]) -> None:
    params = schema(**read_params(ROOT / "params.yaml")[task]["train"] | {"warmup": 200})
    rates = learning_rates(Schedule(params, total=300, d_model=64), [1, 50, 100, 200])
    assert params.schedule in rates
    assert set(rates) == {"constant", "noam", "inverse_sqrt", "linear", "cosine"}
    assert all(rate[0] < rate[1] for rate in rates.values())  # warmup


JOINED = ("ce\u00a0?", "\u3042\u3000\u3044", "\u06cc\u200c\u062e", "\u0915\u094d\u200d\u0937")


@pytest.mark.parametrize(
    ("text", "shown"),
    [(text, text) for text in JOINED]
    + [(f"a{end}b", "a b") for end in "\t\n\r\u2028"]
    + [(f"a{unseen}b", "a\N{REPLACEMENT CHARACTER}b") for unseen in "\0\x1b\u202e\ud800\ufeff"],
)
def test_what_prints_nothing_is_seen_but_spaces_and_joiners_that_people_write_stay(text: str, shown: str) -> None:
    assert plain(text) == shown


@pytest.mark.parametrize(("heads", "token"), [(1, "ja"), (8, "Donaudampfschifffahrtsgesellschaft")])
@pytest.mark.filterwarnings("ignore:Glyph")
def test_a_long_title_lies_over_no_map(heads: int, token: str) -> None:
    weights = torch.full((1, heads, 3, 3), 1 / 3)
    title = "Cross-attention: " + "wort " * 60 + "\n\u2192 " + "word " * 60
    axes = Axis("source token", [token] * 3)
    maps = {"decoder.layers.0.source_attention": weights}
    found = Drawing("name", title, head_panels(maps), Axis("target token predicted", [token] * 3), axes)
    with in_house_style():
        figure: Any = attention_figure(found)
        renderer: Any = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
        figure.draw_without_rendering()
        highest = max(panel.get_tightbbox(renderer).y1 for panel in figure.axes)
        assert figure._suptitle.get_window_extent(renderer).y0 >= highest
        assert all(panel.get_position().height * figure.get_figheight() > 0.5 for panel in figure.axes), "inches"
