"""What a causal model keeps of the tokens so far."""

from torch import Tensor

from transformer.nn.attention import KeyValue
from transformer.nn.layout import Cache


class PrefixCache(Cache):
    """The keys and values of every layer, which grow with each step."""

    def select(self, rows: Tensor) -> None:
        """Keep only these rows of the batch, in this order; rows: (B',), integer indices, repeats allowed."""
        self.held = {
            layer: KeyValue(held.key.index_select(0, rows), held.value.index_select(0, rows))
            for layer, held in self.held.items()
        }
