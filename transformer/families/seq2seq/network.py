"""The encoder-decoder Transformer ("Attention Is All You Need", Vaswani et al. 2017), and `build_model`."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from transformer.families.seq2seq.interface import RecurrentParams, Seq2SeqConfig, Seq2SeqModel, Seq2SeqParams
from transformer.families.seq2seq.recurrent import RecurrentSeq2Seq
from transformer.nn.attention import KeyValue
from transformer.nn.evolved import EvolvedDecoder, EvolvedEncoder
from transformer.nn.kernels.attention import Mask
from transformer.nn.kernels.linear import Linear
from transformer.nn.layers import Decoder, Encoder, initialise
from transformer.nn.layout import Cache, Layout, Packed, Padded, bucket_by_length, selected
from transformer.nn.masks import padding_mask
from transformer.nn.positions import TokenEmbedding, embedding_positions


class DecoderCache(Cache):
    """Keys and values per layer: the target's grow with each step, the source's are projected once.

    Rows of one source (the hypotheses of a beam) share its keys and values as long as every source has the same number
    of adjacent rows.
    """

    def __init__(self, source: list[KeyValue], source_mask: Tensor) -> None:
        super().__init__()
        self.source = source
        """(N, H, S, D) each, by layer."""
        self.source_mask = source_mask
        """(N, 1, 1, S)."""
        self.rows_per_source = 1
        """B / N."""

    def select(self, rows: Tensor) -> None:
        """Keep only these rows of the batch, in this order; rows: (B',), integer indices, repeats allowed."""
        super().select(rows)
        owners = rows // self.rows_per_source
        runs, counts = torch.unique_consecutive(owners, return_counts=True)
        self.rows_per_source = int(counts[0]) if len(counts) and bool(counts.eq(counts[0]).all()) else 1
        kept = runs if self.rows_per_source > 1 else owners
        if len(kept) != len(self.source_mask) or bool(kept.diff().ne(1).any()):
            self.source = [selected(held, kept) for held in self.source]
            self.source_mask = self.source_mask[kept]


class Seq2SeqTransformer(Seq2SeqModel):
    """Maps source and target ids to target states, which `output` maps to logits."""

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        params = config.model
        assert isinstance(params, Seq2SeqParams)
        self.config = config
        source = nn.Embedding(config.source_size, params.d_model)
        self.source_embedding = TokenEmbedding(source, embedding_positions(params), params)
        evolved = params.layer == "evolved"
        self.encoder = (EvolvedEncoder if evolved else Encoder)(params.encoder_layers, params)
        target = source if params.tie_embeddings == "all" else nn.Embedding(config.target_size, params.d_model)
        self.target_embedding = TokenEmbedding(target, embedding_positions(params), params)
        self.decoder = (EvolvedDecoder if evolved else Decoder)(params.decoder_layers, params)
        self.output = Linear(params.d_model, config.target_size)
        initialise(self, params)
        if params.tie_embeddings != "none":
            self.output.weight = target.weight

    def pads(self, device: torch.device) -> bool:
        """True if batches are padded on this device: convolutions need the rows of a text side by side."""
        return isinstance(self.encoder, EvolvedEncoder) or super().pads(device)

    def token_tables(self) -> Sequence[nn.Embedding]:
        """Return the embeddings of source and target tokens."""
        return self.source_embedding.tokens, self.target_embedding.tokens

    def forward(self, source_ids: Tensor, target_ids: Tensor, *, packed: bool = False) -> Tensor:
        """Return the states (B, T, C) for source_ids (B, S) and target_ids (B, T); packed: (N, C), without padding."""
        source, target = self._layouts(source_ids, target_ids, packed=packed)
        return target.real(self._decode(target, self.encode(source), target.mask(source)))

    def start(self, source_ids: Tensor) -> DecoderCache:
        """Encode source_ids (B, S). Returns the cache for `step`."""
        source = Padded(source_ids, self.config.source_pad_id)
        return DecoderCache(self.decoder.project(self.encode(source)), padding_mask(source_ids, source.pad_id))

    def step(self, target_ids: Tensor, cache: DecoderCache) -> Tensor:
        """Append one target token per row, target_ids (B,), to the cache. Returns the states (B, C)."""
        target = Padded(target_ids[:, None], self.config.target_pad_id, cache)
        return self._decode(target, cache.source, cache.source_mask)[:, 0]

    def encode(self, source: Layout) -> Tensor:
        """Return the encoded source, (B, S, C) or (M, C), depending on the layout."""
        encoded: Tensor = self.encoder(self.source_embedding(source.token_ids, source.positions), source)
        return encoded

    def _decode(self, target: Layout, encoded: Tensor | Sequence[KeyValue], source_mask: Mask | None) -> Tensor:
        embedded = self.target_embedding(target.token_ids, target.positions)
        decoded: Tensor = self.decoder(embedded, target, encoded, source_mask)
        return decoded

    def _layouts(self, source_ids: Tensor, target_ids: Tensor, *, packed: bool) -> tuple[Layout, Layout]:
        source_pad, target_pad = self.config.source_pad_id, self.config.target_pad_id
        if not packed:
            return Padded(source_ids, source_pad), Padded(target_ids, target_pad)
        groups = bucket_by_length((source_ids != source_pad).sum(dim=1))
        return Packed(source_ids, source_pad, groups), Packed(target_ids, target_pad, groups)


def build_model(config: Seq2SeqConfig) -> Seq2SeqModel:
    """Return a new model with weights drawn from torch's default generator."""
    if isinstance(config.model, RecurrentParams):
        return RecurrentSeq2Seq(config)
    return Seq2SeqTransformer(config)
