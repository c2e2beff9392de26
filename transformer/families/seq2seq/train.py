"""train: trains the encoder-decoder on the encoded pairs."""

from collections.abc import Callable
from typing import Self

from pydantic import model_validator
from torch import Tensor

from transformer.core.errors import UserError
from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import Task
from transformer.data.bpe_dropout import BpeDropout
from transformer.data.store import Ids
from transformer.data.vocabulary import Vocabulary, read_vocabularies
from transformer.families.seq2seq.interface import AnySeq2SeqParams, Seq2SeqConfig, Seq2SeqModel
from transformer.families.seq2seq.network import build_model
from transformer.families.seq2seq.pairs import EncodedPairs, next_token_states, perplexity, scoring
from transformer.families.seq2seq.training_params import Seq2SeqTrainParams
from transformer.nn.device import prepare
from transformer.nn.dropout import drop_tokens, token_cutoff
from transformer.nn.kernels.cross_entropy import r_drop, simcut
from transformer.nn.objective import SecondPass, next_token_objective
from transformer.training.batches import BatchLoss, CorpusTraining, Opened
from transformer.training.stage import TrainStageParams, train_and_write


class Params(TrainStageParams):
    """The stage's parameters."""

    model: AnySeq2SeqParams
    train: Seq2SeqTrainParams

    @model_validator(mode="after")
    def _two_passes_would_read_two_targets(self) -> Self:
        name = "r_drop" if self.train.r_drop else "simcut"
        if getattr(self.train, name) and getattr(self.model, "teacher_forcing", 1.0) < 1:
            raise ValueError(f"train.{name} compares two passes over one target: model.teacher_forcing must be 1")
        return self


class Seq2SeqTraining(CorpusTraining[EncodedPairs, Seq2SeqModel]):
    """Training on sentence pairs."""

    params: Seq2SeqTrainParams

    def build(self) -> Seq2SeqModel:
        """Return a new model with weights drawn from torch's generator."""
        return build_model(self.train.config)

    def rows(self, epoch: int) -> EncodedPairs:
        """Return the training pairs of an epoch; in the first epochs, all pairs in both directions."""
        return self.train.both_directions() if epoch <= self.params.bidirectional_epochs else self.train

    def cost(self, epoch: int) -> int:
        """Return the relative time of an update in this epoch, for the estimated time left."""
        return 2 if self.params.compares_passes(epoch) else 1

    def loss(self, rows: Ids) -> BatchLoss:
        """Return the summed loss of the next target tokens, without padding."""
        source, target = self.epoch_rows.batch(rows, self.compute.device)
        places = self.epoch_rows.places(rows, self.compute.device) if self.pads else None
        pad_id, share = self.model.config.source_pad_id, self.params.word_dropout

        def predict() -> tuple[Tensor, Tensor]:
            return next_token_states(self.model, drop_tokens(source, pad_id, share), target, places)

        summed = next_token_objective(
            predict, self.model.output, smoothing=self.params.label_smoothing, second=self._second(predict)
        )
        return BatchLoss(*summed, tokens=self.tokens(rows))

    def _second(self, predict: Callable[[], tuple[Tensor, Tensor]]) -> SecondPass | None:
        """Return the pass to compare with the first, if this epoch has one."""
        if not self.params.compares_passes(self.epoch):
            return None
        if self.params.r_drop:
            return SecondPass(predict, r_drop(self.params.r_drop))

        def predict_cut() -> tuple[Tensor, Tensor]:
            with token_cutoff(self.model.token_tables(), self.params.cutoff):
                return predict()

        return SecondPass(predict_cut, simcut(self.params.simcut))

    def validate(self) -> dict[str, float]:
        """Return loss, perplexity and accuracy per target token, in fp32."""
        scored = scoring(self.model, self.compute.device)
        loss, accuracy = self.validation.score(self.params.validation_rows, scored)
        return {
            "validation_loss": loss,
            "validation_perplexity": perplexity(loss),
            "validation_accuracy": accuracy,
        }


def run(task: Task, params: Params, paths: Paths, observer: Observer) -> dict[str, float]:
    """Train, and write the model and its metrics, final and per epoch. Returns the history row of the kept weights."""
    return train_and_write(open_training, task, params, paths, observer)


def open_training(task: Task, params: Params, paths: Paths, observer: Observer) -> Opened:
    """Build the model and open its data. Raises UserError if an input is missing or does not fit."""
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
    if params.train.too_long == "leave_out":
        train = train.fitting()
    _require_one_vocabulary(params, source, target)
    dropout = BpeDropout.open(paths.vocab, params.train.seed)
    training = Seq2SeqTraining(train, validation, params.train, compute, dropout)
    train.report(observer)
    return Opened(
        trainable=training,
        config=config,
        params=params.train,
        compute=compute,
        truncated=train.truncated,
        left_out=train.left_out,
    )


def _require_one_vocabulary(params: Params, source: Vocabulary, target: Vocabulary) -> None:
    """Raise UserError if separate vocabularies are used with shared embeddings or both directions."""
    if source.tokenizer.to_str() == target.tokenizer.to_str():
        return
    ways = {
        "train.bidirectional_epochs": (params.train.bidirectional_epochs, "bidirectional_epochs to 0"),
        "model.tie_embeddings `all`": (
            getattr(params.model, "tie_embeddings", "none") == "all",
            "tie_embeddings to `target`",
        ),
    }
    for name, (asked, way_out) in ways.items():
        if asked:
            raise UserError(f"{name} needs one vocabulary for both languages: set vocab.joint to true, or {way_out}")
