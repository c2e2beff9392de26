"""Our translation model in CTranslate2, an inference engine in C++."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
from ctranslate2.specs import Activation, TransformerSpec
from torch import nn

from benchmarks.peers.positions import require_added
from transformer.encoded.batching import Ids
from transformer.encoded.vocabulary import Vocabulary
from transformer.families.seq2seq.nn.config import Seq2SeqParams
from transformer.families.seq2seq.nn.model import Seq2SeqTransformer
from transformer.nn.attention import MultiHeadAttention
from transformer.nn.layers import FeedForward
from transformer.nn.positions import TokenEmbedding

_ACTIVATIONS = {"relu": Activation.RELU, "gelu": Activation.GELU}


class CTranslate2Translator:
    """A converted model and its vocabularies."""

    def __init__(self, folder: Path, source: Vocabulary, target: Vocabulary, *, compute: str, threads: int) -> None:
        """folder: written by `convert`; compute: `float32` or `int8`, the type that weights are converted to."""
        self._translator = ctranslate2.Translator(
            str(folder), device="cpu", compute_type=compute, inter_threads=1, intra_threads=threads
        )
        self._source_tokens, self._target = _tokens(source), target

    def decode(self, sources: Sequence[Ids], *, beams: int, limit: int, batch_size: int) -> list[list[int]]:
        """The output ids for each source, at most `limit` tokens, without begin and end tokens."""
        tokens = [[self._source_tokens[i] for i in source] for source in sources]
        results = self._translator.translate_batch(
            tokens,
            beam_size=beams,
            length_penalty=1.0,
            min_decoding_length=0,
            max_decoding_length=limit,
            max_batch_size=batch_size,
            max_input_length=0,
        )
        entries = self._target.tokenizer.get_vocab()
        return [[entries[token] for token in result.hypotheses[0]] for result in results]


def convert(model: Seq2SeqTransformer, source: Vocabulary, target: Vocabulary, folder: Path) -> None:
    """Write our weights as a CTranslate2 model into `folder`, which must not exist yet.

    Its inputs begin and end with our special tokens. Its own sinusoidal table differs from the paper's, so positions
    are always exported. Raises UserError unless positions are added to the embeddings.
    """
    params = model.config.model
    assert isinstance(params, Seq2SeqParams)
    require_added(params)
    spec = TransformerSpec.from_config(
        (params.encoder_layers, params.decoder_layers),
        params.heads,
        pre_norm=params.norm == "pre",
        activation=_ACTIVATIONS[params.activation],
    )
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = (
        target.specials.unknown,
        target.specials.begin,
        target.specials.end,
    )
    spec.config.decoder_start_token = target.specials.begin
    spec.register_source_vocabulary(_tokens(source))
    spec.register_target_vocabulary(_tokens(target))
    _embedding(spec.encoder, spec.encoder.embeddings[0], model.source_embedding, params)
    _embedding(spec.decoder, spec.decoder.embeddings, model.target_embedding, params)
    for theirs, ours in zip(spec.encoder.layer, model.encoder.layers, strict=True):
        _self_attention(theirs, ours)
    for theirs, ours in zip(spec.decoder.layer, model.decoder.layers, strict=True):
        _self_attention(theirs, ours)
        _source_attention(theirs.attention, ours)
    if params.norm == "pre":
        _norm(spec.encoder.layer_norm, model.encoder.norm)
        _norm(spec.decoder.layer_norm, model.decoder.norm)
    _linear(spec.decoder.projection, model.output)
    spec.validate()
    spec.optimize()
    folder.mkdir(parents=True)
    spec.save(str(folder))


def _embedding(stack: Any, embeddings: Any, ours: TokenEmbedding, params: Seq2SeqParams) -> None:
    embeddings.weight = _array(ours.tokens.weight)
    stack.scale_embeddings = params.scale_embeddings
    table = ours.positions.table  # an nn.Embedding if positions are learned, else the table itself
    stack.position_encodings.encodings = _array(table.weight if isinstance(table, nn.Embedding) else table)


def _self_attention(theirs: Any, ours: Any) -> None:
    attention: MultiHeadAttention = ours.attention
    _linear(theirs.self_attention.linear[0], attention.query, attention.key, attention.value)
    _linear(theirs.self_attention.linear[1], attention.output)
    _norm(theirs.self_attention.layer_norm, ours.attention_residual.norm)
    feed_forward: FeedForward = ours.feed_forward
    _linear(theirs.ffn.linear_0, feed_forward.inner)
    _linear(theirs.ffn.linear_1, feed_forward.outer)
    _norm(theirs.ffn.layer_norm, ours.feed_forward_residual.norm)


def _source_attention(theirs: Any, ours: Any) -> None:
    attention: MultiHeadAttention = ours.source_attention
    _linear(theirs.linear[0], attention.query)
    _linear(theirs.linear[1], attention.key, attention.value)
    _linear(theirs.linear[2], attention.output)
    _norm(theirs.layer_norm, ours.source_residual.norm)


def _linear(theirs: Any, *ours: nn.Linear) -> None:
    theirs.weight = np.concatenate([_array(linear.weight) for linear in ours])
    theirs.bias = np.concatenate([_array(linear.bias) for linear in ours])


def _norm(theirs: Any, ours: Any) -> None:
    theirs.gamma, theirs.beta = _array(ours.weight), _array(ours.bias)


def _array(tensor: Any) -> Any:
    return tensor.detach().float().cpu().numpy()


def _tokens(vocabulary: Vocabulary) -> list[str]:
    """The vocabulary entries in the order of their ids."""
    entries: dict[str, int] = vocabulary.tokenizer.get_vocab()
    return sorted(entries, key=entries.__getitem__)
