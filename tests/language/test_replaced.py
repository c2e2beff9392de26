"""A generator replaces tokens and a discriminator finds them: the network, its loss and its training."""

from multiprocessing import active_children
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.builders import LAYERS, replacing
from tests.kit import fresh_profile
from tests.training.line import CPU
from tests.training.resuming import Changes, work
from tests.training.small import own_torch_settings, prepare, smoke
from transformer.core.errors import UserError
from transformer.core.observer import Observer
from transformer.core.params import stage_params
from transformer.core.task import open_task
from transformer.encoded.batching import Ids
from transformer.families.language import train
from transformer.families.language.evaluation.detection_scores import Counts, area, differing, roc, scores
from transformer.families.language.evaluation.scores import Texts, split_figures
from transformer.families.language.evaluation.scores import differing as differing_texts
from transformer.families.language.nn.config import LanguageConfig, LanguageParams
from transformer.families.language.nn.replaced import ReplacedTransformer, narrowed, replacements, sampled
from transformer.training.stage import TrainingPaths

REPLACED: Changes = {"model": {"objective": "replaced", "generator_width": 0.5}}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The encoded sample corpus."""
    folder = tmp_path_factory.mktemp("data")
    small: Changes = {"download": {"sample_rows": {"train": 120, "validation": 20, "test": 10}}}
    prepare(smoke("language", small), "language", folder / "language")
    return folder


def opened(data: Path, root: Path, changes: Changes) -> tuple[train.ReplacedTraining, list[Ids]]:
    """A training run before its first update, and the batches of its first epoch."""
    content = smoke("language", {"model": REPLACED["model"] | changes.get("model", {}), **changes})
    params = stage_params(content, "language", train.Params, where=Path("smoke"))
    paths = TrainingPaths(
        encoded=data / "language" / "encoded",
        vocab=data / "language" / "vocab",
        trained=root / "trained",
        metrics=root / "metrics",
        history=root / "history",
    )
    with own_torch_settings():
        training = train.open_training(open_task("language"), params, paths, Observer()).trainable
    assert isinstance(training, train.ReplacedTraining)
    return training, [*training.batches(1)]


def gradients(training: train.ReplacedTraining, rows: Ids) -> dict[str, torch.Tensor]:
    training.model.zero_grad()
    training.loss(rows).total.backward()  # type: ignore[no-untyped-call]
    return {name: each.grad.clone() for name, each in training.model.named_parameters() if each.grad is not None}


def test_no_gradient_of_the_discriminator_reaches_the_generator(data: Path, tmp_path: Path) -> None:
    """Its weight scales the discriminator's gradient, and only what both share, the embeddings, mixes the two."""
    found = []
    for weight in (1.0, 100.0):
        model = {"objective": "replaced", "generator_width": 0.5, "detection_weight": weight}
        training, batches = opened(data, tmp_path, {"model": model})
        found.append(gradients(training, batches[0]))
    light, heavy = found
    own = [name for name in light if name.startswith("generator.")]
    other = [name for name in light if name.startswith(("encoder.", "detection."))]
    assert len(own) > 10 and len(other) > 10 and {*own, *other} | {"embedding.tokens.weight"} == {*light}
    for name in own:
        assert torch.equal(light[name], heavy[name])
    for name in other:
        torch.testing.assert_close(100 * light[name], heavy[name], rtol=1e-3, atol=1e-3)
    assert not torch.allclose(light["embedding.tokens.weight"], heavy["embedding.tokens.weight"])


def test_a_token_drawn_as_it_was_counts_as_original(data: Path, tmp_path: Path) -> None:
    """A generator that always draws one token replaces every hidden token but this one."""
    training, batches = opened(data, tmp_path, {})
    batch = training.seen.batch(batches[0], CPU.device)
    always = int(batch.targets.mode().values)
    with torch.no_grad():
        training.model.generator.output.bias[always] = 1e4
    generator = training.model.generator
    tokens = replacements(generator, generator.transform(train._at_places(generator, batch, packed=True)), batch.draws)
    assert tokens.eq(always).all()
    for pads in (False, True):
        training.pads = pads
        _, labels = training._detected(batch, tokens)
        assert len(labels) == batch.ids.ne(training.model.config.pad_id).sum()
        assert 0 < labels.sum() == batch.targets.ne(always).sum() < len(batch.targets)
        assert labels[batch.places].eq(batch.targets.ne(always).float()).all()


def test_padded_and_packed_batches_have_the_same_loss(data: Path, tmp_path: Path) -> None:
    training, batches = opened(data, tmp_path, {})
    packed = training.loss(batches[0])
    training.pads = True
    padded = training.loss(batches[0])
    torch.testing.assert_close(packed.total, padded.total)
    assert packed.predicted == padded.predicted


@pytest.mark.parametrize("mask_share", [0.15, 0.01])
def test_the_loss_is_the_papers(mask_share: float, data: Path, tmp_path: Path) -> None:
    """L_MLM + weight * L_Disc, both means per token, but for how the batch's share of hidden ones differs."""
    training, batches = opened(data, tmp_path, {"train": {"mask_share": mask_share}})
    found = training.loss(batches[0])
    batch = training.seen.batch(batches[0], CPU.device)
    generator = training.model.generator
    states = train._at_places(generator, batch, packed=True)
    masked = torch.nn.functional.cross_entropy(generator.logits(states), batch.targets)
    tokens = replacements(generator, generator.transform(states), batch.draws)
    logits, labels = training._detected(batch, tokens)
    detection = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)
    share = len(batch.targets) / len(labels) / training._hidden_share
    torch.testing.assert_close(found.total / found.predicted, masked + 50 / share * detection)
    assert abs(share - 1) < 0.05
    lengths, hidden = training.train.lengths, 0
    for row in range(len(lengths)):
        hidden += len(training.train.batch(np.array([row]), CPU.device).targets)
    assert training._hidden_share == pytest.approx(hidden / lengths.sum())


def test_all_that_is_hidden_is_masked_and_has_a_draw_of_its_own(data: Path, tmp_path: Path) -> None:
    training, _ = opened(data, tmp_path, {})
    mask, rows = training.model.config.mask_id, np.arange(20)
    first, again, other = (training.train.resegmented(None, epoch).batch(rows, CPU.device) for epoch in (1, 1, 2))
    assert first.ids.flatten()[first.padded_places].eq(mask).all()
    assert len(first.draws) == len(first.targets) == len({*first.draws.tolist()})
    assert torch.equal(first.draws, again.draws) and torch.equal(first.ids, again.ids)
    assert not {*first.draws.tolist()} & {*other.draws.tolist()}
    parts = [training.train.resegmented(None, 1).batch(part, CPU.device).draws for part in np.split(rows, [3, 11])]
    assert torch.equal(torch.cat(parts), first.draws)


def test_draws_follow_the_distribution() -> None:
    """As many of a grid of draws fall on a token as its probability says; impossible ones are never drawn."""
    for size in (1, 2, 7, 50, 101):
        logits = torch.randn(size, generator=torch.Generator().manual_seed(size)) * 3
        logits[::5] = float("-inf") if size > 5 else 0.0
        draws = (torch.arange(20_000) + 0.5) / 20_000
        found = sampled(logits.expand(len(draws), -1), draws)
        counts = torch.bincount(found, minlength=size) / len(draws)
        torch.testing.assert_close(counts, logits.softmax(dim=-1), atol=2e-4, rtol=0)
        ends = sampled(logits.expand(2, -1), torch.tensor([0.0, 1.0]))
        assert logits[ends].isfinite().all() and ends[0] <= ends[1]
        assert (found.diff() >= 0).all()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(sampled(logits.expand(len(draws), -1), draws), found)


def test_neither_padding_nor_the_mask_is_drawn() -> None:
    model = replacing().float()
    states = torch.randn(500, 16)
    with torch.no_grad():
        model.generator.output.bias[[0, 4]] = 50.0
        draws = torch.linspace(0, 0.999, 500)
        found = replacements(model.generator, states, draws)
    assert not {0, 4} & {*found.tolist()} and len({*found.tolist()}) > 5


def test_the_generator_is_narrow_and_shares_the_embeddings() -> None:
    model = replacing(d_model=32, heads=4, d_ff=40, generator_width=0.25)
    params = narrowed(model.config.model)
    assert (params.d_model, params.heads, params.dimension_of_head, params.d_ff, params.layers) == (8, 1, 8, 10, 2)
    assert model.generator.output.weight is model.embedding.tokens.weight
    assert model.generator.embedding is model.embedding
    wide = narrowed(replacing(d_model=32, heads=8, head_dim=16, generator_width=0.25).config.model)
    assert (wide.d_model, wide.heads, wide.dimension_of_head) == (8, 2, 16), (
        "heads shrink by the width, not by their own"
    )
    names = {name for name, _ in model.named_parameters()}
    assert not {name for name in names if name.startswith(("generator.embedding", "generator.output.weight"))}


def test_what_does_not_fit_is_one_line(tmp_path: Path) -> None:
    own: dict[str, Any] = {"objective": "replaced", "layers": 1, "embedding_norm": False, "output": "plain"}
    with pytest.raises(ValueError, match="`replaced` needs output `transformed`"):
        LanguageParams(**LAYERS, **own)
    faults: dict[str, tuple[dict[str, Any], str]] = {
        "two passes": ({"r_drop": 1.0}, r"train\.r_drop compares two passes.*`replaced` needs 0"),
        "the generator's accuracy": ({"monitor": "accuracy"}, r"train\.monitor `accuracy` is the generator's"),
    }
    for changes, message in faults.values():
        content = smoke("language", {"model": {"objective": "replaced", "dropout": 0.1}, "train": changes})
        with pytest.raises(UserError, match=message):
            stage_params(content, "language", train.Params, where=Path("smoke"))


def test_a_model_without_a_generator_has_the_config_that_it_had() -> None:
    params = LanguageParams(**fresh_profile("default")["language"]["model"])
    config = LanguageConfig(model=params, size=9, pad_id=0, mask_id=1, vocabulary_sha256="0" * 64)
    assert not {"generator_width", "detection_weight"} & config.model_dump()["model"].keys()
    kept = replacing().config.model_dump()["model"]
    assert kept["generator_width"] == 0.5 and kept["detection_weight"] == 50.0


@pytest.mark.parametrize("average", ["none", "ema"])
def test_a_stopped_training_ends_with_the_same_bytes(average: str, data: Path, tmp_path: Path) -> None:
    changes: Changes = {"train": {"averaging": average, "ema_decay": 0.9}, **REPLACED}
    changes["model"] = REPLACED["model"] | {"dropout": 0.1}
    training = work(data, tmp_path, changes, task="language")
    epoch = len([step for step, values in training.points if "train_loss" in values]) // 3
    for stop in (epoch + 2, 2 * epoch):
        training.run(stop=stop)
    assert training.finish().points == training.points


def test_the_number_of_processes_changes_no_byte(data: Path, tmp_path: Path) -> None:
    """Stopped with one, it ends with two."""
    changes: Changes = {"train": {"shards": 4, "epochs": 2}, "model": REPLACED["model"] | {"dropout": 0.1}}
    training = work(data, tmp_path, changes, task="language")
    epoch = len([step for step, values in training.points if "train_loss" in values]) // 2
    training.run(stop=epoch + 1)
    training.content["runtime"] |= {"trainers": 2}
    assert training.finish().points == training.points
    assert not active_children()


def test_areas_and_undefined_scores() -> None:
    from sklearn.metrics import roc_auc_score

    random = np.random.default_rng(0)
    probabilities, labels = random.integers(0, 20, 300) / 20, (random.random(300) < 0.2).astype(float)
    assert area(probabilities, labels) == pytest.approx(roc_auc_score(labels, probabilities))
    assert area(probabilities, np.zeros(300)) == area(np.empty(0), np.empty(0)) == 0.5
    nothing = Counts(*(np.array([each]) for each in (5.0, 0.0, 0.0, 0.0)))
    assert scores(nothing) == {"detection_accuracy": 1.0, "detection_precision": 0.0, "detection_recall": 0.0}


def test_equal_probabilities_are_one_point_of_the_curve() -> None:
    """In the order of the texts, they would draw any curve; the area counts them half."""
    labels = np.array([1.0] * 50 + [0.0] * 50)
    assert roc(np.full(100, 0.5), labels) == [(0.0, 0.0), (1.0, 1.0)]
    random = np.random.default_rng(0)
    labels = (random.random(5000) < 0.3).astype(float)
    probabilities = np.round((labels + random.normal(0, 1, 5000)).clip(-1, 2), 1)
    x, y = np.array(roc(probabilities, labels)).T
    assert np.trapezoid(y, x) == pytest.approx(area(probabilities, labels), abs=1e-4)


def test_only_texts_that_a_metric_counts_differently_differ() -> None:
    """Few of them bound the p value, by the sign test; losses differ in nearly all."""
    ones = np.ones(4)
    one = Texts(nats=ones, tokens=9 * ones, words=ones, bytes=ones, right=5 * ones)
    two = one._replace(nats=2 * ones, right=np.array([5.0, 6, 5, 5]))
    assert (differing_texts("bits_per_byte", one, two), differing_texts("accuracy", one, two)) == (4, 1)
    assert differing_texts("generator_accuracy", one, two) == 1
    figures = split_figures(one, samples=99, baseline=two, compared=("accuracy", "bits_per_byte"))
    assert figures["accuracy_minus_baseline_p"] == 1 and figures["bits_per_byte_minus_baseline_p"] < 0.2
    counts = Counts(judged=9 * ones, replaced=3 * ones, found=ones, false_alarms=ones)
    other = counts._replace(found=np.array([2.0, 1, 1, 0]), false_alarms=np.array([2.0, 1, 0, 1]))
    found = [differing(name, counts, other) for name in ("detection_accuracy", "detection_precision")]
    assert found == [2, 3] and differing("detection_recall", counts, other) == 2


def test_the_state_has_each_tensor_once() -> None:
    from transformer.checkpoint.trained import put_state, unique_state

    model, other = replacing(), replacing()
    state = {name: tensor.detach().clone() for name, tensor in unique_state(model).items()}
    assert {"embedding.tokens.weight", "generator.output.bias"} <= state.keys()
    assert "generator.output.weight" not in state
    assert not any(name.startswith("generator.embedding") for name in state)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.zero_()
    put_state(other, state)
    ids = torch.tensor([[2, 7, 9, 11, 3]])
    with torch.no_grad():
        assert torch.equal(model(ids), other(ids)) and torch.equal(model.generator(ids), other.generator(ids))
    assert isinstance(other, ReplacedTransformer)
