"""Translation with PyTorch."""

from pathlib import Path

import torch

from transformer.checkpoint.device import in_turns
from transformer.checkpoint.trained import load_config, load_weights
from transformer.encoded.vocabulary import read_vocabularies, require_size
from transformer.families.seq2seq.decoding.config import DecodingParams
from transformer.families.seq2seq.decoding.decode import Search
from transformer.families.seq2seq.decoding.torch_generator import TorchGenerator
from transformer.families.seq2seq.decoding.translator import Translator
from transformer.families.seq2seq.nn.config import Seq2SeqConfig
from transformer.families.seq2seq.nn.model import build_model


class _Search(Search):
    """Search for one thread at a time."""

    __call__ = in_turns(Search.__call__)


class TorchTranslator(Translator):
    """A translator with access to its network."""

    def __init__(
        self, trained: Path, vocab: Path, pretokenizer: Path, decoding: DecodingParams, device: torch.device
    ) -> None:
        """trained, vocab: outputs of train and build_vocab; pretokenizer: the folder with `pretokenizer.json`.

        Raises UserError if one of them is missing or broken.
        """
        config = load_config(trained, Seq2SeqConfig)
        self.model = build_model(config)
        load_weights(trained, self.model)
        self.model.to(device)
        vocabularies = read_vocabularies(vocab, "source", "target")
        require_size(vocabularies["source"], config.source_size, vocab)
        require_size(vocabularies["target"], config.target_size, vocab)
        self.generator = TorchGenerator(self.model, vocabularies["target"])
        super().__init__(_Search(self.generator, vocabularies["target"]), vocabularies, pretokenizer, decoding)
