"""What a server tells besides a text: other fillings, and the likeliest next tokens with where they lead."""

from typing import Any

import numpy as np

from transformer.data.text import given_texts, one_line
from transformer.families.language.model import LanguageModel, continue_texts, longest_prompt, never_generated
from transformer.inference.details import described, rounded

_FILLINGS = 5
_NEXT = 10
_FOLLOWED = 3


def details(model: LanguageModel, text: str) -> dict[str, Any]:
    """Return the `fillings` of a masked model, or of a causal one the `next` tokens and `continuations`.

    Next tokens have their probability after the text; the likeliest few are continued as the model was evaluated, each
    with its perplexity per token.
    """
    (text,) = map(one_line, given_texts([text]))
    if not model.engine.causal:
        filled = model.fill(text, _FILLINGS)
        return {"fillings": [{**each._asdict(), "words": [*each.words]} for each in filled]}
    vocabulary, prompt = model.vocabulary, model.encode([text])[0][:-1]
    longest = longest_prompt(model.engine.positions, model.decoding)
    read = prompt if len(prompt) <= longest else np.concatenate((prompt[:1], prompt[1 - longest :]))
    (row,) = model.engine.log_probabilities(read[None], np.array([len(read) - 1])).astype(np.float64)
    row[list(never_generated(vocabulary))] = -np.inf
    row -= np.logaddexp.reduce(row)
    best: list[int] = np.argsort(-row, kind="stable")[:_NEXT].tolist()
    shown = described(vocabulary, best)
    following = [
        {"text": each["text"], "end": token == vocabulary.end_id, "probability": rounded(np.exp(row[token]))}
        for token, each in zip(best, shown, strict=True)
    ]
    followed = [token for token in best if token != vocabulary.end_id][:_FOLLOWED]
    prompts = [np.append(prompt, token) for token in followed]
    params = model.decoding.model_copy(update={"max_length": max(model.decoding.max_length - 1, 1)})
    continuations = []
    found = continue_texts(model.engine.generator, prompts, vocabulary, params)
    for token, hypotheses in zip(followed, found, strict=True):
        rest = hypotheses[0]
        total = float(row[token]) + rest.log_probability
        continuations.append(
            {
                "text": model.continued(text, prompt, [token, *rest.ids]),
                "probability": rounded(np.exp(row[token])),
                "perplexity": rounded(np.exp(-total / (1 + len(rest.ids) + rest.finished)), 2),
            }
        )
    return {"next": following, "continuations": continuations}
