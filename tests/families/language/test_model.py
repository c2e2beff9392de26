"""The network: BERT (but for the norm of its embeddings) and GPT-2 at their parameters; all ways to compute agree."""

from typing import Any

import pytest
import torch
from torch import nn

from tests.builders import language

BERT = {"norm": "post", "output": "transformed", "activation": "gelu"}
GPT2 = {"norm": "pre", "activation": "gelu_tanh"}
IDS = torch.tensor([[2, 7, 9, 11, 5, 29, 3], [2, 8, 4, 12, 3, 0, 0], [2, 3, 0, 0, 0, 0, 0]])


@pytest.mark.parametrize(("objective", "params"), [("masked", BERT), ("causal", GPT2)], ids=["bert", "gpt2"])
def test_one_configuration_is_the_stock_model(objective: str, params: dict[str, Any]) -> None:
    pytest.importorskip("transformers", reason="the stock models need the transformers library (a dev dependency)")
    from tests.families.language import stock

    make, weights = {"masked": (stock.bert, stock.bert_weights), "causal": (stock.gpt2, stock.gpt2_weights)}[objective]
    ours = language(objective, scale_embeddings=False, **params).float()
    theirs = make(ours)
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in ours.parameters():  # norms and biases too: values that matter
            nn.init.normal_(parameter, mean=0.1, std=0.3)
        for own, their in weights(ours, theirs):
            their.copy_(own)
        real = IDS != 0
        expected = theirs(IDS, attention_mask=real.long()).logits
        found = ours.logits(ours(IDS))
    assert expected.std() > 0.1
    torch.testing.assert_close(found[real], expected[real], atol=1e-5, rtol=1e-5)
    assert ours.output.weight is ours.embedding.tokens.weight
    copied = {id(own) for own, _ in weights(ours, theirs) if isinstance(own, nn.Parameter)}
    assert copied == {id(parameter) for parameter in ours.parameters()}


@pytest.mark.parametrize("objective", ["masked", "causal"])
@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_packed_states_are_the_padded_ones(objective: str, positions: str) -> None:
    model = language(objective, positions=positions)
    with torch.no_grad():
        torch.testing.assert_close(model(IDS, packed=True), model(IDS)[IDS != 0])


def test_only_a_causal_model_hides_what_comes_later() -> None:
    changed = IDS.clone()
    changed[0, 5] = 6
    for objective, same in (("causal", True), ("masked", False)):
        model = language(objective)
        with torch.no_grad():
            before, after = model(IDS)[0], model(changed)[0]
        assert torch.equal(before[:5], after[:5]) is same
        assert not torch.allclose(before[5], after[5])
