"""What a server tells besides an answer, for people who try a model."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import transformer
from tests.kit import TASKS
from transformer.core.errors import UserError
from transformer.core.task import open_task
from transformer.families.classifier import details as classification
from transformer.inference.serving import Serving


def details(bundle: Path, text: str, **params: Any) -> dict[str, Any]:
    (found,) = Serving(bundle).table([text], {"details": True, **params})["details"]
    assert json.loads(json.dumps(found)) == found, "JSON holds it"
    return dict(found)


@pytest.mark.parametrize("task", TASKS)
def test_details_come_on_request_with_one_text_and_change_no_answer(task: str, bundles: dict[str, Path]) -> None:
    serving, text = Serving(bundles[task]), "Ein roter Hund [MASK] ."
    plain = serving.table([text], {})
    assert "details" not in plain
    more = serving.table([text], {"details": True})
    (told,) = more.pop("details")
    assert more == plain and told["engine"] == "torch" and told["engines"] == ["best", "torch"]
    assert serving.table([], {"details": True})["details"] == []
    with pytest.raises(UserError, match="one text at a time, not of 2"):
        serving.table([text, text], {"details": True})


def test_a_translation_has_alternatives_and_what_each_word_attends_to(bundles: dict[str, Path]) -> None:
    bundle, text = bundles["translation"], "Ein roter Hund quasselt ."
    found = details(bundle, text, beam_size=4, n_best=3)
    model: Any = transformer.load(bundle)
    expected = model.translate_n_best(
        [text], decoding=model.decoding.model_copy(update={"method": "beam", "beam_size": 4, "n_best": 3})
    )
    assert [each["text"] for each in found["answers"]] == [each.text for each in expected[0]]
    np.testing.assert_allclose([each["score"] for each in found["answers"]], [s for _, s in expected[0]], atol=1e-4)
    unknown = [each["text"] for each in found["source"] if each["unknown"]]
    assert "quasselt" in unknown and expected[0][0].notes[0].endswith(f": {', '.join(unknown)}")
    for answer in found["answers"]:
        weights = np.array(answer["attention"])
        assert weights.shape == (len(answer["tokens"]), len(found["source"]))
        assert (weights >= 0).all() and (weights.sum(axis=1) <= 1.01).all() and weights.sum() > 0


def test_the_attention_is_that_of_the_drawn_maps(bundles: dict[str, Path]) -> None:
    text = "Ein roter Hund ."
    found = details(bundles["translation"], text)
    model: Any = transformer.load(bundles["translation"])
    (cross,) = (d for d in model_drawings(model, text) if d.name == "cross_attention")
    mean = np.mean([*cross.panels.values()], axis=0)
    length = len(found["answers"][0]["tokens"])
    np.testing.assert_allclose(found["answers"][0]["attention"], mean[:length, 1:-1], atol=1e-3)


def model_drawings(model: Any, text: str) -> Any:
    from transformer.families.seq2seq import FAMILY

    return FAMILY.attention_drawings(model, text, "all")


def test_a_long_text_has_no_map(bundles: dict[str, Path]) -> None:
    found = details(bundles["translation"], "ein Hund " * 60)
    assert found["answers"][0]["attention"] is None and found["answers"][0]["text"]


def test_a_words_contribution_is_what_the_answer_loses_without_it(bundles: dict[str, Path]) -> None:
    words = ["the", "film", "is", "not", "good", "at", "all"]
    found = details(bundles["sentiment"], " ".join(words))
    model: Any = transformer.load(bundles["sentiment"])
    label, probability = model.classify([" ".join(words)])[0]
    assert found["answer"] == found["labels"][0]["label"] == label
    assert found["labels"][0]["probability"] == pytest.approx(probability, abs=1e-4)

    def of(text: str) -> float:
        other, share = model.classify([text])[0]
        return float(share if other == label else 1 - share)

    for place, part in enumerate(found["words"]):
        share = of(" ".join(words[:place] + words[place + 1 :]))
        assert part["text"] == words[place] and part["probability"] == pytest.approx(share, abs=1e-4)
        odds = np.log(probability / (1 - probability)) - np.log(share / (1 - share))
        assert part["contribution"] == pytest.approx(odds, abs=1e-3)


@pytest.mark.parametrize("task", ["sentiment", "language"])
def test_details_are_of_the_engine_that_answers(task: str, bundles: dict[str, Path]) -> None:
    family, model = open_task(task).family, transformer.load(bundles[task])
    assert family.details(model, lambda: pytest.fail("another model is opened"), {}, "a [MASK] film")


def test_a_text_too_long_to_be_read_a_hundred_times_has_no_words(bundles: dict[str, Path]) -> None:
    found = details(bundles["sentiment"], "good film " * 3_000)
    assert found["words"] == [] and found["labels"]


def test_of_a_long_text_neighbours_are_left_out_together(
    bundles: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classification, "_MOST", 3)
    found = details(bundles["sentiment"], "a b c d e f g")
    assert [part["text"] for part in found["words"]] == ["a b c", "d e f", "g"]
    assert details(bundles["sentiment"], "")["words"] == []


def test_a_gap_has_several_fillings(bundles: dict[str, Path]) -> None:
    model: Any = transformer.load(bundles["language"])
    found = details(bundles["language"], "the film is [MASK] .")["fillings"]
    assert found == [{**each._asdict(), "words": [*each.words]} for each in model.fill("the film is [MASK] .", 5)]
    assert len({*map(str, (each["words"] for each in found))}) == 5
