"""The seed's translation model on the encoded store, ours and the peers'."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.harness import Options
from benchmarks.loops import PeerLoop
from benchmarks.workspace import Workspace, prepared
from transformer.data.store import Ids
from transformer.data.vocabulary import Vocabulary, read_vocabularies
from transformer.families.seq2seq.interface import Seq2SeqConfig
from transformer.families.seq2seq.pairs import EncodedPairs
from transformer.families.seq2seq.train import Params, Seq2SeqTraining
from transformer.nn.device import Compute


class Task(NamedTuple):
    workspace: Workspace
    params: Params
    config: Seq2SeqConfig
    train: EncodedPairs
    validation: EncodedPairs
    vocabularies: Mapping[str, Vocabulary]

    def tokens(self, rows: Ids) -> int:
        return int(self.train.lengths[rows].sum())


def open_task(options: Options) -> Task:
    """The encoded store and the seed's parameters. Raises UserError."""
    workspace = prepared("translation", options.data)
    params, data = workspace.params("translation", Params), workspace.data("translation")
    vocabularies = read_vocabularies(data / "vocab")
    source, target = vocabularies["source"], vocabularies["target"]
    config = Seq2SeqConfig(
        model=params.model,
        source_size=source.size,
        target_size=target.size,
        source_pad_id=source.pad_id,
        target_pad_id=target.pad_id,
    )
    train, validation = (EncodedPairs(data / "encoded" / split, config) for split in ("train", "validation"))
    return Task(workspace, params, config, train, validation, vocabularies)


def our_training(task: Task, compute: Compute) -> Seq2SeqTraining:
    """A training task with a freshly initialised model of ours."""
    return Seq2SeqTraining(task.train, task.validation, task.params.train, compute, None)


def peer_loop(model: nn.Module, task: Task, device: torch.device) -> PeerLoop:
    """A peer's training loop: cross-entropy over all positions of the padded batch, ignoring padding."""

    def loss(rows: Ids) -> Tensor:
        source, target = task.train.batch(rows, device)
        logits = model(source, target[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=task.config.target_pad_id)

    return PeerLoop(model, loss, task.params.train, device)
