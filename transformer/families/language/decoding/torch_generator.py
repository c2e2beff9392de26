"""A causal PyTorch model as what generation needs."""

from torch import Tensor

from transformer.families.language.nn.model import LanguageTransformer
from transformer.generation.torch_steps import TorchSteps


class CausalGenerator(TorchSteps):
    """A causal language model on its device, as a `Generator`; the source of a text is what it begins with.

    The texts of a batch are equally long.
    """

    def __init__(self, model: LanguageTransformer, never: tuple[int, ...]) -> None:
        """never: the tokens that are never generated."""
        super().__init__(model, never)
        self._model = model
        self.positions = model.config.model.max_length
        self.source_pad_id = model.config.pad_id

    def _logits(self, states: Tensor) -> Tensor:
        return self._model.logits(states)
