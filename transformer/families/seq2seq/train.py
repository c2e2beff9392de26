"""train: trains the encoder-decoder on the encoded pairs."""

from collections.abc import Sequence

import torch

from transformer.checkpoint.device import Compute, prepare
from transformer.core.observer import Observer
from transformer.core.task import Task
from transformer.encoded.batching import Ids
from transformer.encoded.bpe_dropout import BpeDropout
from transformer.encoded.vocabulary import read_vocabularies
from transformer.families.seq2seq.data.encoded import EncodedPairs, next_token_states, perplexity
from transformer.families.seq2seq.nn.config import AnySeq2SeqParams, Seq2SeqConfig
from transformer.families.seq2seq.nn.model import build_model
from transformer.nn.dropout import drop_tokens
from transformer.training.batches import pieces_of_like_length, random_batches
from transformer.training.config import TrainParams
from transformer.training.objective import next_token_objective
from transformer.training.stage import TrainingPaths, TrainStageParams, train_and_write
from transformer.training.update import BatchLoss


class Params(TrainStageParams):
    """The stage's parameters."""

    model: AnySeq2SeqParams


class Seq2SeqTraining:
    """What the training loop needs: batches, their loss and validation."""

    def __init__(
        self,
        config: Seq2SeqConfig,
        train: EncodedPairs,
        validation: EncodedPairs,
        params: TrainParams,
        compute: Compute,
        dropout: BpeDropout | None,
    ) -> None:
        self.train, self.validation, self.params, self.compute = train, validation, params, compute
        self.dropout, self.seen = dropout, train
        torch.manual_seed(params.seed)
        self.model = build_model(config).to(compute.device)
        self.d_model = self.model.d_model

    def batches(self, epoch: int) -> Sequence[Ids]:
        """All pairs in a random order."""
        self.seen = self.train.resegmented(self.dropout, epoch)
        return random_batches(self.train.lengths.max(axis=1), self.params, epoch)

    def pieces(self, rows: Ids) -> Sequence[Ids]:
        """As `Learner.pieces`."""
        pads = self.model.pads(self.compute.device)
        return pieces_of_like_length(rows, self.train.lengths.max(axis=1), self.params) if pads else [rows]

    def loss(self, rows: Ids) -> BatchLoss:
        """The summed loss of the next target tokens, without padding."""
        source, target = self.seen.batch(rows, self.compute.device)
        places = self.seen.places(rows, self.compute.device) if self.model.pads(self.compute.device) else None
        pad_id, share = self.model.config.source_pad_id, self.params.word_dropout
        summed = next_token_objective(
            lambda: next_token_states(self.model, drop_tokens(source, pad_id, share), target, places),
            self.model.output,
            self.params,
        )
        return BatchLoss(*summed, tokens=int(self.train.lengths[rows].sum()))

    def validate(self) -> dict[str, float]:
        """Loss, perplexity and accuracy per target token, in fp32."""
        loss, accuracy = self.validation.score(self.model, self.params.validation_rows, self.compute.device)
        return {
            "validation_loss": loss,
            "validation_perplexity": perplexity(loss),
            "validation_accuracy": accuracy,
        }


def run(task: Task, params: Params, *, paths: TrainingPaths, observer: Observer) -> dict[str, float]:
    """Train; write the model, its metrics and those of every epoch. Returns the history row of the kept weights."""
    compute = prepare(params.hardware)
    source, target = read_vocabularies(paths.vocab, "source", "target").values()
    config = Seq2SeqConfig(
        model=params.model,
        source_size=source.size,
        target_size=target.size,
        source_pad_id=source.pad_id,
        target_pad_id=target.pad_id,
    )
    train, validation = (EncodedPairs(paths.encoded / split, config) for split in ("train", "validation"))
    dropout = BpeDropout.open(paths.vocab, params.train.seed)
    training = Seq2SeqTraining(config, train, validation, params.train, compute, dropout)
    train.report(observer)
    return train_and_write(training, config, params, compute, paths, truncated=train.truncated, observer=observer)
