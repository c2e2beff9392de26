"""The parameters of the recurrent classifier."""

from typing import Literal

from pydantic import Field

from transformer.nn.recurrent_config import RecurrentLayerParams


class RecurrentClassifierParams(RecurrentLayerParams):
    """`model` of a classification task, kind `recurrent`."""

    layers: int = Field(ge=1)
    pooling: Literal["last", "mean", "max"]
    """How token states become one state: the last of each direction, or the mean or maximum over real tokens."""
