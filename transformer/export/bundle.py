"""The bundle: a self-contained folder that `transformer.load(path)` opens without DVC or MLflow.

config.json           format, task, decoding parameters, the main metric
model/                weights and architecture, as train wrote them
vocab/                the vocabularies, as build_vocab wrote them
pretokenizer.json     how raw text is split
rules.json            the rules of spaCy's tokenizers for the languages, so that inference does not need spaCy
README.md             the model card
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer.core.errors import UserError, is_out_of_memory
from transformer.core.files import atomic_write, copy_file, copy_folder, read_json, write_json
from transformer.core.task import Task, family_module, family_names
from transformer.export.converted import ENGINES, converted_of
from transformer.text.pretokenize import PRETOKENIZERS, read_pretokenizers, write_rules

if TYPE_CHECKING:  # at run time, a bundle loads only its own family's code
    from transformer.families.classifier.decoding.labels import Classifier
    from transformer.families.language.decoding.predictor import LanguageModel
    from transformer.families.seq2seq.decoding.translator import Translator

FORMAT = 1
CONFIG, MODEL, VOCAB = "config.json", "model", "vocab"


def write_bundle(
    bundle: Path, task: Task, *, trained: Path, vocab: Path, tokens: Path, card: str, config: Mapping[str, Any]
) -> None:
    """Write a bundle. config: further entries of config.json (`decoding`, `main_metric`); card: the model card."""
    copy_folder(trained, bundle / MODEL)
    copy_folder(vocab, bundle / VOCAB)
    copy_file(tokens / PRETOKENIZERS, bundle / PRETOKENIZERS)
    write_rules(bundle, read_pretokenizers(tokens).values())
    with atomic_write(bundle / "README.md") as stream:
        stream.write(card.encode())
    own = {"format": FORMAT, "task": task.name, "family": task.family}
    write_json(bundle / CONFIG, own | ({"classes": task.classes} if task.classes else {}) | dict(config))


def open_bundle(
    path: Path, device: str = "auto", engine: str | None = None, threads: int | None = None
) -> "Translator | Classifier | LanguageModel":
    """Open a bundle, or a model converted from one, and return its predictor.

    engine: one of export.converted.ENGINES; None uses the folder's own engine; engines other than torch load the
    converted model next to the bundle. threads: of a converted model; None for all processors.
    Raises UserError when it is not a bundle of this format, or the device or the engine is not available.
    """
    config, task = config_of(path)
    own = config.get("engine", "torch")
    if own not in ENGINES:
        raise UserError(f"{path / CONFIG} names no engine, but {own!r}: run `dvc repro` to convert the model again")
    if engine not in (None, own):
        if engine not in ENGINES:
            raise UserError(f"there is no engine `{engine}`: use one of {', '.join(ENGINES)}")
        if own != "torch":
            raise UserError(f"{path} is a model for the engine `{own}`, not `{engine}`: name its bundle")
        return open_bundle(converted_of(path, str(engine)), device, None, threads)
    try:
        predictor: Translator | Classifier | LanguageModel
        if own == "torch":
            opening, decoding = family_module(task, "decoding.opening"), config.get("decoding", {})
            predictor = opening.open_predictor(task, path / MODEL, path / VOCAB, path, decoding, device)
        else:
            _require_cpu(own, device)
            predictor = family_module(task, "conversion.opening").open_converted(task, path, config, threads)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise UserError(
            f"{path} needs more memory than is available: close other programs, or export it again"
        ) from error
    return predictor


def config_of(path: Path) -> tuple[dict[str, Any], Task]:
    """Return a bundle's config.json and its model's task. Raises UserError when it is not a bundle of this format."""
    if not (path / CONFIG).is_file():
        if path.is_file():
            raise UserError(f"{path} is a file: name the folder of an exported model, such as models/TASK/bundle")
        if str(path).startswith("models:/"):
            raise UserError(f"{path} is in MLflow's registry, and this reads folders: `transformer serve -m {path}`")
        what = f"is not an exported model ({CONFIG} is missing)" if path.is_dir() else "does not exist"
        raise UserError(f"{path} {what}: run `dvc repro` or name another folder")
    config = read_json(path / CONFIG)
    task = _task_of(config)
    if task is None:
        if isinstance(config, dict) and "format" not in config:
            raise UserError(f"{path} is not an exported model: name its bundle, such as models/TASK/bundle")
        raise UserError(f"{path / CONFIG} is not of format {FORMAT}: export the model again with this version")
    return config, task


def _task_of(config: Any) -> Task | None:
    """Return the task that a bundle's model was trained for; None if this is not a bundle's config.json."""
    if not isinstance(config, dict) or config.get("format") != FORMAT or not isinstance(config.get("task"), str):
        return None
    name, family, classes = config["task"], config.get("family"), config.get("classes", [])
    if family not in family_names() or not _are_names(classes):
        return None
    return Task(name=name, family=family, classes=tuple(classes))


def _are_names(given: Any) -> bool:
    return isinstance(given, list) and all(isinstance(name, str) for name in given)


def _require_cpu(engine: str, device: str) -> None:
    if device not in ("auto", "cpu"):
        raise UserError(
            f"the engine `{engine}` runs on the CPU, not on `{device}`: use the engine torch, or device cpu"
        )
