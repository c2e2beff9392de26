"""The gradient of an update: its parts, summed over the processes of the training run."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from transformer.checkpoint.device import Compute
from transformer.core.errors import UserError, is_out_of_memory
from transformer.core.observer import Observer
from transformer.encoded.batching import Ids
from transformer.training.config import TrainParams
from transformer.training.group import Alone, Group
from transformer.training.shards import TreeSum, cut, seed_part
from transformer.training.trainable import BatchLoss, Learner


class Gradients:
    """Computes gradients, with the handling of batches that do not fit into memory."""

    def __init__(
        self, learner: Learner, params: TrainParams, compute: Compute, observer: Observer, group: Group | None = None
    ) -> None:
        """group: the processes that share each update; None for this one alone."""
        self._learner, self._params, self._compute, self._observer = learner, params, compute, observer
        self._parameters = [parameter for parameter in learner.model.parameters() if parameter.requires_grad]
        self.group = group or Alone()
        self.pieces = 1
        """Number of pieces that each part of a batch is split into to fit into memory."""

    def __call__(self, batches: Sequence[Ids], step: int) -> list[BatchLoss]:
        """The losses of the update's parts; leaves the gradient of the mean loss of all batches in the parameters.

        All processes of the group call it with the same arguments, and all get the same.

        When memory runs out and `out_of_memory` is `halve`, parts are split from then on. The gradient is still that
        of the whole update, except for summation order and different dropout masks. Raises UserError when that
        does not help, LostError when another process has ended.
        """
        each = self._params.shards // self.group.size
        first = self.group.rank * each
        parts = cut(batches, self._params.shards)
        rows = sum(map(len, batches))
        while True:
            failure = None
            try:
                losses = self._add_up(parts[first : first + each], step, first, rows)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                failure = error
            if not self.group.any(failure is not None):
                break
            self._halve(max(len(rows) for part in parts for rows in part), failure)
        if self.group.size > 1:
            losses = self._exchanged(losses)
        # Known only now: BPE-dropout decides in a batch how many tokens there are.
        share = rows / sum(loss.predicted for loss in losses)
        torch._foreach_mul_([parameter.grad for parameter in self._parameters if parameter.grad is not None], share)
        return losses

    def _add_up(self, parts: Sequence[list[Ids]], step: int, first: int, rows: int) -> list[BatchLoss]:
        """The losses of this process's parts; leaves the gradient of their sum, divided by `rows`, in the parameters.

        first: the number of the first part.
        """
        tree, losses = TreeSum(), []
        for number, part in enumerate(parts, start=first):
            self._forget()
            seed_part(self._params.seed, step, number)
            losses.append(self._part(part, rows))
            if self._params.shards > 1:
                tree.add([_gradient(parameter) for parameter in self._parameters])
        if self._params.shards > 1:
            self._put(tree.total())
        return losses

    def _part(self, part: Sequence[Ids], divisor: int) -> BatchLoss:
        """The loss of one part; adds its gradient to that of the parameters."""
        zero = torch.zeros((), device=self._compute.device)
        whole = BatchLoss(zero, zero, 0, 0)
        for rows in self._in_pieces(part):
            with self._compute.autocast():
                loss = self._learner.loss(rows)
            (loss.total / divisor).backward()  # type: ignore[no-untyped-call]
            total, nll = whole.total + loss.total.detach(), whole.nll + loss.nll
            whole = BatchLoss(total, nll, whole.predicted + loss.predicted, whole.tokens + loss.tokens)
        return whole

    def _in_pieces(self, part: Sequence[Ids]) -> Iterator[Ids]:
        for rows in part:
            for piece in self._learner.pieces(rows):
                yield from np.array_split(piece, min(self.pieces, len(piece)))

    def _halve(self, largest: int, failure: BaseException | None) -> None:
        """Split parts into twice as many pieces; all processes do. Raises UserError if that is not wanted or no use.

        largest: rows of the largest part; failure: None if memory ran out in another process.
        """
        self._forget()
        if self._params.out_of_memory == "stop" or self.pieces >= largest:
            raise UserError(_advice(largest, self.pieces)) from failure
        if self._compute.device.type == "cuda":
            torch.cuda.empty_cache()
        self.pieces *= 2
        self._observer.say(f"warning: out of memory: every batch is split into {self.pieces} from now on")

    def _exchanged(self, losses: Sequence[BatchLoss]) -> list[BatchLoss]:
        """The losses of all parts, given those of this process; leaves the gradient of all in the parameters."""
        tree = TreeSum()
        flat = torch.cat([_gradient(parameter).flatten() for parameter in self._parameters])
        for gradient in self.group.gather(flat):
            tree.add([gradient])
        pieces = torch.split(tree.total()[0], [parameter.numel() for parameter in self._parameters])
        self._put([piece.view_as(own) for piece, own in zip(pieces, self._parameters, strict=True)])
        sums = torch.stack([torch.stack((loss.total, loss.nll)) for loss in losses])
        counts = torch.tensor([[loss.predicted, loss.tokens] for loss in losses])
        every = torch.cat(self.group.gather(sums)), torch.cat(self.group.gather(counts)).tolist()
        return [BatchLoss(total, nll, *count) for (total, nll), count in zip(*every, strict=True)]

    def _put(self, gradients: Sequence[Tensor]) -> None:
        for parameter, gradient in zip(self._parameters, gradients, strict=True):
            parameter.grad = gradient

    def _forget(self) -> None:
        for parameter in self._parameters:
            parameter.grad = None


def _gradient(parameter: nn.Parameter) -> Tensor:
    """Zeros where there is none, as in a part without rows."""
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def _advice(rows: int, pieces: int) -> str:
    parts = f", split into {pieces}" if pieces > 1 else ""
    halve = "" if pieces > 1 else ", or set train.out_of_memory to halve"
    return (
        f"out of memory with a batch of {rows} rows{parts}: lower train.batch_size (and raise train.accumulation for"
        f" the same updates), model.max_length or the model's size{halve}"
    )
