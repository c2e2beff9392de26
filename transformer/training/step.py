"""One training step: from the batches of an update to the optimizer step."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from transformer.core.errors import UserError, is_out_of_memory
from transformer.core.observer import Observer
from transformer.data.store import Ids
from transformer.nn.device import Compute
from transformer.training.batches import BatchLoss, Learner
from transformer.training.distributed import ProcessGroup
from transformer.training.resume import Tree
from transformer.training.schedule import TrainParams


def cut(batches: Sequence[Ids], shards: int) -> list[list[Ids]]:
    """Return each part's consecutive rows of each batch; parts of a batch with fewer rows than shards may be empty."""
    by_batch = [np.array_split(rows, shards) for rows in batches]
    return [[rows for rows in part if len(rows)] for part in zip(*by_batch, strict=True)]


def seed_part(seed: int, step: int, part: int) -> None:
    """Seed torch's generators on all devices for one part of one update."""
    words = np.random.SeedSequence([seed, step, part]).generate_state(1, np.uint64)
    torch.manual_seed(int(words[0]))


class TreeSum:
    """Sum 2^n lists of tensors over a fixed binary tree, as they arrive.

    Floating-point sums depend on the order; the fixed tree gives the same sum if subtrees were added elsewhere.
    """

    def __init__(self) -> None:
        self._sums: list[tuple[int, list[Tensor]]] = []
        """Partial sums waiting for their sibling, each with the height of its subtree."""

    def add(self, tensors: list[Tensor]) -> None:
        """Add the next list, which may be overwritten in place."""
        height = 0
        while self._sums and self._sums[-1][0] == height:
            _, before = self._sums.pop()
            torch._foreach_add_(before, tensors)
            tensors, height = before, height + 1
        self._sums.append((height, tensors))

    def total(self) -> list[Tensor]:
        """Return the sum of all lists."""
        ((_, tensors),) = self._sums
        return tensors


class NonFiniteError(Exception):
    """The loss or a gradient is infinite or not a number."""

    def __init__(self, step: int) -> None:
        super().__init__(step)
        self.step = step


class Step:
    """Update a model; its state includes the optimizer's."""

    def __init__(
        self,
        learner: Learner,
        params: TrainParams,
        compute: Compute,
        observer: Observer,
        group: ProcessGroup | None = None,
    ) -> None:
        """group: the processes that share each update, all calling with the same arguments; None for only this one."""
        self._learner, self._params, self._compute, self._observer = learner, params, compute, observer
        self._group = group or ProcessGroup()
        self._parameters = [parameter for parameter in learner.model.parameters() if parameter.requires_grad]
        self._optimizer = make_optimizer(learner.model, params, learner.lr_scales)
        self._failed = torch.zeros((), dtype=torch.int64, device=compute.device)
        """First step with a non-finite loss or gradient; 0 for none."""
        self.skipped = 0
        """Updates skipped because the loss or a gradient was not finite."""
        self.pieces = 1
        """Number of micro-batches that each part of a batch is split into to fit into memory."""

    def __call__(self, batches: Sequence[Ids], step: int, rate: float) -> list[BatchLoss]:
        """Update once with the gradient of the mean loss over all of these batches, at this learning rate.

        Returns the losses of the update's parts; none if it was skipped. When memory runs out and `out_of_memory` is
        `halve`, parts are split from then on: the gradient is still that of the whole update, but for the order of
        sums and other dropout masks.

        Raises NonFiniteError: on CPUs before the weights change, elsewhere only from `check`. Raises UserError when
        the batch does not fit into memory, LostError, before the weights change, when another process has ended.
        """
        params, group, optimizer = self._params, self._group, self._optimizer
        rows, each = sum(map(len, batches)), params.shards // group.size
        first, parts = group.rank * each, cut(batches, params.shards)
        memory = self._learner.memory
        while True:
            self._learner.memory = memory
            tree, losses, failure = TreeSum(), list[BatchLoss](), None
            try:
                for number, part in enumerate(parts[first : first + each], start=first):
                    optimizer.zero_grad()
                    seed_part(params.seed, step, number)
                    losses.append(self._backward(part, rows))
                    if params.shards > 1:
                        tree.add([_gradient(parameter) for parameter in self._parameters])
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                failure = error
            if not group.any(failure is not None):
                break
            self._halve(max(len(rows) for part in parts for rows in part), failure)
        if params.shards > 1:
            losses = self._sum(tree.total(), losses)

        # Known only now: with BPE-dropout, the number of tokens depends on the segmentation.
        gradients = [parameter.grad for parameter in self._parameters if parameter.grad is not None]
        torch._foreach_mul_(gradients, rows / sum(loss.predicted for loss in losses))
        norm = nn.utils.get_total_norm(gradients)
        finite = torch.isfinite(norm) & torch.isfinite(torch.stack([loss.total for loss in losses]).sum())
        if not self._may_step(finite, step):
            self._learner.memory = memory
            optimizer.zero_grad()
            return []
        if params.clip is not None:
            nn.utils.clip_grads_with_norm_(self._parameters, params.clip, norm)
        for settings in optimizer.param_groups:
            settings["lr"] = rate * settings["lr_scale"]
        optimizer.step()
        optimizer.zero_grad()
        return losses

    def _backward(self, part: Sequence[Ids], rows: int) -> BatchLoss:
        """Compute the loss of one part and accumulate its gradient, divided by the update's number of rows."""
        zero = torch.zeros((), device=self._compute.device)
        whole = BatchLoss(zero, zero, 0, 0)
        for piece in self._in_pieces(part):
            with self._compute.autocast():
                loss = self._learner.loss(piece)
            (loss.total / rows).backward()  # type: ignore[no-untyped-call]
            total, nll = whole.total + loss.total.detach(), whole.nll + loss.nll
            whole = BatchLoss(total, nll, whole.predicted + loss.predicted, whole.tokens + loss.tokens)
        return whole

    def _in_pieces(self, part: Sequence[Ids]) -> Iterator[Ids]:
        for rows in part:
            for piece in self._learner.pieces(rows):
                yield from np.array_split(piece, min(self.pieces, len(piece)))

    def _sum(self, gradients: Sequence[Tensor], losses: Sequence[BatchLoss]) -> list[BatchLoss]:
        """Put the sum of all processes' gradients into the parameters; return the losses of all parts."""
        if self._group.size > 1:
            tree = TreeSum()
            for flat in self._group.gather(torch.cat([gradient.flatten() for gradient in gradients])):
                tree.add([flat])
            pieces = torch.split(tree.total()[0], [parameter.numel() for parameter in self._parameters])
            gradients = [piece.view_as(own) for piece, own in zip(pieces, self._parameters, strict=True)]
            sums = torch.stack([torch.stack((loss.total, loss.nll)) for loss in losses])
            counts = torch.tensor([[loss.predicted, loss.tokens] for loss in losses])
            every = torch.cat(self._group.gather(sums)), torch.cat(self._group.gather(counts)).tolist()
            losses = [BatchLoss(total, nll, *count) for (total, nll), count in zip(*every, strict=True)]
        for parameter, gradient in zip(self._parameters, gradients, strict=True):
            parameter.grad = gradient
        return list(losses)

    def _halve(self, largest: int, failure: BaseException | None) -> None:
        """Halve the micro-batch size in all processes. Raises UserError if this is disabled or cannot help.

        largest: rows of the largest part; failure: None if memory ran out in another process.
        """
        self._optimizer.zero_grad()
        if self._params.out_of_memory == "stop" or self.pieces >= largest:
            raise UserError(_advice(largest, self.pieces)) from failure
        if self._compute.device.type == "cuda":
            torch.cuda.empty_cache()
        self.pieces *= 2
        self._observer.say(f"warning: out of memory: every batch is split into {self.pieces} from now on")

    def _may_step(self, finite: Tensor, step: int) -> bool:
        """True if the update may be applied. On a GPU, `check` reports later: checking each step would synchronize."""
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

    def check(self) -> None:
        """Raise NonFiniteError if an earlier step was not finite. Synchronizes with the device."""
        if step := int(self._failed.item()):
            raise NonFiniteError(step)

    def state(self) -> Tree:
        """Return everything that later updates depend on. Raises NonFiniteError: such a state is not worth saving."""
        self.check()
        moments = self._optimizer.state_dict()["state"]
        return {
            "optimizer": {str(number): tensors for number, tensors in moments.items()},
            "pieces": self.pieces,
            "skipped": self.skipped,
        }

    def restore(self, state: Tree) -> None:
        """Load the result of `state`."""
        moments = {int(number): tensors for number, tensors in state["optimizer"].items()}
        self._optimizer.load_state_dict({**self._optimizer.state_dict(), "state": moments})
        self.pieces, self.skipped = state["pieces"], state["skipped"]


def make_optimizer(
    model: nn.Module, params: TrainParams, lr_scales: Mapping[str, float] | None = None
) -> torch.optim.Optimizer:
    """Make Adam, or AdamW with weight decay on matrices only; fused: one kernel for all parameters of a group.

    lr_scales: as `Learner.lr_scales`.
    """
    lr_scales = lr_scales or {}
    groups: dict[tuple[bool, float], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            decays = params.optimizer == "adam" or parameter.dim() > 1
            groups.setdefault((decays, lr_scales.get(name, 1.0)), []).append(parameter)
    settings = [
        {"params": found, "lr_scale": scale, "weight_decay": params.weight_decay if decays else 0.0}
        for (decays, scale), found in sorted(groups.items(), key=lambda group: not group[0][0])
    ]
    kind = torch.optim.Adam if params.optimizer == "adam" else torch.optim.AdamW
    first, second = params.betas
    return kind(settings, lr=params.learning_rate, betas=(first, second), eps=params.epsilon, fused=True)


def _gradient(parameter: nn.Parameter) -> Tensor:
    """Return a parameter's gradient, or zeros if it has none, as in a part without rows."""
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def _advice(rows: int, pieces: int) -> str:
    parts = f", split into {pieces}" if pieces > 1 else ""
    halve = "" if pieces > 1 else ", or set train.out_of_memory to halve"
    return (
        f"out of memory with a batch of {rows} rows{parts}: lower train.batch_size (and raise train.accumulation for"
        f" the same updates), model.max_length or the model's size{halve}"
    )


class MeanLoss:
    """Mean loss over batches, summed on the device without synchronizing."""

    def __init__(self, device: torch.device) -> None:
        wide = device.type in ("cpu", "cuda")  # MPS has no float64
        self._total = torch.zeros((), dtype=torch.float64 if wide else torch.float32, device=device)
        self.count = 0
        """Number of predictions."""

    def add(self, loss: BatchLoss) -> None:
        """Add a batch's loss."""
        self._total += loss.nll
        self.count += loss.predicted

    @property
    def value(self) -> float:
        """Mean loss per prediction; reading it synchronizes with the device."""
        return self._total.item() / max(self.count, 1)

    def state(self) -> Tree:
        """Return the state for a checkpoint."""
        return {"total": self._total, "count": self.count}

    def restore(self, state: Tree) -> None:
        """Load the state from a checkpoint."""
        self._total.copy_(state["total"])
        self.count = state["count"]
