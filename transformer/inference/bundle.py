"""The bundle: a self-contained folder that `transformer.load(path)` opens without DVC or MLflow.

config.json           format, task, decoding parameters, the main metric
model/                weights and architecture, as train wrote them
vocab/                the vocabularies, as build_vocab wrote them
pretokenizer.json     how raw text is split
rules.json            the rules of spaCy's tokenizers for the languages, so that inference does not need spaCy
README.md             the model card
"""

import hashlib
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from transformer.core.errors import UserError, is_out_of_memory
from transformer.core.files import atomic_write, copy_file, copy_folder, files_of, read_json, write_json
from transformer.core.process import limit_openmp_spin
from transformer.core.task import ENGINES, Task, families
from transformer.data.tokenization import PRETOKENIZERS, read_pretokenizers, write_rules

CONFIG, MODEL, VOCAB, EXAMPLE = "config.json", "model", "vocab", "example.py"
CONVERTED = "converted"
"""Folder of all converted models, next to the bundle."""
MADE_FROM = "made_from"


def bundle_digest(bundle: Path) -> str:
    """Return 64 hexadecimal digits for the names and the content of a bundle's files."""
    digest = hashlib.sha256()
    for path in sorted(files_of(bundle)):
        digest.update(f"{path.relative_to(bundle).as_posix()}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def write_surroundings(folder: Path, bundle: Path, *, engine: str, model: Mapping[str, Any], example: str) -> None:
    """Write everything but the weights. model: sizes needed for opening; example: Python code."""
    for path in bundle.iterdir():
        if path.is_dir() and path.name != MODEL:
            copy_folder(path, folder / path.name)
        elif path.is_file() and path.name != CONFIG:
            copy_file(path, folder / path.name)
    own = {"engine": engine, MADE_FROM: bundle_digest(bundle), MODEL: dict(model)}
    write_json(folder / CONFIG, read_json(bundle / CONFIG) | own)
    with atomic_write(folder / EXAMPLE) as stream:
        stream.write(example.encode())


def converted_of(bundle: Path, engine: str) -> Path:
    """Return a bundle's converted model. Raises UserError if there is none, or it is from another bundle."""
    folder = _folder(bundle, engine)
    if not (folder / CONFIG).is_file():
        raise UserError(
            f"{bundle} is not converted for engine `{engine}` ({folder} is missing): run `dvc repro`, or use torch; not"
            " every engine can hold every model (the report says why)"
        )
    if not is_of(folder, bundle_digest(bundle)):
        raise UserError(f"{folder} was made from another model than {bundle}: run `dvc repro` to convert it again")
    return folder


def engines_of(bundle: Path) -> list[str]:
    """Return the engines, besides torch, with a conversion of this very bundle."""
    digest = bundle_digest(bundle)
    found = []
    for engine in ENGINES[1:]:
        folder = _folder(bundle, engine)
        with suppress(UserError):  # a broken one does not count
            if (folder / CONFIG).is_file() and is_of(folder, digest):
                found.append(engine)
    return found


def _folder(bundle: Path, engine: str) -> Path:
    """Return the converted model's path: next to the bundle, or next to the target of a link."""
    places = [each.parent / CONVERTED / engine for each in (bundle.absolute(), bundle.resolve())]
    return next((folder for folder in places if (folder / CONFIG).is_file()), places[0])


def is_of(folder: Path, digest: str) -> bool:
    """True if a converted model was made from the bundle with this digest."""
    config = read_json(folder / CONFIG)
    return isinstance(config, dict) and bool(config.get(MADE_FROM) == digest)


def size_of(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


FORMAT = 1


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
    own = {"format": FORMAT, "task": task.name, "family": task.family.name}
    write_json(bundle / CONFIG, own | ({"classes": task.classes} if task.classes else {}) | dict(config))


def open_bundle(path: Path, device: str = "auto", engine: str | None = None, threads: int | None = None) -> Any:
    """Open a bundle, or a model converted from one, and return its predictor.

    engine: one of export.converted.ENGINES; None uses the folder's own engine; engines other than torch load the
    converted model next to the bundle. threads: of a converted model; None for all processors.
    Raises UserError when it is not a bundle of this format, or the device or the engine is not available.
    """
    limit_openmp_spin()  # before torch is loaded, where the caller has not done so
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
        if own == "torch":
            predictor = task.family.open_exported(task, path, config.get("decoding", {}), device)
        else:
            _require_cpu(own, device)
            predictor = task.family.open_converted(task, path, config, threads)
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
    _require_own_files(path)
    config = read_json(path / CONFIG)
    task = _task_of(config)
    if task is None:
        if isinstance(config, dict) and "format" not in config:
            raise UserError(f"{path} is not an exported model: name its bundle, such as models/TASK/bundle")
        raise UserError(f"{path / CONFIG} is not of format {FORMAT}: export the model again with this version")
    return config, task


_CACHED = re.compile(r".*/files/md5/[0-9a-f]{2}/[0-9a-f]{30}")  # a file of DVC's cache, which it may link to


def _require_own_files(folder: Path) -> None:
    """Raise UserError unless everything in the folder is a folder or regular file, and links lead nowhere else."""
    root = folder.resolve()
    for path in folder.rglob("*"):
        target = Path(os.path.realpath(path))
        own = target.is_relative_to(root) or _CACHED.fullmatch(target.as_posix())
        if target.exists() and not (own and (target.is_file() or target.is_dir())):
            raise UserError(f"{path} is not a file of this folder, but a link out of it or a device: remove it")


def _task_of(config: Any) -> Task | None:
    """Return the task that a bundle's model was trained for; None if this is not a bundle's config.json."""
    if not isinstance(config, dict) or config.get("format") != FORMAT or not isinstance(config.get("task"), str):
        return None
    name, family, classes = config["task"], config.get("family"), config.get("classes", [])
    if family not in families() or not _are_names(classes):
        return None
    return Task(name=name, family=families()[family], classes=tuple(classes))


def _are_names(given: Any) -> bool:
    return isinstance(given, list) and all(isinstance(name, str) for name in given)


def _require_cpu(engine: str, device: str) -> None:
    if device not in ("auto", "cpu"):
        raise UserError(
            f"the engine `{engine}` runs on the CPU, not on `{device}`: use the engine torch, or device cpu"
        )
