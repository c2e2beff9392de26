"""Initialisation of a classifier from a trained language model.

The language model's folder is read by content, whatever wrote it: embeddings and layers under the classifier's own
parameter names, the parameters of its layers, and the digest of its vocabulary.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator
from torch import Tensor, nn

from transformer.core.errors import UserError
from transformer.core.files import read_json, sha256
from transformer.core.task import NO_INPUT
from transformer.core.validation import Section
from transformer.families.classifier.interface import (
    AnyClassifierParams,
    ClassifierModel,
    ClassifierParams,
    NgramParams,
    RecurrentClassifierParams,
)
from transformer.nn.trained import CONFIG, WEIGHTS, read_weights

_SAME = ("d_model", "heads", "head_dim", "d_ff", "layers", "activation", "norm", "positions", "scale_embeddings")
"""Layer parameters that must match; some do not affect weight shapes, so a mismatch would load without an error."""
_TOKENS, _TABLE = "embedding.tokens.weight", "embedding.positions.table.weight"
_STACK = ("embedding.", "encoder.")


class Initialisation(Section):
    """The fields of `model` that set the initial weights; the trained model's configuration omits them."""

    init: Literal["random", "pretrained"] = "random"
    """Initial embeddings and layers: random, from `train.seed`, or from a trained language model."""
    pretrained: str = Field(default=NO_INPUT.as_posix(), min_length=1)
    """`pretrained`: the folder of the language model, such as models/language/trained, which becomes a dependency of
    training; `random`: data/local/none."""
    layer_decay: float = Field(default=1.0, gt=0, le=1)
    """`pretrained`: learning rate of each layer relative to the layer above; 1 for one rate
    (Howard and Ruder 2018, section 3.2)."""

    @model_validator(mode="after")
    def _depends_on_what_it_reads(self) -> Self:
        if (self.init == "random") != (self.pretrained == NO_INPUT.as_posix()):
            instead = NO_INPUT.as_posix() if self.init == "random" else "models/language/trained"
            raise ValueError(f"with init `{self.init}`, pretrained must not be {self.pretrained}: set it to {instead}")
        if self.init == "random" and self.layer_decay != 1:
            raise ValueError("layer_decay needs init `pretrained`: set it to 1")
        return self


class InitialisedParams(ClassifierParams, Initialisation):
    """`model` of a classification task, kind `transformer`, including its initialisation."""


class _Fresh(Initialisation):
    """Initialisation for kinds that cannot be pretrained."""

    @model_validator(mode="after")
    def _starts_at_random(self) -> Self:
        if self.init != "random":
            raise ValueError("init `pretrained` needs kind `transformer`: no language model is of another kind")
        return self


class InitialisedRecurrentParams(RecurrentClassifierParams, _Fresh):
    """`model` of a classification task, kind `recurrent`."""


class InitialisedNgramParams(NgramParams, _Fresh):
    """`model` of a classification task, kind `ngrams`."""


AnyInitialisedParams = Annotated[
    InitialisedParams | InitialisedRecurrentParams | InitialisedNgramParams, Field(discriminator="kind")
]
"""`model` of a classification task, as read by training."""


def architecture(params: AnyInitialisedParams) -> AnyClassifierParams:
    """Return the parameters stored in the trained model's config.json."""
    kept: dict[str, Any] = params.model_dump(exclude=set(Initialisation.model_fields))
    kinds = {"transformer": ClassifierParams, "recurrent": RecurrentClassifierParams, "ngrams": NgramParams}
    found: AnyClassifierParams = kinds[params.kind](**kept)
    return found


def start_from(model: ClassifierModel, params: InitialisedParams, vocabulary: Path) -> dict[str, Any]:
    """Load a language model's embeddings and layers into the model. Returns the provenance to record.

    vocabulary: the classifier's tokenizer.json. Raises UserError (one line) if architecture or vocabulary differ.
    """
    folder = Path(params.pretrained)
    config = read_json(folder / CONFIG)
    their = config.get("model") if isinstance(config, dict) else None
    if not isinstance(their, dict) or "vocabulary_sha256" not in config:
        raise UserError(f"{folder} is not a trained language model: set model.pretrained to the folder of one")
    _require_same(folder, params, their)
    if config["vocabulary_sha256"] != sha256(vocabulary):
        raise UserError(
            f"{folder} has another vocabulary than {vocabulary}: set vocab.source to `built`, and vocab.path to the"
            " folder of the language model's vocabulary, such as data/language/vocab"
        )
    _put(model, read_weights(folder), folder)
    return {"path": params.pretrained, "sha256": sha256(folder / WEIGHTS), "config": config}


def _require_same(folder: Path, params: InitialisedParams, their: dict[str, Any]) -> None:
    if their.get("objective") == "causal":
        raise UserError(
            f"{folder} is a causal model, whose tokens do not see those after them, as a classifier's do: set"
            " language.model.objective to `masked`"
        )
    for name in _SAME:
        if (own := getattr(params, name)) != their.get(name):
            raise UserError(f"model.{name} is {own}, but {folder} has {their.get(name)}: set it to this value")
    if params.positions == "learned" and params.max_length + (params.pooling == "cls") > int(their["max_length"]):
        raise UserError(
            f"model.max_length is {params.max_length}, but {folder} has learned {their['max_length']} positions: lower"
            " it, or pretrain with others"
        )


def _put(model: ClassifierModel, state: dict[str, Tensor], folder: Path) -> None:
    """Copy embeddings and layers; tokens and positions that only one model has, such as [CLS], are left unchanged."""
    own = {name: tensor for name, tensor in model.state_dict().items() if name.startswith(_STACK)}
    if missing := sorted(own.keys() - state.keys()):
        raise UserError(f"{folder} has no weights `{missing[0]}`: train it again")
    for name, tensor in own.items():
        given = state[name]
        rows = min(len(tensor), len(given)) if name in (_TOKENS, _TABLE) else len(tensor)
        if name == _TOKENS:  # [CLS] and [MASK] may both follow the vocabulary
            rows = min(rows, model.config.size)
        if tensor[:rows].shape != given[:rows].shape or (rows < len(tensor) and name == _TABLE):
            raise UserError(
                f"{folder} has weights `{name}` of {[*given.shape]}, and the classifier of {[*tensor.shape]}"
            )
        tensor[:rows].copy_(given[:rows])


def lr_scales(model: nn.Module, params: InitialisedParams) -> dict[str, float]:
    """Return the learning-rate factor of each pretrained parameter, by name: the lower its layer, the smaller."""
    found = {}
    for name, _ in model.named_parameters():
        if name.startswith(_STACK):
            parts = name.split(".")
            below = params.layers - int(parts[2]) if parts[1] == "layers" else 1 if parts[0] == "encoder" else None
            depth = params.layers + 1 if below is None else below
            found[name] = params.layer_decay**depth
    return found
