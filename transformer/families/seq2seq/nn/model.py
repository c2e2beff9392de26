"""The encoder-decoder Transformer, "Attention Is All You Need" (Vaswani et al. 2017)."""

from torch import Tensor, nn

from transformer.families.seq2seq.nn.cache import DecoderCache
from transformer.families.seq2seq.nn.config import Seq2SeqConfig, Seq2SeqParams
from transformer.families.seq2seq.nn.decoder import Decoder
from transformer.families.seq2seq.nn.interface import Seq2SeqModel
from transformer.nn.attention import padding_mask
from transformer.nn.layers import Encoder, initialise
from transformer.nn.positions import TokenEmbedding
from transformer.nn.ragged import Ragged, groups_of_like_length


class Seq2SeqTransformer(Seq2SeqModel):
    """Source ids in, target logits out."""

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        params = config.model
        assert isinstance(params, Seq2SeqParams)
        self.config = config
        source = nn.Embedding(config.source_size, params.d_model)
        self.source_embedding = TokenEmbedding(source, params)
        self.encoder = Encoder(params.encoder_layers, params)
        target = source if params.tie_embeddings == "all" else nn.Embedding(config.target_size, params.d_model)
        self.target_embedding = TokenEmbedding(target, params)
        self.decoder = Decoder(params.decoder_layers, params)
        self.output = nn.Linear(params.d_model, config.target_size)
        initialise(self, params)
        if params.tie_embeddings != "none":
            self.output.weight = target.weight

    def forward(self, source_ids: Tensor, target_ids: Tensor) -> Tensor:
        """The decoder's states (B, T, C) for source_ids (B, S) and the target so far, target_ids (B, T).

        `output` turns states into logits (B, T, V).
        """
        encoded, mask = self.encode(source_ids)
        states: Tensor = self.decoder(self.target_embedding(target_ids), encoded, mask)
        return states

    def real_states(self, source_ids: Tensor, target_ids: Tensor) -> tuple[Tensor, Tensor]:
        """As `Seq2SeqModel.real_states`; CPUs compute nothing for padding."""
        if source_ids.device.type != "cpu":
            return super().real_states(source_ids, target_ids)
        groups = groups_of_like_length((source_ids != self.config.source_pad_id).sum(dim=1))
        source = Ragged(source_ids, self.config.source_pad_id, groups)
        target = Ragged(target_ids, self.config.target_pad_id, groups)
        encoded = self.encoder(self.source_embedding.at(source.token_ids, source.positions), None, source)
        embedded = self.target_embedding.at(target.token_ids, target.positions)
        return self.decoder.forward_ragged(embedded, encoded, target, source), target.real

    def encode(self, source_ids: Tensor) -> tuple[Tensor, Tensor]:
        """The encoded source (B, S, C) and its padding mask (B, 1, 1, S)."""
        mask = padding_mask(source_ids, self.config.source_pad_id)
        return self.encoder(self.source_embedding(source_ids), mask), mask

    def start(self, source_ids: Tensor) -> DecoderCache:
        """Encode source_ids (B, S) and make ready for `step`."""
        return self.decoder.start(*self.encode(source_ids))

    def step(self, target_ids: Tensor, cache: DecoderCache) -> Tensor:
        """The states (B, C) after one more target token a row, target_ids (B,); the cache grows by it."""
        embedded = self.target_embedding(target_ids[:, None], start=cache.length)
        return self.decoder.step(embedded, cache)[:, 0]
