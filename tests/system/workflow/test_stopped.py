"""A stage that Ctrl-C or SIGTERM reaches at any moment ends with status 130 and one line."""

from collections.abc import Iterator

import pytest

from tests.conftest import Clone, make_clone

# Runs the real stage script; the code is run between the stage's work and its end.
STOPPED = """
import os, signal, sys
from transformer.core.unchanged import InputSnapshot
from transformer.workflow.stage import StageObserver, main

code, record = sys.argv.pop(), InputSnapshot.record
InputSnapshot.record = lambda self: (exec(code, globals()), record(self))
sys.argv.append("translation")
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore it
send = lambda name: os.kill(os.getpid(), getattr(signal, name))
main("download")
"""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    """A clone without tracking."""
    clone = make_clone(tmp_path_factory.mktemp("stopped") / "clone")
    clone.change({"runtime.tracking": False})
    yield clone


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("send('SIGINT')", id="while it works"),
        pytest.param("StageObserver.end = lambda *_: send('SIGTERM')", id="while its end is recorded"),
        pytest.param("StageObserver.end = lambda *_: send('SIGINT'); send('SIGTERM')", id="twice"),
    ],
)
def test_a_signal_is_one_line_and_status_130(clone: Clone, code: str) -> None:
    done = clone.run("python", "-c", STOPPED, code, check=False)
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
    assert [line for line in done.stderr.splitlines() if line.startswith("error: ")] == [
        "error: download@translation: stopped"
    ]


def test_a_file_that_cannot_be_used_is_one_line(clone: Clone) -> None:
    done = clone.run("python", "-c", STOPPED, "open('data')", check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    *_, line = done.stderr.splitlines()
    assert line == "error: download@translation: data cannot be used (Is a directory): check its path and permissions"
