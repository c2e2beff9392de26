"""What a language model answers to raw texts: gaps, continuations, scores, vectors."""

import math
from argparse import Namespace
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from tests.builders import language
from transformer.core import observer
from transformer.core.errors import UserError
from transformer.core.files import write_json
from transformer.core.observer import time_limit
from transformer.data.subwords import train_bpe
from transformer.data.tokenization import PreTokenizer, PreTokenizerParams
from transformer.data.vocabulary import Vocabulary
from transformer.data.vocabulary_training import train_wordpiece, word_vocabulary
from transformer.families.language.details import details
from transformer.families.language.engines import UncachedGenerator
from transformer.families.language.evaluate import samples
from transformer.families.language.interface import mask_id
from transformer.families.language.model import (
    LanguageModel,
    _around,
    continue_texts,
    encode_gaps,
    fillings,
    never_generated,
)
from transformer.families.language.network import LanguageTransformer
from transformer.families.language.options import LanguageCommands
from transformer.families.language.scores import by_place, counted
from transformer.families.language.scoring import AnswerParams, each_token, passes_over, windows
from transformer.families.language.torch_model import TorchEngine

TEXTS = ["the film was good.", "the film was not good, and the plot was bad.", "a bad film, but the cast was great!"]
DECODING: dict[str, Any] = {
    "method": "greedy", "beam_size": 3, "n_best": 1, "stopping": "exact", "length_normalization": "length",
    "length_penalty": 1.0, "no_repeat_ngram": None, "max_length": 6, "temperature": 1.0, "top_k": None, "top_p": None,
    "seed": 1, "batch_size": 4, "stride": None, "memory_length": None, "hash_rounds": None, "mask_stride": 3,
}  # fmt: skip
VOCABULARIES: dict[str, Callable[[], Vocabulary]] = {
    "word": lambda: word_vocabulary((text.replace(".", " .") for text in TEXTS), min_frequency=1, max_size=None),
    "wordpiece": lambda: train_wordpiece(lambda: iter(TEXTS), min_frequency=1, max_size=70, lowercase=True),
    "bpe": lambda: train_bpe(iter(TEXTS), min_frequency=1, max_size=70, byte_fallback=False),
}


def model(folder: Path, objective: str, kind: str = "wordpiece", context: int = 16, **decoding: Any) -> LanguageModel:
    """With random weights large enough for distinct answers."""
    torch.manual_seed(0)
    vocabulary = VOCABULARIES[kind]()
    changes: dict[str, Any] = {"max_length": context, "positions": "rotary", "norm": "pre", "layers": 1}
    size, pad, mask = vocabulary.size, vocabulary.pad_id, mask_id(vocabulary)
    config = language(objective, **changes).config.model_copy(update={"size": size, "pad_id": pad, "mask_id": mask})
    network = LanguageTransformer(config)
    torch.nn.init.normal_(network.embedding.tokens.weight, std=0.5)
    split = {"kind": "none", "language": None, "lowercase": True, "html_breaks": "keep"}
    write_json(folder / "pretokenizer.json", {"text": split})
    engine = TorchEngine(network, never_generated(vocabulary))
    return LanguageModel(engine, vocabulary, folder, AnswerParams(**(DECODING | decoding)))


@pytest.mark.parametrize("kind", VOCABULARIES)
def test_gaps_are_filled_in_the_text_as_it_was_written(kind: str, tmp_path: Path) -> None:
    filled = model(tmp_path, "masked", kind).fill("The Film was [MASK]!", n_best=4)
    assert len(filled) == 4
    assert all(each.text.startswith("The Film was") and each.text.endswith("!") for each in filled)
    assert [each.probability for each in filled] == sorted((each.probability for each in filled), reverse=True)
    specials = {"<pad>", "<unk>", "<bos>", "<eos>", "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
    assert not {word for each in filled for word in each.words} & specials


@pytest.mark.parametrize("text", ["[MASK]ly dull film", "un[MASK]able", "a [MASK]2 b", "[MASK].", "[MASK]在公园里。"])
def test_the_rest_of_a_gaps_word_is_read_as_the_rest_of_a_word(text: str) -> None:
    """WordPiece knows it by other pieces than the beginning of one."""
    texts = [text.replace("[MASK]", " q "), "friendly usable", "在公园里"]
    vocabulary = train_wordpiece(lambda: iter(texts * 9), min_frequency=1, max_size=120, lowercase=True)
    ids = encode_gaps(text, vocabulary, list, 999).tolist()
    (whole,) = vocabulary.encode([text.replace("[MASK]", "q")])
    (place,) = (number for number, name in enumerate(vocabulary.entries(whole)) if name in ("q", "##q"))
    assert [*whole[:place].tolist(), 999, *whole[place + 1 :].tolist()] == ids


@pytest.mark.parametrize("kind", ["word", "bpe"])
@pytest.mark.parametrize("text", ["it was [MASK].", "a well-[MASK] film", "a [MASK]-made film", "[MASK]/well QUQUQU"])
def test_what_is_beside_a_gap_is_split_as_beside_a_word(text: str, kind: str) -> None:
    """By spaCy, whose rules look at both sides: `a.` would be one token, an abbreviation, and `well-` too."""
    pretokenize = PreTokenizer(PreTokenizerParams(kind="spacy", language="en", lowercase=True, html_breaks="keep"))
    texts = pretokenize(["it was film.", "a well-film film", "a film-made film", "film/well a. quququ"] * 9)
    words = word_vocabulary(iter(texts), min_frequency=1, max_size=None)
    vocabulary = words if kind == "word" else train_bpe(iter(texts), min_frequency=1, max_size=90, byte_fallback=False)
    (whole,) = vocabulary.encode(pretokenize([text.replace("[MASK]", "film")]))
    (film,) = vocabulary.encode(["film"])[0][1:-1]
    ids = encode_gaps(text, vocabulary, pretokenize, 999).tolist()
    assert ids.count(999) == 1
    assert [film if token == 999 else token for token in ids] == whole.tolist()


def test_gaps_are_found_where_they_stand() -> None:
    """What stands for one in pre-tokenizing is not found in its neighbours' letters."""
    assert _around("QUXWJZ[MASK]xwjz", list) == ["QUXWJZ", "xwjz"]
    chinese = PreTokenizer(PreTokenizerParams(kind="spacy", language="zh", lowercase=True, html_breaks="keep"))
    assert _around("电影[MASK]好[MASK] 吗", chinese) == ["电 影", "好", " ▁ 吗"]


def test_a_piece_within_a_word_continues_it() -> None:
    """▁ begins a word in a lossless vocabulary, as no ## does in WordPiece's."""
    vocabulary = VOCABULARIES["bpe"]()
    for piece, text in (("s", "the films"), (".", "the film."), ("▁was", "the film was")):
        scores = np.full((1, vocabulary.size), -np.inf)
        scores[0, vocabulary.tokenizer.token_to_id(piece)] = 0.0
        assert fillings("the film [MASK]", scores, vocabulary, 1)[0].text == text


def test_two_gaps_are_the_best_pairs_of_independent_words(tmp_path: Path) -> None:
    found = model(tmp_path, "masked")
    text = "the [MASK] was [MASK]."
    best = found.fill(text, n_best=8)
    every = {each.words: each.probability for each in found.fill(text, n_best=found.vocabulary.size**2)}
    assert [each.probability for each in best] == sorted(every.values(), reverse=True)[:8]
    assert 0.3 < sum(every.values()) <= 1.001  # the rest is of special tokens
    answers = found.fill("[MASK]", found.vocabulary.size)
    assert all(each.probability > 0 for each in answers) and len(answers) < found.vocabulary.size
    answered = LanguageCommands().answering(found, Namespace(command="fill", n_best=1000))(["the [MASK]", "no gap"])
    lines = [line for each in answered for line in each.lines]
    assert len(lines) == 2000 and lines[1000:1002] == ["1.0000\tno gap", "0.0000\t"]


def test_texts_without_gaps_and_what_cannot_be_answered(tmp_path: Path) -> None:
    found, causal = model(tmp_path, "masked"), model(tmp_path, "causal")
    assert found.fill("")[0].text == ""
    assert found.fill("No gap.")[0] == ("No gap.", 1.0, ())
    assert found.fill(f"{'the film ' * 40}[MASK] {'the film ' * 40}", 1)[0].text.count("the film") >= 80
    refused: list[tuple[Callable[[], Any], str]] = [
        (lambda: found.fill(f"[MASK] {'the film ' * 40}[MASK]"), r"the gaps lie 8\d tokens apart, .* reads 14: fill"),
        (lambda: found.fill("[MASK]", n_best=0), r"n_best \(0\) must be 1 or more"),
        (lambda: found.generate("the"), r"masked model, which fills \[MASK\]: use `fill`"),
        (lambda: causal.fill("[MASK]"), "causal model, which continues texts: use `generate`"),
    ]
    for ask, message in refused:
        with pytest.raises(UserError, match=message):
            ask()
    with pytest.raises(TypeError, match="must be a str"):
        found.fill(None)  # type: ignore[arg-type]


def test_an_overdue_continuation_is_given_up_between_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observer, "time", SimpleNamespace(monotonic=count().__next__))
    with time_limit(2.5), pytest.raises(UserError, match="overdue"):  # of seconds that pass when they are looked at
        model(tmp_path, "causal").generate_n_best(["the", "the film", "the film was", *TEXTS])  # a batch per length


@pytest.mark.parametrize(("method", "kind"), [("greedy", "bpe"), ("beam", "word"), ("sample", "wordpiece")])
def test_continuations_agree_in_any_batch_with_and_without_a_cache(method: str, kind: str, tmp_path: Path) -> None:
    prompts = ["", "the", "the film", "a bad film", "the film was not good, and the plot was bad", *TEXTS, "the film"]
    found = model(tmp_path, "causal", kind, method=method, n_best=1 if method == "greedy" else 2)
    answers = found.generate_n_best(prompts)
    assert all(each.startswith(prompt) for prompt, found in zip(prompts, answers, strict=True) for each in found)
    assert answers == [found.generate_n_best([prompt], first)[0] for first, prompt in enumerate(prompts)]
    assert (answers[2] == answers[-1]) == (method != "sample"), "samples depend on the number of the text"
    never = never_generated(found.vocabulary)
    found.engine.generator = UncachedGenerator(found.engine, never)  # type: ignore[misc]
    assert found.generate_n_best(prompts) == answers
    found.decoding = found.decoding.model_copy(update={"seed": 2})
    assert (found.generate_n_best(prompts) == answers) == (method != "sample")


def test_a_prompt_beyond_the_context_keeps_its_end(tmp_path: Path) -> None:
    found = model(tmp_path, "causal", "word", max_length=50, method="sample")
    long = "a bad film , " * 30 + "the film was not good , and the plot was"
    (ids,) = found.encode([long])
    kept = found.vocabulary.decode(ids[:-1][-8:].tolist())  # of 16 positions, half are left for what is new
    answer = found.generate(long)
    assert answer.startswith(long)
    assert found.generate(kept).removeprefix(kept) == answer.removeprefix(long)


def test_a_continuation_says_what_it_did_not_read_and_that_it_stops(tmp_path: Path) -> None:
    found = model(tmp_path, "causal", "word", max_length=1)
    ((short,), (long,)) = found.continuations(["the 犬", "the " * 40])
    stops = "the continuation reached its maximum length and stops there"
    assert short.notes == ("words that the vocabulary lacks: 犬", stops)
    assert long.notes == (f"only the last {found.engine.positions - 1} tokens of the prompt were read", stops)
    assert found.table(["the 犬"])["notes"] == ["; ".join(short.notes)]


def test_a_causal_score_is_the_log_probability_of_every_next_token(tmp_path: Path) -> None:
    found = model(tmp_path, "causal", "word", context=64)
    for text, each in zip(TEXTS, found.score(TEXTS), strict=True):
        (ids,) = found.encode([text])
        rows = [found.engine.log_probabilities(ids[None, :end], np.array([end - 1])) for end in range(1, len(ids))]
        total = sum(row[0, token] for row, token in zip(rows, ids[1:], strict=True))
        assert each.log_probability == pytest.approx(total, abs=1e-3)
        assert each.tokens == len(ids) - 1
    assert found.score([""])[0].tokens == 1  # the end
    assert each_token(found.engine, [], found.decoding) == []
    assert counted(["一个男人睡。", "a man ."], [(-3.0, 4, 1), (-2.0, 5, 2)]).words.tolist() == [5, 3]


def test_a_masked_score_hides_one_token_of_each_few(tmp_path: Path) -> None:
    found = model(tmp_path, "masked", "word", context=64)
    (ids,) = found.encode([TEXTS[1]])
    total = 0.0
    for number in range(3):
        given, places = ids.copy(), np.arange(1 + number, len(ids) - 1, 3)
        given[places] = found.engine.mask_id
        rows = found.engine.log_probabilities(given[None], places)
        total += float(rows[np.arange(len(places)), ids[places]].sum())
    assert found.score([TEXTS[1]])[0].log_probability == pytest.approx(total, abs=1e-3)
    assert found.score([""])[0] == (0.0, 0, 0)


@pytest.mark.parametrize(("stride", "tokens"), [(None, 0), (None, 40), (1, 9), (3, 40), (8, 8)])
def test_a_masked_model_predicts_each_token_once_and_far_from_a_cut(stride: int | None, tokens: int) -> None:
    """It reads what follows a token as well, so the right end of a window is the worst place, and not the best one."""
    engine: Any = Namespace(causal=False, positions=10, mask_id=-1)
    starts: dict[int, int] = {}
    for each in passes_over(engine, 0, np.arange(tokens + 2), AnswerParams(**DECODING | {"stride": stride})):
        assert each.given[0] == 0 and each.given[-1] == tokens + 1
        assert (each.given[each.places] == -1).all()
        for place, target in zip(each.places.tolist(), each.targets.tolist(), strict=True):
            assert target not in starts
            starts[target] = target - place  # tokens before the window
    assert sorted(starts) == [*range(1, tokens + 1)]
    cut = [(start, stop) for start, stop, _ in windows(tokens, 8, stride)]
    for token, own in starts.items():
        # Tokens between it and the nearer cut; the ends of the text are none.
        far = {
            start: min(token - 1 - start if start else math.inf, stop - token if stop < tokens else math.inf)
            for start, stop in cut
            if start < token <= stop
        }
        assert far[own] == max(far.values())


@pytest.mark.parametrize("objective", ["masked", "causal"])
def test_a_long_text_is_embedded_in_windows_as_in_training(objective: str, tmp_path: Path) -> None:
    found = model(tmp_path, objective)
    (ids,) = found.encode([text := "the film was good. " * 20])
    ends = objective == "masked"  # a window stands between begin and end token
    size, inner = found.engine.positions - 2 * ends, ids[ends : len(ids) - ends]
    parts = [inner[start : start + size] for start in range(0, len(inner), size)]
    given = [np.concatenate((ids[:1], part, ids[-1:])) if ends else part for part in parts]
    states = np.concatenate([found.engine.states(part[None])[0] for part in given])
    assert len(parts) > 2
    np.testing.assert_allclose(found.embed([text])[0], states.mean(axis=0), atol=1e-5)


@pytest.mark.parametrize("objective", ["masked", "causal"])
def test_scores_and_vectors_do_not_depend_on_the_batch(objective: str, tmp_path: Path) -> None:
    found = model(tmp_path, objective)
    texts = ["", "a", *TEXTS, "the film was good. " * 20]
    together, vectors = found.score(texts, stride=5), found.embed(texts)
    assert vectors.shape == (len(texts), 16)
    for number, text in enumerate(texts):
        (alone,) = found.score([text], stride=5)
        assert alone.log_probability == pytest.approx(together[number].log_probability, abs=1e-3)
        assert alone.tokens == together[number].tokens
        np.testing.assert_allclose(found.embed([text])[0], vectors[number], atol=1e-5)
    assert found.score([]) == [] and found.embed([]).size == 0


@pytest.mark.parametrize("objective", ["causal", "masked"])
def test_samples_and_examples_of_a_script_without_spaces_are_parts_of_the_text(objective: str, tmp_path: Path) -> None:
    text = "一个男人睡在公园里的长椅上。"
    (sample,) = samples("test", [text], model(tmp_path, objective, "bpe"))
    _, asked = LanguageCommands().example("language", {"language.model.objective": objective}, text)
    gap = f"{text[:7]}[MASK]{text[8:]}"
    expected = (text[:6], text[:8]) if objective == "causal" else (gap, gap)
    assert (sample[0], sample[1], asked) == ("test", *expected)


@pytest.mark.parametrize("kind", VOCABULARIES)
@pytest.mark.parametrize("method", ["greedy", "sample"])
def test_what_may_come_next_has_its_probability_and_is_continued(kind: str, method: str, tmp_path: Path) -> None:
    own = model(tmp_path, "causal", kind, method=method)
    text = "the film"
    found = details(own, text)
    shares = [each["probability"] for each in found["next"]]
    assert shares == sorted(shares, reverse=True) and 0 < sum(shares) <= 1.001
    best = [each for each in found["next"] if not each["end"]][:3]
    assert [each["probability"] for each in found["continuations"]] == [each["probability"] for each in best]
    for each in found["continuations"]:
        assert each["text"].startswith(text)
    if method == "greedy" and not found["next"][0]["end"]:
        assert found["continuations"][0]["text"] == own.generate(text), "the likeliest token begins it"


def test_the_perplexity_of_a_continuation_is_that_of_its_tokens(tmp_path: Path) -> None:
    own = model(tmp_path, "causal")
    (prompt,) = own.encode(["the film"])
    ((best,),) = continue_texts(own.engine.generator, [prompt[:-1]], own.vocabulary, own.decoding)
    first = details(own, "the film")["continuations"][0]
    assert len(best.ids) == own.decoding.max_length
    assert first["perplexity"] == pytest.approx(np.exp(-best.log_probability / len(best.ids)), abs=0.006)


def test_a_long_prompt_has_a_next_token_too(tmp_path: Path) -> None:
    found = details(model(tmp_path, "causal"), "the film was good " * 20)
    assert found["next"] and len(found["continuations"]) == 3


def test_the_loss_by_place_has_the_interval_of_a_mean() -> None:
    nats = np.random.default_rng(0).gamma(2.0, size=(50, 4))
    rows = by_place(nats.sum(axis=0), np.full(4, 50.0), (nats**2).sum(axis=0))
    assert [row[:2] for row in rows] == [("0", 50), ("1", 50), ("2-3", 100)]
    for (_, tokens, *found), values in zip(rows, (nats[:, 0], nats[:, 1], nats[:, 2:]), strict=True):
        width = 1.96 * values.std() / np.sqrt(tokens)
        np.testing.assert_allclose(found, [values.mean(), values.mean() - width, values.mean() + width], atol=1e-5)
