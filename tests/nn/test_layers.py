"""How the weights of a new model are drawn."""

import pytest
import torch

from tests.builders import classifier, seq2seq


def test_normal_embeddings_have_unit_variance_once_scaled() -> None:
    model = classifier(d_model=64, heads=1, embedding_init="normal")
    assert (model.embedding.tokens.weight * model.embedding.scale).std().item() == pytest.approx(1.0, abs=0.1)


def test_scaled_residuals_differ_in_the_last_matrix_of_each_sublayer() -> None:
    plain, scaled = (dict(seq2seq(residual_init=init).named_parameters()) for init in ("xavier", "scaled"))
    sublayers = {"encoder": 2 * 2, "decoder": 2 * 3}
    smaller = 0
    for name, weight in plain.items():
        stack, factor = name.partition(".")[0], 1.0
        if stack in sublayers and name.endswith(("attention.output.weight", "feed_forward.outer.weight")):
            factor, smaller = sublayers[stack] ** -0.5, smaller + 1
        torch.testing.assert_close(scaled[name], weight * factor, rtol=1e-6, atol=0)
    assert smaller == sum(sublayers.values())
