"""A result of uncommitted code, in a pipeline that DVC really runs: how its row and its page show it."""

from pathlib import Path

from mlflow.tracking import MlflowClient

from tests.kit import write_code_of
from tests.tracking.conftest import DVC_YAML, run_in
from transformer.report import build
from transformer.results.chain import Chain
from transformer.results.find import find_results
from transformer.results.place import is_page_of

READS = 'deps: ["data/${item.task}/encoded", "data/${item.task}/vocab"'


def tags(root: Path) -> list[dict[str, str]]:
    uri = f"sqlite:///{root}/mlflow.db"
    client = MlflowClient(uri, uri)
    rows = client.search_runs(["1"], "tags.kind = 'result'", order_by=["attributes.start_time"])
    return [row.data.tags for row in rows]


def own(root: Path) -> Chain:
    return find_results(root, "workspace").chains["translation"]


def test_code_that_was_not_committed_is_said_of_the_row_and_makes_another_page(dvc_repository: Path) -> None:
    """It stays marked after the change was stashed: a clean commit did not make this result."""
    root = dvc_repository
    assert DVC_YAML.count(READS) == 1
    (root / "dvc.yaml").write_text(DVC_YAML.replace(READS, f'{READS}, "reports/${{item.task}}/code/train.json"'))
    code = root / "stages/train.py"
    code.parent.mkdir()
    code.write_text("rate = 1\n")
    write_code_of(root, "train", "translation")
    run_in(root, "git", "add", "-A")
    run_in(root, "git", "commit", "-qm", "code")
    run_in(root, "dvc", "repro", "report@translation")
    (clean,) = tags(root)
    assert "git.dirty" not in clean and is_page_of(root, own(root))

    code.write_text("rate = 2\n")
    write_code_of(root, "train", "translation")
    run_in(root, "dvc", "repro", "report@translation")
    assert tags(root) == [clean], "the same bytes are the same result, which a clean commit made"
    assert not is_page_of(root, own(root)), "its page would name that commit for other code"

    params = root / "params.yaml"
    params.write_text(params.read_text().replace("learning_rate: 1e-3", "learning_rate: 2e-3", 1))
    run_in(root, "dvc", "repro", "report@translation")
    _, dirty = tags(root)
    assert dirty["git.dirty"] == "true" and dirty["git.commit"] == clean["git.commit"]
    assert is_page_of(root, own(root))
    run_in(root, "git", "stash", "push", "-q", "stages")
    assert is_page_of(root, own(root)) and tags(root)[1] == dirty
    said = f"{clean['git.commit'][:10]}, with changes of the code that were not committed"
    assert dict(build._origin(root, own(root)))["commit"] == said
