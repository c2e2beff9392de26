"""The network of each kind of language model."""

from transformer.families.language.interface import LanguageConfig, ReformerParams, TransformerXLParams
from transformer.families.language.network import LanguageNetwork, LanguageTransformer
from transformer.families.language.reformer import Reformer
from transformer.families.language.transformer_xl import TransformerXL


def build_network(config: LanguageConfig) -> LanguageNetwork:
    """Make the network that `config.model` describes."""
    if isinstance(config.model, TransformerXLParams):
        return TransformerXL(config)
    if isinstance(config.model, ReformerParams):
        return Reformer(config)
    return LanguageTransformer(config)


def use(network: LanguageNetwork, *, memory_length: int | None, hash_rounds: int | None) -> None:
    """Set how a trained network reads texts; None leaves what it was trained with."""
    if isinstance(network, TransformerXL) and memory_length is not None:
        network.memory_length = memory_length
    if isinstance(network, Reformer) and hash_rounds is not None:
        network.encoder.hashing = network.encoder.hashing._replace(rounds=hash_rounds)
