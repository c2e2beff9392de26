"""Folder of a converted model: everything for inference but the engine, with a reference to its bundle.

config.json                          the bundle's, with `engine`, `made_from` and the model's sizes
model/                               the weights, in the engine's own format
vocab/ pretokenizer.json rules.json  as in the bundle, so that raw text is processed identically
README.md                            the model card
example.py                           the model without this package
"""

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from transformer.core.errors import UserError
from transformer.core.files import atomic_write, copy_file, copy_folder, files_of, read_json, write_json

CONFIG, MODEL, EXAMPLE = "config.json", "model", "example.py"
CONVERTED = "converted"
"""Folder of all converted models, next to the bundle."""
FORMATS = ("ctranslate2", "onnx")
INT8 = "-int8"
ENGINES = ("torch", *(f"{name}{kind}" for name in FORMATS for kind in ("", INT8)))
"""Inference engines: torch for the bundle itself, or one of the folders in `converted`."""
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
