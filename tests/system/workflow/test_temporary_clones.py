"""A user's own corpora in real temporary clones: `dvc exp run --temp`."""

from pathlib import Path

from ruamel.yaml import YAML

from tests.conftest import Clone, make_clone

LOCAL = "data/local/translation"
STAGE = "download@translation"


def write_corpus(folder: Path, word: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", "val", "test"):
        for side in ("de", "en"):
            (folder / f"{split}.{side}").write_text("".join(f"{word} {side} {number}\n" for number in range(9)))


def experiment(clone: Clone, path: Path | str, *arguments: str) -> tuple[str, str]:
    """Read the corpus at `path` in a temporary clone; returns the hash of the output, or "", and what was printed."""
    changes = ("-S", "translation.download.source=files", "-S", f"translation.download.path={path}")
    done = clone.run("dvc", "exp", "run", "--temp", "-n", "own", "-f", *arguments, *changes, STAGE, check=False)
    if done.returncode:
        return "", done.stderr
    (reference,) = clone.run("git", "for-each-ref", "--format=%(refname)", "refs/exps/*/*/own").stdout.split()
    lock = YAML(typ="safe").load(clone.run("git", "show", f"{reference}:dvc.lock").stdout)
    return lock["stages"][STAGE]["outs"][0]["md5"], done.stdout


def test_an_experiment_reads_the_corpus_that_its_path_names_now_or_says_in_one_line_that_it_cannot(
    tmp_path: Path,
) -> None:
    clone, outside = make_clone(tmp_path / "clone"), tmp_path / "outside"
    write_corpus(outside, "first")
    first, _ = experiment(clone, outside)
    write_corpus(outside, "second")
    second, _ = experiment(clone, outside)
    assert first and second and first != second, "nothing from the run cache"
    write_corpus(outside, "first")
    assert experiment(clone, outside)[0] == first

    write_corpus(clone.root / LOCAL, "first")
    clone.change({"translation.download.source": "files"})
    assert clone.repro(STAGE) == [STAGE], "and the run cache knows it"
    out, printed = experiment(clone, LOCAL)
    (line,) = [line for line in printed.splitlines() if line.startswith("error: ")]
    assert not out and f"a temporary clone sees only what git tracks, so name the absolute path {clone.root}" in line
    assert experiment(clone, clone.root / LOCAL)[0] == first
    clone.run("git", "checkout", "-q", "params.yaml")

    mine = "corpora/mine"
    write_corpus(clone.root / mine, "first")
    out, printed = experiment(clone, mine)
    assert not out and f"so name the absolute path {clone.root}/{mine}" in printed
    assert experiment(clone, mine, "--copy-paths", mine)[0] == first
    write_corpus(clone.root / mine, "second")
    assert experiment(clone, mine, "--copy-paths", mine)[0] == second

    out, printed = experiment(clone, "../outside", "--copy-paths", "../outside")
    assert not out and f"../outside leads out of the temporary clone, so name the absolute path {outside}" in printed
    write_corpus(outside, "second")
    out, printed = experiment(clone, "../outside")
    assert not out and f"so name the absolute path {outside}" in printed, "DVC left the old copy, which is not read"
