"""Attention maps as text."""

from argparse import Namespace

import numpy as np
import pytest

from transformer.commands.ask import show_attention, text_map
from transformer.core.errors import UserError
from transformer.reporting.attention_maps import Axis, Drawing


def test_a_converted_model_has_no_maps() -> None:
    with pytest.raises(UserError, match=r"^models/converted is a converted model, and attention maps need PyTorch"):
        show_attention(object, Namespace(output=None, model="models/converted"))


def test_a_map_says_where_each_token_looks() -> None:
    weights = np.array([[0.95, 0.05, 0.0], [0.1, 0.3, 0.6]], dtype=np.float32)
    keys = Axis("source token", ["Ein", "Mann\x1b[31m", "Kartoffelsalatschüssel"])
    drawing = Drawing("cross_attention", "Ein Mann\n→ A man", {"head 1": weights}, Axis("target", ["A", "man"]), keys)
    assert list(text_map(drawing)) == [
        "Ein Mann",
        "→ A man",
        "source token: 1 Ein  2 Mann�[31m  3 Kartoffelsalats…",
        "",
        "head 1",
        "     1  2  3",
        "  A ██        Ein 0.95",
        "man    ░░ ▓▓  Kartoffelsalats… 0.60",
    ]
