"""Greedy decoding: neither the cache nor the batch changes the result."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders import recurrent_seq2seq
from tests.inference import reference
from tests.inference.models import params, run, sources, trained, vocabulary
from transformer.core.files import write_json
from transformer.core.observer import Observer
from transformer.data.tokenization import detokenize
from transformer.data.vocabulary_training import train_wordpiece
from transformer.families.seq2seq.decode import Search
from transformer.families.seq2seq.interface import Seq2SeqModel
from transformer.families.seq2seq.torch_translator import TorchGenerator
from transformer.families.seq2seq.translator import Translator


def lively(attention: str, end: int) -> Seq2SeqModel:
    """A recurrent model; initial weights nearly always repeat one token: larger ones and `end` make sentences end."""
    model = recurrent_seq2seq(attention=attention, hidden=24)
    for parameter in model.parameters():
        parameter.detach().mul_(3)
    model.output.bias.detach()[vocabulary(30).end_id] += end
    return model


MODELS: dict[str, Callable[[], Seq2SeqModel]] = {
    "post-norm": lambda: trained("post"),
    "pre-norm": lambda: trained("pre"),
    "recurrent": lambda: lively("none", 0),
    "recurrent with attention": lambda: lively("luong_general", 1),
}


@pytest.mark.parametrize("name", MODELS)
def test_cached_decoding_equals_uncached_for_every_batch_size(name: str) -> None:
    model = MODELS[name]()
    expected = [reference.greedy(model, source, vocabulary(30), 20) for source in sources()]
    assert len({len(ids) for ids in expected}) > 1, "all end together: the test would miss rows that leave early"
    for size in (1, 2, 100):
        assert [found[0].ids for found in run(model, sources(), batch_size=size)] == expected
    beams = [run(model, sources(), method="beam", n_best=3, batch_size=size) for size in (1, 100)]
    one, together = ([[each.ids for each in found] for found in beam] for beam in beams)
    assert one == together
    assert run(model, []) == []


def test_a_text_without_tokens_is_not_translated(tmp_path: Path) -> None:
    """BERT's normalizer deletes a byte order mark, a soft hyphen and spaces without a width."""
    words = train_wordpiece(lambda: iter(["a dog sleeps."] * 9), min_frequency=1, max_size=30, lowercase=True)
    answers = vocabulary(30)
    side = {"kind": "none", "language": "en", "lowercase": True, "html_breaks": "keep"}
    write_json(tmp_path / "pretokenizer.json", {"source": side, "target": side})
    search = Search(TorchGenerator(trained("post"), answers), answers, answers)
    translator = Translator(search, {"source": words, "target": answers}, tmp_path, params(max_length=5))
    found = translator.translate(["\ufeff", "a dog", "", " \u00ad\u200b "])
    assert found[0] == found[2] == found[3] == ""
    assert found[1]
    assert translator.decode(words.encode(["\ufeff", "a dog"]), Observer()) == found[:2], "as it is evaluated"


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("a man , who is n't old , sleeps .", "a man, who isn't old, sleeps."),
        ("the girl 's t - shirt ( red )", "the girl's t-shirt (red)"),
        ('he says " hello " !', 'he says "hello"!'),
        ("‘ It ’s the dogs ’ ball and / or mine ’", "‘It’s the dogs’ ball and/or mine’"),
        ("„ Nein “ , sagte er , „ Max heißt ‚ Moritz ‘ . “", "„Nein“, sagte er, „Max heißt ‚Moritz‘.“"),
        ("the girls ' ' new ' toys , ' hello there ' , ' dogs '", "the girls' 'new' toys, 'hello there', 'dogs'"),
        ("it 's the dogs ' ball , the ' 90s", "it's the dogs' ball, the '90s"),
        ("I 'm gon na , you got ta , did nt , y' all , can not", "I'm gonna, you gotta, didnt, y'all, cannot"),
        ("and / or 7 / 10 , Nummer \u00a0 4", "and/or 7 / 10, Nummer\u00a04"),
        ('( " one " ) , " two"-part , he said : yes . "', '("one"), "two"-part, he said: yes."'),
        ("", ""),
        ("一 个 男 人 睡 在 公 园 里 。", "一个男人睡在公园里。"),
        ("他 说 ， Paris is nice", "他说， Paris is nice"),
    ],
)
def test_detokenize(tokens: str, text: str) -> None:
    assert detokenize(tokens) == text
