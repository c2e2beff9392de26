"""The loss, compared with PyTorch's, and the loss without logits, compared with the loss of logits."""

import pytest
import torch
import torch.nn.functional as F

from transformer.nn.kernels.cross_entropy import smoothed_cross_entropy

LOGITS = torch.randn(7, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 3
CLASSES = torch.tensor([0, 4, 2, 2, 1, 3, 0])


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
def test_label_smoothing_is_pytorchs(smoothing: float) -> None:
    total, nll = smoothed_cross_entropy(LOGITS, CLASSES, smoothing)
    expected = F.cross_entropy(LOGITS, CLASSES, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(total, expected, rtol=1e-12, atol=0)
    torch.testing.assert_close(nll, F.cross_entropy(LOGITS, CLASSES, reduction="sum"), rtol=1e-12, atol=0)
