"""What each attention head is worth: what its removal costs (Michel et al. 2019, section 3.2)."""

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import Field
from torch import Tensor, nn

from transformer.core.files import write_table
from transformer.core.observer import Observer
from transformer.core.validation import Section
from transformer.evaluation.bootstrap import Floats, interval
from transformer.nn.attention import MultiHeadAttention
from transformer.nn.hashed import HashedAttention

TABLE = "tables/heads.tsv"
COLUMNS = ("attention", "head", "cost", "low", "high")
_DIGITS = 6
_LAYER = re.compile(r"(?P<side>\w+)\.layers\.(?P<number>\d+)\.(?P<kind>\w+)")

Measured = tuple[float, Floats]
"""A score that is better the lower it is, and its bootstrap samples."""


class HeadParams(Section):
    """How the attention heads of a model are judged."""

    head_texts: int = Field(ge=0)
    """Validation texts on which each attention head is removed in turn, to see what that costs; 0 for none."""


def write_head_costs(folder: Path, model: nn.Module, measure: Callable[[], Measured], observer: Observer) -> None:
    """Write heads.tsv into `folder`: what the score loses without each head, with its 95 % interval."""
    heads = [(name, part, head) for name, part in _attentions(model) for head in range(part.heads)]

    def rows() -> Iterator[tuple[object, ...]]:
        whole, drawn = measure()
        for name, part, head in observer.progress(heads, total=len(heads), what="heads"):
            with without_head(part, head):
                score, own = measure()
            ends = interval(own - drawn) or (math.nan, math.nan)
            yield name, head + 1, *(round(each, _DIGITS) for each in (score - whole, *ends))

    write_table(folder / Path(TABLE).name, COLUMNS, rows())


def _attentions(model: nn.Module) -> Iterator[tuple[str, MultiHeadAttention | HashedAttention]]:
    for name, part in model.named_modules():
        if isinstance(part, MultiHeadAttention | HashedAttention) and (found := _LAYER.match(name)):
            kind = "cross-attention" if found["kind"] == "source_attention" else "self-attention"
            yield f"{found['side']} layer {int(found['number']) + 1}, {kind}", part


@contextmanager
def without_head(attention: MultiHeadAttention | HashedAttention, head: int) -> Iterator[None]:
    """Leave what one head reads out of the attention's output, inside the block."""
    width = attention.output.in_features // attention.heads

    def cut(module: nn.Module, given: tuple[Tensor, ...]) -> Any:
        kept = given[0].clone()
        kept[..., head * width : (head + 1) * width] = 0.0
        return (kept,)

    handle = attention.output.register_forward_pre_hook(cut)
    try:
        yield
    finally:
        handle.remove()
