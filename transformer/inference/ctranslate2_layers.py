"""Fill the specifications of CTranslate2's layers with a Transformer's weights."""

from pathlib import Path
from typing import Any

import numpy as np
from ctranslate2.specs import Activation, TransformerEncoderSpec
from ctranslate2.specs.model_spec import NumpyVariable, Variable, visit_spec
from numpy.typing import NDArray
from torch import Tensor, nn

from transformer.data.vocabulary import Vocabulary
from transformer.nn.attention import MultiHeadAttention
from transformer.nn.config import TransformerParams
from transformer.nn.layers import Encoder
from transformer.nn.positions import TokenEmbedding

Array = NDArray[Any]
_SEVEN_BITS = 63  # the largest number
_ACTIVATIONS = {"relu": Activation.RELU, "gelu": Activation.GELU, "gelu_tanh": Activation.GELUTanh}


def array(tensor: Tensor) -> Array:
    """Copy a tensor to float32: CTranslate2 quantizes its arrays in place, which would change the model's own."""
    found: Array = tensor.detach().float().cpu().numpy().copy()
    return found


def position_table(embedding: TokenEmbedding) -> Array | None:
    """Return the vector added at each position, (L, C); None if there is none."""
    table: Any = getattr(embedding.positions, "table", None)
    return None if table is None else array(table.weight if isinstance(table, nn.Embedding) else table)


def stack_options(params: TransformerParams) -> dict[str, Any]:
    """Return the options of CTranslate2's encoder or decoder specification besides its size."""
    rotary = params.dimension_of_head if params.positions == "rotary" else None
    return {
        "num_heads": params.heads,
        "pre_norm": params.norm == "pre",
        "activation": _ACTIVATIONS[params.activation],
        "head_dim": params.dimension_of_head,
        "rotary_dim": rotary,
        "rotary_interleave": True,
    }


def encoder_spec(layers: int, params: TransformerParams, embedding: TokenEmbedding, encoder: Encoder) -> Any:
    """Make an encoder specification with its weights."""
    spec = TransformerEncoderSpec(layers, **stack_options(params))
    fill_embedding(spec, spec.embeddings[0], embedding, params)
    for theirs, ours in zip(spec.layer, encoder.layers, strict=True):
        fill_layer(theirs, ours)
    if params.norm == "pre":
        fill_norm(spec.layer_norm, encoder.norm)
    return spec


def fill_embedding(stack: Any, embeddings: Any, ours: TokenEmbedding, params: TransformerParams) -> None:
    """Fill embeddings and positions; always a table, since CTranslate2's own sinusoids differ from the paper's."""
    embeddings.weight = array(ours.tokens.weight)
    stack.scale_embeddings = params.scale_embeddings
    if params.positions != "rotary":
        table = position_table(ours)
        none = np.zeros((params.max_length + 1, params.d_model), dtype=np.float32)  # one more for a leading [CLS]
        stack.position_encodings.encodings = none if table is None else table


def fill_layer(theirs: Any, ours: Any) -> None:
    """Fill self-attention and feed-forward network of an encoder or decoder layer."""
    attention: MultiHeadAttention = ours.attention
    fill_linear(theirs.self_attention.linear[0], attention.query, attention.key, attention.value)
    fill_linear(theirs.self_attention.linear[1], attention.output)
    fill_norm(theirs.self_attention.layer_norm, ours.attention_residual.norm)
    fill_linear(theirs.ffn.linear_0, ours.feed_forward.inner)
    fill_linear(theirs.ffn.linear_1, ours.feed_forward.outer)
    fill_norm(theirs.ffn.layer_norm, ours.feed_forward_residual.norm)


def fill_linear(theirs: Any, *ours: nn.Linear) -> None:
    """Fill one matrix with the concatenation of several."""
    theirs.weight = np.concatenate([array(linear.weight) for linear in ours])
    theirs.bias = np.concatenate([array(linear.bias) for linear in ours])


def fill_norm(theirs: Any, ours: Any) -> None:
    """Fill a layer normalization."""
    theirs.gamma, theirs.beta = array(ours.weight), array(ours.bias)


def entries(vocabulary: Vocabulary, *more: str) -> list[str]:
    """Return the entries in id order, followed by `more`."""
    return [*vocabulary.entries(range(vocabulary.size)), *more]


def save(spec: Any, folder: Path, vocabulary: Vocabulary, *, int8: bool) -> None:
    """Write a filled specification into `folder`, which must not exist. vocabulary: the model's output or input."""
    special = vocabulary.specials
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = special.unknown, special.begin, special.end
    spec.config.layer_norm_epsilon = nn.LayerNorm(1).eps
    spec.validate()
    spec.optimize()
    if int8:
        visit_spec(spec, _quantize)
    folder.mkdir(parents=True)
    spec.save(str(folder))


def _quantize(spec: Any, name: str, value: Any) -> None:
    """Quantize a matrix to 8 bits with one scale per row, like CTranslate2's own quantization, but use only 7 bits.

    Without VNNI instructions, products of 8 bits overflow: answers on such a processor would differ from the
    model's.
    """
    key = name.rpartition("/")[2]
    if not isinstance(value, Variable) or value.is_scalar() or not hasattr(spec, f"{key}_scale"):
        return
    weights = value.numpy()
    largest = np.abs(weights).max(axis=1)
    scale = (_SEVEN_BITS / np.where(largest > 0, largest, _SEVEN_BITS)).astype(np.float32)
    setattr(spec, key, NumpyVariable(np.rint(weights * scale[:, None]).astype(np.int8)))
    setattr(spec, f"{key}_scale", NumpyVariable(scale))
