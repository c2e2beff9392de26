"""Encoding of weights in attention.json: T * S bytes in base64, row by row, each weight * 255, rounded."""

import base64

import numpy as np
from numpy.typing import NDArray

FILE = "attention.json"
STEPS = 255


def packed(weights: NDArray[np.float32]) -> str:
    """Encode weights (T, S), from 0 to 1."""
    return base64.b64encode((weights * STEPS).round().astype(np.uint8).tobytes()).decode()
