"""Mutation tests: `make mutations` puts each of twenty bugs into the code and checks that its tests detect it.

    python -m tests.mutations [WORD...]    only those whose file or tests contain one of the words

Only the named tests run, so a mutation takes seconds to a minute. Files with uncommitted changes are left alone.
"""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Mutation(NamedTuple):
    """A bug."""

    file: str
    old: str
    """Text that occurs once in the file."""
    new: str
    tests: str
    """Arguments of pytest: the tests that detect the bug."""


MUTATIONS = (
    Mutation("transformer/nn/recurrent.py", "reset * new_hidden", "new_hidden", "tests/nn/test_recurrent.py"),
    Mutation(
        "transformer/families/seq2seq/nn/recurrent_attention.py",
        "(2 * (self.window / 2) ** 2)",
        "(2 * self.window**2)",
        "tests/nn/test_recurrent.py",
    ),
    Mutation(
        "transformer/families/seq2seq/nn/recurrent_decoder.py",
        "self.attention(cache.layers[-1][0]",
        "self.attention(cache.layers[0][0]",
        "tests/nn/test_recurrent_decoders.py",
    ),
    Mutation(
        "transformer/families/seq2seq/nn/cache.py",
        "self.fed = self.fed[rows]",
        "self.fed = self.fed[: len(rows)]",
        "tests/nn/test_recurrent_models.py -k chosen",
    ),
    Mutation(
        "transformer/families/seq2seq/nn/recurrent.py",
        "< self.teacher_forcing\n",
        "> self.teacher_forcing\n",
        "tests/nn/test_recurrent_models.py -k forcing",
    ),
    Mutation(
        "transformer/training/update.py",
        'if self._compute.device.type == "cpu":',
        "if True:",
        "tests/devices/test_devices.py",
    ),
    Mutation(
        "transformer/training/shards.py",
        "[seed, step, part]",
        "[seed, part]",
        "tests/training/test_shards.py -k draws",
    ),
    Mutation(
        "transformer/vocabulary/training.py",
        "key=lambda w: (-counts[w], w)",
        "key=lambda w: (-counts[w], hash(w))",
        "tests/workflow/test_reproducibility.py -k lock",
    ),
    Mutation(
        "dvc.yaml",
        "      params:\n        - ${key}.evaluate\n        - hardware\n",
        "      params:\n        - hardware\n",
        "tests/workflow/test_staleness.py -k each_section",
    ),
    Mutation(
        "transformer/core/unchanged.py",
        "changed = [*self._changed_params(), *self._changed_code()",
        "changed = [*self._changed_code()",
        "tests/workflow/test_changed_meanwhile.py -k dvc_records_may",
    ),
    Mutation(
        "transformer/export/exporting.py",
        "            if not agrees:\n",
        "            if False:\n",
        "tests/workflow/test_results.py -k differ_from_evaluates",
    ),
    Mutation(
        "transformer/families/seq2seq/decoding/decode.py",
        "rows], model.source_pad_id),",
        "rows], model.source_pad_id + 1),",
        "tests/decoding/test_decode.py",
    ),
    Mutation(
        "transformer/families/seq2seq/decoding/translator.py",
        "numbers = [first + index for index in filled]",
        "numbers = [index for index in filled]",
        "tests/workflow/test_console.py -k arrive",
    ),
    Mutation(
        "transformer/results/headline.py",
        "if lead > 0 and",
        "if lead < 0 and",
        "tests/reporting/test_page.py",
    ),
    Mutation(
        "transformer/results/chain.py",
        'content[stage.name] = {"params": plain(stage.params), "outs": outs}',
        'content[stage.name] = {"params": {}, "outs": outs}',
        "tests/tracking/test_workflow.py",
    ),
    Mutation(
        "transformer/results/chain.py",
        "all(wrote.get(path, md5) == md5 for path, md5 in reader.deps.items()) and all(",
        "all(",
        "tests/tracking/test_chain.py",
    ),
    Mutation(
        "transformer/tracking/sync.py",
        "for chain, time in chains_in_run_cache(run_cache):",
        "for chain, time in ():",
        "tests/tracking/test_workflow.py",
    ),
    Mutation(
        "transformer/tracking/live.py",
        "        if chain.stale:\n            raise",
        "        if False:\n            raise",
        "tests/tracking/test_partial.py",
    ),
    Mutation(
        "transformer/tracking/alias.py",
        "(-self.value if self.higher_is_better else self.value,",
        "(self.value if self.higher_is_better else -self.value,",
        "tests/tracking/test_alias.py",
    ),
    Mutation(
        "transformer/commands/committed.py",
        "        if text.startswith(DEFAULT_HEAD):\n            yield commit, text",
        "        if text:\n            yield commit, text",
        "tests/workflow/test_profiles.py",
    ),
)


def caught(mutation: Mutation) -> bool:
    """Whether the tests fail with the bug in place."""
    path = ROOT / mutation.file
    if subprocess.run(("git", "diff", "--quiet", "--", mutation.file), cwd=ROOT).returncode:
        sys.exit(f"{mutation.file} has changes that are not committed: commit or stash them first")
    before = path.read_bytes()
    text = before.decode()
    if text.count(mutation.old) != 1:
        sys.exit(f"{mutation.file} has {mutation.old!r} {text.count(mutation.old)} times: write the mutation anew")
    try:
        path.write_text(text.replace(mutation.old, mutation.new))
        command = (sys.executable, "-m", "pytest", "-x", "--no-cov", "--durations=0", *mutation.tests.split())
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    finally:
        path.write_bytes(before)
    return done.returncode == 1


def main(words: Sequence[str]) -> None:
    """Try all, and report those that the tests do not detect."""
    chosen = [each for each in MUTATIONS if not words or any(word in f"{each.file} {each.tests}" for word in words)]
    missed = 0
    for mutation in chosen:
        started = time.monotonic()
        seen = caught(mutation)
        missed += not seen
        verdict = "caught" if seen else "MISSED"
        print(f"{verdict}  {time.monotonic() - started:5.0f} s  {mutation.file}: {mutation.tests}", flush=True)
    if missed:
        sys.exit(f"{missed} of {len(chosen)} mutations were not seen")


if __name__ == "__main__":
    main(sys.argv[1:])
