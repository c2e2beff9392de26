"""Parameters in dvc.lock that no stage ran with."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.tracking.locks import chain_of, lock_of
from transformer.core.digest import parameters_digest
from transformer.results.partial import never_run


def test_parameters_that_were_never_run_are_known_by_the_outputs() -> None:
    """`dvc exp save` and `dvc commit --force` write the current parameters into dvc.lock."""
    chain = chain_of(lock_of())
    sections = dict(next(stage for stage in chain.stages if stage.name == "train").params["params.yaml"])
    path = "reports/translation/training.json"

    def read(digest: str) -> Callable[[str], bytes | None]:
        return lambda asked: json.dumps({"parameters_sha256": digest}).encode() if asked == path else None

    assert never_run(chain, read(parameters_digest(sections))) is None
    sections["hardware"] = {"threads": 2.0}
    assert never_run(chain, read(parameters_digest(sections))) is None
    sections["hardware"] = {"threads": 1}
    assert never_run(chain, read(parameters_digest(sections))) == "train"


@pytest.mark.parametrize(
    ("side", "ran"),
    [
        ({"kind": "none", "language": "fr", "lowercase": True, "html_breaks": "keep"}, True),
        ({"kind": "none", "language": "fr", "lowercase": False, "html_breaks": "keep"}, False),
        ({"kind": "spacy", "language": "fr", "lowercase": True, "html_breaks": "keep"}, False),
        ({"kind": "none", "language": "de", "lowercase": True, "html_breaks": "keep"}, False),
        ({"kind": "none", "language": "fr", "lowercase": True, "html_breaks": "space"}, False),
    ],
)
def test_parameters_of_tokenize_that_were_never_run_are_known_by_the_bundle(side: dict[str, Any], ran: bool) -> None:
    section = {"source": "de", "target": "fr", "lowercase": True, "kind": {"source": "spacy", "target": "none"}}
    lock = lock_of()
    lock["stages"]["tokenize@translation"]["params"] = {"params.yaml": {"translation.tokenize": section}}
    content = {"source": {"kind": "spacy", "language": "de", "lowercase": True, "html_breaks": "keep"}, "target": side}
    path = "models/translation/bundle/pretokenizer.json"
    found = never_run(chain_of(lock), lambda asked: json.dumps(content).encode() if asked == path else None)
    assert found == (None if ran else "tokenize")
