"""The translation model that a configuration describes."""

from transformer.families.seq2seq.nn.config import Seq2SeqConfig
from transformer.families.seq2seq.nn.interface import Seq2SeqModel
from transformer.families.seq2seq.nn.model import Seq2SeqTransformer
from transformer.families.seq2seq.nn.recurrent import RecurrentSeq2Seq
from transformer.families.seq2seq.nn.recurrent_config import RecurrentParams


def build_model(config: Seq2SeqConfig) -> Seq2SeqModel:
    """A fresh model, its weights drawn from torch's generator."""
    if isinstance(config.model, RecurrentParams):
        return RecurrentSeq2Seq(config)
    return Seq2SeqTransformer(config)
