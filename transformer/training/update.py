"""One optimizer step, with the handling of non-finite values and of batches that do not fit into memory."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from transformer.checkpoint.device import Compute
from transformer.core.errors import UserError, is_out_of_memory
from transformer.core.observer import Observer
from transformer.encoded.batching import Ids
from transformer.training.config import TrainParams
from transformer.training.states import Tree, random_state, set_random_state


class BatchLoss(NamedTuple):
    """The loss of a batch."""

    total: Tensor
    """Scalar: what is minimised, summed over the predictions (tokens, or texts)."""
    nll: Tensor
    """Scalar: the plain negative log-likelihood of the same predictions in nats, detached."""
    predicted: int
    """Number of predictions."""
    tokens: int
    """Real tokens read, for the throughput."""


class Learner(Protocol):
    """What an update needs from a task."""

    @property
    def model(self) -> nn.Module:
        """The model to train."""

    def pieces(self, rows: Ids) -> Sequence[Ids]:
        """A batch as micro-batches, computed one after the other and whose gradients add up; usually just one."""

    def loss(self, rows: Ids) -> BatchLoss:
        """The loss on these rows of the training split."""


class NonFiniteError(Exception):
    """The loss or a gradient is infinite or not a number."""

    def __init__(self, step: int) -> None:
        super().__init__(step)
        self.step = step


class Updates:
    """Runs optimizer steps."""

    def __init__(self, trainable: Learner, params: TrainParams, compute: Compute, observer: Observer) -> None:
        self._trainable, self._params, self._compute, self._observer = trainable, params, compute, observer
        self._optimizer = make_optimizer(trainable.model, params)
        self._pieces = 1
        """Number of parts that each batch is split into to fit into memory."""
        self._failed = torch.zeros((), dtype=torch.int64, device=compute.device)
        """The first step whose loss or gradient was not finite; 0 for none."""
        self.skipped = 0
        """Updates skipped because the loss or a gradient was not finite."""

    def __call__(self, group: Sequence[Ids], step: int, rate: float) -> list[BatchLoss]:
        """Update once with the gradient of all batches of a group. Returns their losses; none for a skipped update.

        Raises NonFiniteError: on CPUs before the weights change, elsewhere only from `check`. Raises UserError when
        the batch does not fit into memory.
        """
        losses = self._with_gradients(group)
        parameters = [parameter for parameter in self._trainable.model.parameters() if parameter.grad is not None]
        norm = self._norm(parameters)
        finite = torch.isfinite(norm) & torch.isfinite(torch.stack([loss.total for loss in losses]).sum())
        if not self._may_step(finite, step):
            self._optimizer.zero_grad()
            return []
        if self._params.clip is not None:
            nn.utils.clip_grads_with_norm_(parameters, self._params.clip, norm)
        for settings in self._optimizer.param_groups:
            settings["lr"] = rate
        self._optimizer.step()
        self._optimizer.zero_grad()
        return losses

    def check(self) -> None:
        """Raise NonFiniteError if an earlier step was not finite. Waits for the device."""
        if step := int(self._failed.item()):
            raise NonFiniteError(step)

    def state(self) -> Tree:
        """Everything that the next updates depend on. Raises NonFiniteError: such a state is not worth saving."""
        self.check()
        moments = self._optimizer.state_dict()["state"]
        return {
            "optimizer": {str(number): tensors for number, tensors in moments.items()},
            "pieces": self._pieces,
            "skipped": self.skipped,
        }

    def restore(self, state: Tree) -> None:
        """Load what `state` returned."""
        moments = {int(number): tensors for number, tensors in state["optimizer"].items()}
        self._optimizer.load_state_dict({**self._optimizer.state_dict(), "state": moments})
        self._pieces, self.skipped = state["pieces"], state["skipped"]

    def _may_step(self, finite: Tensor, step: int) -> bool:
        """Whether to apply the update. On a GPU `stop` checks later: checking every step would synchronize."""
        if self._params.non_finite == "skip":
            if finite.item():
                return True
            self.skipped += 1
            self._observer.say(f"warning: the loss or a gradient is not finite at step {step}: skipped")
            return False
        self._failed = torch.where((self._failed == 0) & ~finite, step, self._failed)
        if self._compute.device.type == "cpu":
            self.check()
        return True

    def _norm(self, parameters: Sequence[nn.Parameter]) -> Tensor:
        return nn.utils.get_total_norm([parameter.grad for parameter in parameters if parameter.grad is not None])

    def _with_gradients(self, group: Sequence[Ids]) -> list[BatchLoss]:
        """The losses of the group's batches; leaves their gradient in the parameters.

        When memory runs out and `out_of_memory` is `halve`, batches are split from then on. The gradient is still that
        of the whole batch, except for summation order and different dropout masks.
        """
        device = self._compute.device
        group = [piece for rows in group for piece in self._trainable.pieces(rows)]
        before = random_state(device)
        while True:
            try:
                return self._backward(_split(group, self._pieces))
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                self._optimizer.zero_grad()  # gradients of the parts before the failure
                largest = max(map(len, group))
                if self._params.out_of_memory == "stop" or self._pieces >= largest:
                    raise UserError(_advice(largest, self._pieces)) from error
            if device.type == "cuda":
                torch.cuda.empty_cache()
            set_random_state(before, device)
            self._pieces *= 2
            self._observer.say(f"warning: out of memory: every batch is split into {self._pieces} from now on")

    def _backward(self, group: Sequence[Ids]) -> list[BatchLoss]:
        losses: list[BatchLoss] = []
        for rows in group:
            with self._compute.autocast():
                losses.append(self._trainable.loss(rows))
            # The group's total count is not known yet: scale by the first batch's count and correct it below.
            (losses[-1].total / losses[0].predicted).backward()  # type: ignore[no-untyped-call]
        if len(group) > 1:
            share = losses[0].predicted / sum(loss.predicted for loss in losses)
            gradients = [parameter.grad for parameter in self._trainable.model.parameters()]
            torch._foreach_mul_([gradient for gradient in gradients if gradient is not None], share)
        return losses


def _split(group: Sequence[Ids], pieces: int) -> list[Ids]:
    return [part for rows in group for part in np.array_split(rows, min(pieces, len(rows)))]


def _advice(rows: int, pieces: int) -> str:
    parts = f", split into {pieces}" if pieces > 1 else ""
    halve = "" if pieces > 1 else ", or set train.out_of_memory to halve"
    return (
        f"out of memory with a batch of {rows} rows{parts}: lower train.batch_size (and raise train.accumulation for"
        f" the same updates), model.max_length or the model's size{halve}"
    )


class MeanLoss:
    """The mean loss over batches, summed on the device without waiting for it."""

    def __init__(self, device: torch.device) -> None:
        wide = device.type in ("cpu", "cuda")  # MPS has no float64
        self._total = torch.zeros((), dtype=torch.float64 if wide else torch.float32, device=device)
        self.count = 0
        """Number of predictions."""

    def add(self, loss: BatchLoss) -> None:
        """Add a batch."""
        self._total += loss.nll
        self.count += loss.predicted

    @property
    def value(self) -> float:
        """The mean loss per prediction; waits for the device."""
        return self._total.item() / max(self.count, 1)

    def state(self) -> Tree:
        """For a checkpoint."""
        return {"total": self._total, "count": self.count}

    def restore(self, state: Tree) -> None:
        """Load from a checkpoint."""
        self._total.copy_(state["total"])
        self.count = state["count"]


def make_optimizer(model: nn.Module, params: TrainParams) -> torch.optim.Optimizer:
    """Adam, or AdamW with weight decay on matrices only; fused: one kernel for all parameters."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if params.optimizer == "adam":
        return torch.optim.Adam(
            trained, lr=params.learning_rate, betas=_pair(params.betas), eps=params.epsilon, fused=True
        )
    groups = [
        {"params": [p for p in trained if p.dim() > 1], "weight_decay": params.weight_decay},
        {"params": [p for p in trained if p.dim() <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=params.learning_rate, betas=_pair(params.betas), eps=params.epsilon, fused=True)


def _pair(betas: list[float]) -> tuple[float, float]:
    first, second = betas
    return first, second
