"""One optimizer step, with the handling of non-finite values, and the mean loss of many."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from transformer.checkpoint.device import Compute
from transformer.core.observer import Observer
from transformer.encoded.batching import Ids
from transformer.training.config import TrainParams
from transformer.training.gradient import Gradients
from transformer.training.group import Group
from transformer.training.states import Tree
from transformer.training.trainable import BatchLoss, Learner


class NonFiniteError(Exception):
    """The loss or a gradient is infinite or not a number."""

    def __init__(self, step: int) -> None:
        super().__init__(step)
        self.step = step


class Updates:
    """Runs optimizer steps."""

    def __init__(
        self,
        learner: Learner,
        params: TrainParams,
        compute: Compute,
        observer: Observer,
        group: Group | None = None,
    ) -> None:
        """group: the processes that share each update, and all call with the same arguments; None for this one."""
        self._params, self._compute, self._observer = params, compute, observer
        self._gradients = Gradients(learner, params, compute, observer, group)
        self._model = learner.model
        self._optimizer = make_optimizer(learner.model, params, learner.lr_scales)
        self._failed = torch.zeros((), dtype=torch.int64, device=compute.device)
        """The first step whose loss or gradient was not finite; 0 for none."""
        self.skipped = 0
        """Updates skipped because the loss or a gradient was not finite."""

    @property
    def pieces(self) -> int:
        """Number of pieces that each batch is split into to fit into memory."""
        return self._gradients.pieces

    def __call__(self, batches: Sequence[Ids], step: int, rate: float) -> list[BatchLoss]:
        """Update once with the gradient of all of these batches. Returns the losses of its parts; none if skipped.

        Raises NonFiniteError: on CPUs before the weights change, elsewhere only from `check`. Raises UserError when
        the batch does not fit into memory, LostError, before the weights change, when another process has ended.
        """
        losses = self._gradients(batches, step)
        for group in self._optimizer.param_groups:
            group["lr"] = rate * group["lr_scale"]
        parameters = [*self._model.parameters()]
        norm = nn.utils.get_total_norm([each.grad for each in parameters if each.grad is not None])
        finite = torch.isfinite(norm) & torch.isfinite(torch.stack([loss.total for loss in losses]).sum())
        if not self._may_step(finite, step):
            self._optimizer.zero_grad()
            return []
        if self._params.clip is not None:
            nn.utils.clip_grads_with_norm_(parameters, self._params.clip, norm)
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
            "pieces": self.pieces,
            "skipped": self.skipped,
        }

    def restore(self, state: Tree) -> None:
        """Load what `state` returned."""
        moments = {int(number): tensors for number, tensors in state["optimizer"].items()}
        self._optimizer.load_state_dict({**self._optimizer.state_dict(), "state": moments})
        self._gradients.pieces, self.skipped = state["pieces"], state["skipped"]

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


def make_optimizer(
    model: nn.Module, params: TrainParams, lr_scales: Mapping[str, float] | None = None
) -> torch.optim.Optimizer:
    """Adam, or AdamW with weight decay on matrices only; fused: one kernel for all parameters of a group.

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
    return kind(settings, lr=params.learning_rate, betas=_pair(params.betas), eps=params.epsilon, fused=True)


def _pair(betas: list[float]) -> tuple[float, float]:
    first, second = betas
    return first, second
