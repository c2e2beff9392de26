"""One row per result, whatever the writers on several machines do to each other, and wherever one of them dies."""

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mlflow.exceptions import MlflowException

from tests.tracking.conftest import run_in
from tests.tracking.test_workflow import edit
from transformer.tracking import rows, store, unique
from transformer.tracking.store import Store, all_runs, open_store
from transformer.tracking.sync import sync

TASK, NAME = "translation", "translation-model"


@pytest.fixture(scope="module")
def result(evaluated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose result is not in MLflow."""
    root = Path(shutil.copytree(evaluated, tmp_path_factory.mktemp("result") / "repository"))
    shutil.rmtree(root / ".dvc" / "tmp" / "tracking")
    edit(root, "tracking: true", "tracking: false")
    run_in(root, "dvc", "repro", f"report@{TASK}")
    return root


class Machines:
    """Clones that write to one store, each with a lock of its own, as on machines that share only a server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def sync(self, name: str) -> int:
        """Run `sync` in a clone; returns the number of rows written."""
        return sync(self.folder / name, echo=lambda line: None)

    def open(self, name: str) -> Store:
        return open_store(self.folder / name, TASK)

    def rows(self) -> list[Any]:
        """All rows, also unfinished ones."""
        return [*all_runs(self.open("a"), "tags.kind = 'result'")]

    def assert_one(self, among: list[str]) -> None:
        """One complete row, of the smallest id among those that were finished, with the one version and model."""
        (row,) = self.rows()
        client, run_id = self.open("a").client, row.info.run_id
        assert (row.info.status, run_id) == ("FINISHED", min(among))
        assert unique.WRITER not in row.data.tags
        assert [version.run_id for version in client.search_model_versions(f"name = '{NAME}'")] == [run_id]
        assert client.get_model_version_by_alias(NAME, "best").run_id == run_id
        assert [model.source_run_id for model in client.search_logged_models([row.info.experiment_id])] == [run_id]

    def forget(self) -> None:
        """Remove the row, for another round."""
        for row in self.rows():
            unique.discard_row(self.open("a"), row.info.run_id)


@pytest.fixture
def machines(result: Path, empty_database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machines]:
    for name in ("a", "b", "c"):
        shutil.copytree(result, tmp_path / name, symlinks=True)
    (tmp_path / "shared").mkdir()
    shutil.copy(empty_database, tmp_path / "shared")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/shared/mlflow.db")
    for module in (store, unique):
        monkeypatch.setattr(module, "lock_path", lambda root: root / ".dvc" / "tmp" / "lock-of-this-machine")
    yield Machines(tmp_path)


class Creation:
    """What happens between the writers' search and the creation of their rows, and the ids of these."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.created: list[str] = []
        self.before: list[Callable[[], Any]] = []
        """Done one at a time, by the first writers."""
        self.create: Callable[..., str] = rows._create
        self.last: tuple[Any, ...] = ()
        monkeypatch.setattr(rows, "_create", self._observed)

    def _observed(self, *arguments: Any) -> str:
        self.last = arguments
        if self.before:
            self.before.pop(0)()
        self.created.append(self.create(*arguments))
        return self.created[-1]

    def die(self, store: Store) -> None:
        """Create a row as a writer with this store does, and nothing more."""
        self.create(store, *self.last[1:])


@pytest.fixture
def creation(monkeypatch: pytest.MonkeyPatch) -> Creation:
    return Creation(monkeypatch)


def test_others_that_finish_between_search_and_create(machines: Machines, creation: Creation) -> None:
    """Two, then three writers; the smallest of their random ids stays, with its version, alias and stages' runs."""
    for others in (["b"], ["b", "c"]):
        creation.created.clear()
        creation.before = [partial(machines.sync, name) for name in others]
        machines.sync("a")
        assert len(creation.created) == len(others) + 1
        machines.assert_one(creation.created)
        assert [machines.sync(name) for name in ("a", "b", "c")] == [0, 0, 0]
        machines.assert_one(creation.created)
        machines.forget()


def test_a_writer_that_dies_when_it_has_begun(
    machines: Machines, creation: Creation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other machines leave its unfinished row alone, as they cannot know, until it comes back or a day has passed."""
    for comes_back in (True, False):
        creation.before = [lambda: creation.die(machines.open("b"))]
        assert machines.sync("a") == 1
        assert sorted(row.info.status for row in machines.rows()) == ["FINISHED", "RUNNING"]
        assert machines.sync("c") == 0
        assert len(machines.rows()) == 2
        if not comes_back:
            monkeypatch.setattr(unique, "_ABANDONED_SECONDS", -1)
        assert machines.sync("b" if comes_back else "c") == 0
        machines.assert_one([creation.created[-1]])
        machines.forget()


def test_writers_that_die_before_they_search_again(
    machines: Machines, creation: Creation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both rows are complete; the next `sync` of anybody leaves one, with the stages' runs of both."""
    with monkeypatch.context() as patch:
        patch.setattr(rows, "settled_row", lambda *_: None)
        creation.before = [lambda: machines.sync("b")]
        machines.sync("a")
    assert [row.info.status for row in machines.rows()] == ["FINISHED"] * 2
    opened = machines.open("c")
    children = [
        opened.client.create_run(opened.experiment_id, tags={unique.PARENT: row, "kind": "stage"}).info.run_id
        for row in creation.created
    ]
    assert machines.sync("c") == 0
    machines.assert_one(creation.created)
    parents = {opened.client.get_run(child).data.tags[unique.PARENT] for child in children}
    assert parents == {min(creation.created)}


def test_a_row_that_is_taken_for_abandoned_while_it_is_written(
    machines: Machines, creation: Creation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a machine whose clock is days ahead: the other machine's row is complete, so this is no error."""
    fill = rows._fill

    def late(*arguments: Any) -> str:
        monkeypatch.setattr(rows, "_fill", fill)
        with monkeypatch.context() as patch:
            patch.setattr(unique, "_ABANDONED_SECONDS", -1)
            assert machines.sync("b") == 1
        return fill(*arguments)

    monkeypatch.setattr(rows, "_fill", late)
    assert machines.sync("a") == 0
    machines.assert_one([creation.created[-1]])
    assert len(creation.created) == 2


def test_what_fails_for_another_reason_is_an_error_and_leaves_nothing(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise MlflowException("no")

    with monkeypatch.context() as patch:
        patch.setattr(rows, "register_row", refuse)
        with pytest.raises(MlflowException, match=r"^no$"):
            machines.sync("a")
    assert machines.rows() == []
    assert machines.sync("a") == 1
