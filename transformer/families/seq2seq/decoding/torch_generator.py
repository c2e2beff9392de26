"""Generation with a PyTorch translation model."""

from torch import Tensor

from transformer.encoded.vocabulary import Vocabulary
from transformer.families.seq2seq.nn.interface import Seq2SeqModel
from transformer.generation.torch_steps import TorchSteps


class TorchGenerator(TorchSteps):
    """A `Generator` that runs a translation model on its device."""

    def __init__(self, model: Seq2SeqModel, target: Vocabulary) -> None:
        super().__init__(model, never=(target.pad_id, target.begin_id))
        self._output = model.output
        self.positions = model.config.model.max_length
        self.source_pad_id = model.config.source_pad_id

    def _logits(self, states: Tensor) -> Tensor:
        logits: Tensor = self._output(states)
        return logits
