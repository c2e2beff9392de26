import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tracking.locks import Lock, chain_of, lock_of
from transformer.core.task import STAGES as ALL_STAGES
from transformer.results.chain import REPORT, STAGES, VIEWS, Chain, all_chains, chains_in_lock, running_chain
from transformer.results.partial import in_words


def changed(change: Callable[[Lock], None]) -> Chain:
    lock = copy.deepcopy(lock_of())
    change(lock["stages"])
    return chain_of(lock)


def test_key_is_stable() -> None:
    assert chain_of(lock_of()).row_key() == "e8515d8a586dc1fc"


def test_key_of_the_other_task_differs() -> None:
    assert chain_of(lock_of("sentiment")).row_key() != chain_of(lock_of()).row_key()


@pytest.mark.parametrize("stage", STAGES)
def test_every_parameter_changes_the_key(stage: str) -> None:
    def change(stages: Lock) -> None:
        stages[f"{stage}@translation"]["params"]["params.yaml"][f"translation.{stage}"]["rate"] = 2e-05

    assert changed(change).row_key() != chain_of(lock_of()).row_key()


@pytest.mark.parametrize("stage", STAGES)
def test_every_output_but_the_last_changes_the_key(stage: str) -> None:
    def change(stages: Lock) -> None:
        stages[f"{stage}@translation"]["outs"][0]["md5"] = "other.dir"

    same = changed(change).row_key() == chain_of(lock_of()).row_key()
    assert same == (stage == "export")


@pytest.mark.parametrize("stage", STAGES)
def test_code_order_and_whole_floats_change_no_key(stage: str) -> None:
    def change(stages: Lock) -> None:
        entry = stages[f"{stage}@translation"]
        entry["deps"][0]["md5"] = "1" * 32
        entry["cmd"] += " --again"
        params = entry["params"]["params.yaml"]
        params[f"translation.{stage}"] = {"rate": 1e-05, "number": 1.0}
        entry["params"]["params.yaml"] = dict(reversed(params.items()))

    assert changed(change).row_key() == chain_of(lock_of()).row_key()


def test_stage_key_ends_at_what_the_stage_starts_from() -> None:
    def change(stages: Lock) -> None:
        stages["train@translation"]["outs"][0]["md5"] = "other.dir"
        stages["evaluate@translation"]["params"]["params.yaml"]["translation.evaluate"]["number"] = 2

    before, after = chain_of(lock_of()), changed(change)
    same = [stage for stage in STAGES if before.stage_key(stage) == after.stage_key(stage)]
    assert same == ["download", "tokenize", "build_vocab", "train"]
    assert after.stage_run_name("train") == f"train {before.stage_key('train')[:8]}"


def test_a_chain_with_a_missing_stage_is_none() -> None:
    lock = lock_of()
    del lock["stages"]["evaluate@translation"]
    assert [*chains_in_lock(json.dumps(lock))] == []
    assert [*chains_in_lock("stages: [")] == []


def test_running_key_is_the_key_of_the_lock_that_follows(dvc_repository: Path) -> None:
    """The running stage's parameters are read by DVC itself, since its lock entry does not exist yet."""
    lock = lock_of()
    for stage in STAGES:
        lock["stages"][f"{stage}@translation"]["params"] = {}
    (dvc_repository / "dvc.lock").write_text(json.dumps(lock))
    running = running_chain(dvc_repository, "translation", "export")
    lock["stages"]["export@translation"]["params"] = {
        "params.yaml": {"translation.export": {"alias": "best", "registered_name": "translation-model"}}
    }
    assert running.stages[-1].params == chain_of(lock).stages[-1].params
    assert running.row_key() == chain_of(lock).row_key()


def test_running_without_the_stages_above_is_refused(dvc_repository: Path) -> None:
    (dvc_repository / "dvc.lock").unlink(missing_ok=True)
    assert [stage.name for stage in running_chain(dvc_repository, "translation", "download").stages] == ["download"]
    with pytest.raises(ValueError, match="above train@translation"):
        running_chain(dvc_repository, "translation", "train")


def linked_lock() -> Lock:
    """A lock in which every stage reads what all stages above it wrote."""
    lock = lock_of()
    wrote: list[dict[str, Any]] = []
    for stage in STAGES:
        entry = lock["stages"][f"{stage}@translation"]
        entry["deps"] += [{"path": out["path"], "hash": "md5", "md5": out["md5"]} for out in wrote]
        wrote += entry["outs"]
    return lock


@pytest.mark.parametrize("stage", STAGES[:-1])
def test_a_stage_that_ran_alone_leaves_no_result(stage: str) -> None:
    lock = linked_lock()
    assert chain_of(lock).stale == ()
    lock["stages"][f"{stage}@translation"]["outs"][0]["md5"] = "other.dir"
    (chain,) = all_chains(json.dumps(lock))
    assert chain.stale == STAGES[STAGES.index(stage) + 1 :]
    assert [*chains_in_lock(json.dumps(lock))] == []
    assert [name for name in STAGES if chain.holds(name)] == [*STAGES[: STAGES.index(stage) + 1]]


def test_a_stage_must_have_read_the_very_model_that_others_read() -> None:
    """export reads evaluate's output, but a different model than evaluate read."""
    lock = linked_lock()
    deps = lock["stages"]["export@translation"]["deps"]
    next(dep for dep in deps if dep["path"] == "data/translation/train")["md5"] = "other.dir"
    (chain,) = all_chains(json.dumps(lock))
    assert chain.stale == ("export",)


def test_a_parameter_that_two_stages_declare_otherwise_leaves_no_result() -> None:
    lock = linked_lock()
    params = lock["stages"]["export@translation"]["params"]["params.yaml"]
    params["translation.train"] = {"number": 1.0, "rate": 1e-05}
    assert chain_of(lock).stale == ()
    params["translation.train"]["rate"] = 2e-05
    assert [*chains_in_lock(json.dumps(lock))] == []
    params["translation.train"] = {"number": 1}
    params["translation.train.rate"] = 2e-05  # DVC adds leaves that dvc.yaml interpolates
    assert [*chains_in_lock(json.dumps(lock))] == []


@pytest.mark.parametrize("value", [{"a": 1, "b": 2}, {"a": 1}, "balanced", None])
def test_a_parameter_may_be_a_word_in_one_stage_and_a_mapping_in_another(value: object) -> None:
    lock = linked_lock()
    for stage in ("train", "export"):
        params = lock["stages"][f"{stage}@translation"]["params"]["params.yaml"]
        params["translation.train"] = {"rate": 1e-05, "weights": {"a": 1, "b": 2}}
    assert chain_of(lock).stale == ()
    params["translation.train"]["weights"] = value
    assert [*chains_in_lock(json.dumps(lock))] == ([chain_of(lock)] if value == {"a": 1, "b": 2} else [])


def test_each_parameter_is_that_of_the_stage_that_owns_it() -> None:
    """Also in an inconsistent chain: nothing may show a model with another training run's rate."""
    lock = linked_lock()
    lock["stages"]["export@translation"]["params"]["params.yaml"]["translation.train"] = {"number": 1, "rate": 0.5}
    (chain,) = all_chains(json.dumps(lock))
    assert chain.params["params.yaml"]["translation.train"]["rate"] == 1e-05


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("build_vocab", "train has not read what the stages above it wrote"),
        ("train", "the model is newer than its scores"),
        ("evaluate", "the scores are newer than the exported model"),
    ],
)
def test_what_is_no_result_says_what_to_run(change: str, words: str) -> None:
    lock = linked_lock()
    lock["stages"][f"{change}@translation"]["outs"][0]["md5"] = "other.dir"
    (chain,) = all_chains(json.dumps(lock))
    stages = ", ".join(STAGES[STAGES.index(change) + 1 :])
    end = f"{words}; run `dvc repro report@translation` ({stages})"
    assert in_words(chain, "HEAD") == f"translation: HEAD has no consistent result: {end}"


def test_a_stage_that_never_ran_is_named() -> None:
    lock = linked_lock()
    del lock["stages"]["evaluate@translation"]
    (chain,) = all_chains(json.dumps(lock))
    assert "evaluate has not run; run `dvc repro report@translation` (evaluate, export)" in in_words(chain, "HEAD")


def figures_entry(**params: object) -> dict[str, Any]:
    lock = lock_of()["stages"]
    deps = [{"path": out["path"], "md5": out["md5"]} for out in lock["train@translation"]["outs"]]
    return {
        "cmd": "python -m stages.figures translation",
        "deps": deps,
        "params": {"params.yaml": params},
        "outs": [{"path": "reports/translation/figures", "hash": "md5", "md5": "drawn.dir"}],
    }


def test_figures_belong_to_a_chain_that_they_show_and_to_no_key() -> None:
    def draw(stages: Lock) -> None:
        stages["figures@translation"] = figures_entry(**{"translation.figures": {"sentences": []}})

    drawn = changed(draw)
    assert drawn.view_md5("figures") == "drawn.dir"
    assert drawn.row_key() == chain_of(lock_of()).row_key()
    assert drawn.params == chain_of(lock_of()).params


def test_figures_of_another_model_or_other_parameters_are_left_out() -> None:
    def other_model(stages: Lock) -> None:
        stages["figures@translation"] = figures_entry()
        stages["figures@translation"]["deps"][0]["md5"] = "other.dir"

    def other_parameters(stages: Lock) -> None:
        stages["figures@translation"] = figures_entry(**{"translation.evaluate": {"number": 2, "rate": 1e-05}})

    def none(stages: Lock) -> None:
        stages.pop("figures@translation", None)

    assert [changed(change).view_md5("figures") for change in (other_model, other_parameters, none)] == [None] * 3


def converted_entry(**params: object) -> dict[str, Any]:
    deps = [{"path": out["path"], "md5": out["md5"]} for out in lock_of()["stages"]["export@translation"]["outs"]]
    outs = [
        {"path": "models/translation/converted", "hash": "md5", "md5": "other_form.dir"},
        {"path": "reports/translation/conversion.json", "hash": "md5", "md5": "sizes"},
    ]
    return {"cmd": "", "deps": deps, "params": {"params.yaml": params}, "outs": outs}


def test_every_stage_is_part_of_a_result_or_a_view_of_it() -> None:
    assert {*STAGES} | {*VIEWS} | {REPORT} == {*ALL_STAGES}
    assert STAGES[-1] == "export"


def test_a_conversion_belongs_to_the_chain_of_its_model_and_to_no_key() -> None:
    def convert(stages: Lock) -> None:
        stages["figures@translation"] = figures_entry(**{"translation.figures": {"sentences": []}})
        stages["convert@translation"] = converted_entry(**{"translation.convert": {"int8": True}})

    plain, converted = chain_of(lock_of()), changed(convert)
    assert converted.holds("convert") and converted.stale == ()
    assert [stage.name for stage in converted.executed[-2:]] == ["figures", "convert"]
    assert converted.view_md5("convert") == "other_form.dir" and converted.view_md5("figures") == "drawn.dir"
    assert converted.outs["reports/translation/conversion.json"] == "sizes"
    assert converted.row_key() == plain.row_key() and converted.params == plain.params
    assert [converted.stage_key(name) for name in STAGES] == [plain.stage_key(name) for name in STAGES]
    assert converted.stage_key("figures") == "6262156780dc1b77"
    assert not plain.holds("convert") and plain.view_md5("convert") is None


def test_the_key_of_a_conversion_is_of_its_parameters_and_all_above_the_bundle() -> None:
    def convert(params: Lock, stage: str = "", leaf: str = "rate") -> str:
        def change(stages: Lock) -> None:
            stages["convert@translation"] = converted_entry(**params)
            if stage:
                stages[f"{stage}@translation"]["params"]["params.yaml"][f"translation.{stage}"][leaf] = 2e-05

        return changed(change).stage_key("convert")

    own = {"translation.convert": {"int8": True}}
    keys = [convert(own), convert({"translation.convert": {"int8": False}})]
    keys += [convert(own, stage) for stage in ("train", "evaluate", "export")]
    assert len({*keys}) == len(keys) and convert(own) == keys[0]


def test_a_conversion_of_another_bundle_is_left_out() -> None:
    def change(stages: Lock) -> None:
        stages["convert@translation"] = converted_entry()
        stages["export@translation"]["outs"][0]["md5"] = "other.dir"

    assert changed(change).views == ()


def test_a_running_view_has_all_that_it_is_made_from_above_it(dvc_repository: Path) -> None:
    lock = lock_of()
    (dvc_repository / "dvc.lock").write_text(json.dumps(lock))
    running = running_chain(dvc_repository, "translation", "figures")
    assert [stage.name for stage in running.executed] == ["download", "tokenize", "build_vocab", "train", "figures"]
    params = running.view("figures").params["params.yaml"]  # type: ignore[union-attr]
    assert params["translation.figures"] == {"sentences": ["a"]}


def test_a_running_export_has_no_conversion_yet(dvc_repository: Path) -> None:
    """That in dvc.lock is of the bundle before it."""
    lock = lock_of()
    for entry in lock["stages"].values():
        entry["params"] = {}
    lock["stages"] |= {"convert@translation": converted_entry(), "figures@translation": figures_entry()}
    (dvc_repository / "dvc.lock").write_text(json.dumps(lock))
    running = running_chain(dvc_repository, "translation", "export")
    assert [view.name for view in running.views] == ["figures"]
