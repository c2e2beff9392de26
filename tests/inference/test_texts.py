"""What callers may pass instead of a list of texts, to all tasks' models and to the MLflow model."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.kit import TASKS
from transformer.inference.bundle import open_bundle

COLUMNS = {
    "translation": ["translation", "notes"],
    "sentiment": ["label", "probability", "notes"],
    "language": ["answer", "notes"],
}


def method(task: str, bundles: dict[str, Path]) -> Callable[[Any], list[Any]]:
    model: Any = open_bundle(bundles[task], "cpu")
    asked = {"translation": "translate", "sentiment": "classify", "language": "score"}[task]
    found: Callable[[Any], list[Any]] = getattr(model, asked)
    return found


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("Ein Mann", "list of texts"),
        (b"Ein Mann", "list of texts"),
        ([None], "text 1 must be a str, not NoneType: leave it out, or pass ''"),
        (["ja", 3], "text 2 must be a str, not int: pass it as a str"),
    ],
    ids=repr,
)
def test_what_is_no_list_of_texts_is_one_clear_error(
    task: str, given: Any, named: str, bundles: dict[str, Path]
) -> None:
    with pytest.raises(TypeError, match=named) as caught:
        method(task, bundles)(given)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("task", TASKS)
def test_any_iterable_of_texts_is_answered_as_a_list(task: str, bundles: dict[str, Path]) -> None:
    ask, texts = method(task, bundles), ["Ein Mann schläft.", "", "Zwei Hunde"]
    expected = ask(texts)
    for given in ((text for text in texts), tuple(texts), np.array(texts), pd.Series(texts, index=[7, 1, 3])):
        assert ask(given) == expected


@pytest.mark.parametrize("task", TASKS)
def test_half_of_a_surrogate_pair_is_answered_as_the_replacement_character(task: str, bundles: dict[str, Path]) -> None:
    ask = method(task, bundles)
    assert ask(["Ein \ud83d Mann", "\udcff"]) == ask(["Ein \ufffd Mann", "\ufffd"])
    assert ask(["Ein \ud83d\ude00 Mann"]) == ask(["Ein \U0001f600 Mann"]), "a whole pair is its character"


@pytest.fixture(scope="module")
def served(bundles: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The MLflow model of each bundle, loaded."""
    from mlflow import pyfunc

    from transformer.workflow.mlflow import save_model

    models = {}
    for task in TASKS:
        folder = tmp_path_factory.mktemp(f"served-{task}") / "model"
        save_model(folder, bundles[task], task)
        models[task] = pyfunc.load_model(str(folder))
    return models


@pytest.mark.parametrize("task", TASKS)
def test_the_mlflow_model_keeps_the_index_of_a_frame(
    task: str, served: dict[str, Any], bundles: dict[str, Path]
) -> None:
    frame = pd.DataFrame({"text": ["Ein Mann", "Zwei Hunde schlafen.", "Kinder spielen"]}, index=[10, 11, 12])
    some = frame[frame["text"].str.startswith(("Zwei", "Kinder"))]
    answers = served[task].predict(some)
    assert answers.index.tolist() == [11, 12] and answers.columns.tolist() == COLUMNS[task]
    joined = frame.join(answers)
    model: Any = open_bundle(bundles[task], "cpu")
    names = model.table(some["text"])[COLUMNS[task][0]]
    assert joined[COLUMNS[task][0]].tolist()[1:] == names
    assert joined[COLUMNS[task][0]].isna().tolist() == [True, False, False]
    assert served[task].predict(some[:0]).shape == (0, len(COLUMNS[task]))
