"""Engine-independent parts of a converted model: its vocabularies and sizes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from transformer.core.errors import UserError
from transformer.encoded.vocabulary import Vocabulary, read_vocabularies, require_size
from transformer.export.converted import CONFIG, MODEL


class Parts(NamedTuple):
    """Vocabularies and sizes next to the weights in `model/`."""

    vocabularies: dict[str, Vocabulary]
    positions: int
    """Maximum sequence length in tokens."""


def sizes(vocabularies: Mapping[str, Vocabulary], positions: int) -> dict[str, Any]:
    """Return the sizes to record in config.json."""
    return {"positions": positions, "vocabulary": {side: each.size for side, each in vocabularies.items()}}


def read_parts(folder: Path, config: Mapping[str, Any]) -> Parts:
    """Read the parts of a converted model; config: its config.json.

    Raises UserError when one is missing or broken, or belongs to another model.
    """
    try:
        positions = int(config[MODEL]["positions"])
        wanted = {str(side): int(size) for side, size in config[MODEL]["vocabulary"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{folder / CONFIG} lacks the model's sizes: run `dvc repro` to convert it again") from error
    vocabularies = read_vocabularies(folder / "vocab", *wanted)
    for side, size in wanted.items():
        require_size(vocabularies[side], size, folder / "vocab")
    return Parts(vocabularies, positions)
