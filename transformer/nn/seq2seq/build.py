"""The translation model that a configuration describes."""

from transformer.nn.seq2seq.config import Seq2SeqConfig
from transformer.nn.seq2seq.interface import Seq2SeqModel
from transformer.nn.seq2seq.model import Seq2SeqTransformer
from transformer.nn.seq2seq.recurrent import RecurrentSeq2Seq
from transformer.nn.seq2seq.recurrent_config import RecurrentParams


def build_model(config: Seq2SeqConfig) -> Seq2SeqModel:
    """A fresh model, its weights drawn from torch's generator."""
    if isinstance(config.model, RecurrentParams):
        return RecurrentSeq2Seq(config)
    return Seq2SeqTransformer(config)
