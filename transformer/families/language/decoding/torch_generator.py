"""Generation with a causal PyTorch model."""

from torch import Tensor

from transformer.families.language.nn.model import LanguageTransformer
from transformer.generation.torch_steps import TorchSteps


class CausalGenerator(TorchSteps):
    """A `Generator` that runs a causal language model on its device; the source is the prompt.

    The prompts of a batch have equal length.
    """

    def __init__(self, model: LanguageTransformer, never: tuple[int, ...]) -> None:
        """never: tokens that are never generated."""
        super().__init__(model, never)
        self._model = model
        self.positions = model.config.model.max_length
        self.source_pad_id = model.config.pad_id

    def _logits(self, states: Tensor) -> Tensor:
        return self._model.logits(states)
