"""What a recurrent decoder keeps between two steps."""

from dataclasses import dataclass

from torch import Tensor

from transformer.families.seq2seq.nn.recurrent_attention import Memory
from transformer.nn.recurrent import State


@dataclass
class RecurrentCache:
    """The states so far, and what the source gives to every step."""

    layers: list[State]
    """By decoder layer, (B, C) each."""
    fed: Tensor
    """What the next step's cell reads beside the token: the fixed context (B, M), or Luong's last attentional vector
    (B, C). Bahdanau's context is made in the step."""
    memory: Memory | None
    """What attention reads; None without attention."""

    def select(self, rows: Tensor) -> None:
        """Keep only these rows of the batch, in this order; rows: (B',), integer indices, repeats allowed."""
        self.layers = [tuple(part[rows] for part in state) for state in self.layers]
        self.fed = self.fed[rows]
        if self.memory is not None:
            self.memory = Memory(*(part[rows] for part in self.memory))

    def shorten(self, rows: int) -> None:
        """Keep only the first `rows` rows."""
        if rows < len(self.fed):
            self.layers = [tuple(part[:rows] for part in state) for state in self.layers]
            self.fed = self.fed[:rows]
            if self.memory is not None:
                self.memory = Memory(*(part[:rows] for part in self.memory))
