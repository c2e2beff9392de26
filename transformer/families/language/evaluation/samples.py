"""Sample continuations, or sample words for gaps."""

from collections.abc import Iterator, Sequence

from transformer.families.language.decoding.predictor import LanguageModel
from transformer.families.language.nn.mask_token import MASK
from transformer.text.scripts import written_words

_TEXTS = 10  # per split
_PROMPT, _WORDS = 6, 30  # words per text
_GUESSES = 3


def samples(split: str, texts: Sequence[str], model: LanguageModel) -> Iterator[tuple[str, str, str]]:
    """Yield rows of split, model input and output: a continuation, or the most probable words for a gap."""
    written = [(words[:_WORDS], space) for words, space in map(written_words, texts[:_TEXTS])]
    if model.engine.causal:
        prompts = [space.join(words[:_PROMPT]) for words, space in written]
        for prompt, found in zip(prompts, model.generate_n_best(prompts), strict=True):
            yield split, prompt, found[0]
        return
    for words, space in written:
        place = len(words) // 2
        given = space.join([*words[:place], MASK, *words[place + 1 :]])
        guesses = model.fill(given, _GUESSES)
        yield split, given, ", ".join(f"{' '.join(found.words)} {found.probability:.2f}" for found in guesses)
