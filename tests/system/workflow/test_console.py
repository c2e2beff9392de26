"""The console command with the models of a real workflow."""

import io
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Clone
from transformer.cli import run_command


def test_translate_takes_arguments_files_and_pipes(workflow: Clone, tmp_path: Path) -> None:
    texts = ["Ein Mann schläft.", "Zwei Hunde spielen im Park."]
    (tmp_path / "texts").write_text("\n".join(texts) + "\n", encoding="utf-8")
    by_argument = workflow.run("transformer", "translate", *texts).stdout
    by_file = workflow.run("transformer", "translate", "--file", str(tmp_path / "texts")).stdout
    assert len(by_argument.splitlines()) == 2
    assert by_file == by_argument
    label, probability, text = workflow.run("transformer", "classify", "A fine film.").stdout.split("\t")
    assert label in ("negative", "positive") and 0.5 <= float(probability) <= 1 and text == "A fine film.\n"


def in_this_process(clone: Clone, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    """Run the console command in this process, where the libraries, most of its running time, are already loaded."""
    monkeypatch.chdir(clone.root)
    monkeypatch.setattr(sys, "argv", ["transformer", *arguments])
    run_command()


def test_translate_takes_decoding_options(
    workflow: Clone, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = ["Ein Mann schläft.", "", "Zwei Hunde spielen im Park."]

    def lines(*options: str) -> list[str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(texts).encode())))
        in_this_process(workflow, monkeypatch, "translate", *options)
        return capsys.readouterr().out.splitlines()

    plain = lines()
    assert lines("--beam", "1") == plain
    assert [line.split("\t")[1] for line in lines("--n-best", "1")] == plain
    three = [line.split("\t") for line in lines("--beam", "3", "--n-best", "3", "--max-length", "4")]
    assert len(three) == 9
    assert three[3:6] == [["0.0000", ""], ["-inf", ""], ["-inf", ""]]
    assert len({text for _, text in three[:3]}) == 3
    assert [text for _, text in three[::3]] == lines("--beam", "3", "--max-length", "4")
    sampled = ("--sample", "--seed", "7", "--temperature", "3")
    assert lines(*sampled) != plain
    assert lines(*sampled, "--top-k", "1") == plain


def test_samples_do_not_depend_on_how_the_texts_arrive(workflow: Clone) -> None:
    command = ("transformer", "translate", "--sample", "--temperature", "3")
    texts = ["Ein Mann schläft."] * 3
    together = workflow.run(*command, *texts).stdout.splitlines()
    assert len(set(together)) > 1, "every sentence has numbers of its own"
    with subprocess.Popen(
        command, cwd=workflow.root, env=workflow.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin and process.stdout
        for text, answer in zip(texts, together, strict=True):
            process.stdin.write(f"{text}\n")
            process.stdin.flush()
            assert process.stdout.readline() == f"{answer}\n"
        process.stdin.close()


def test_attention_of_a_text_is_shown_and_drawn(workflow: Clone, tmp_path: Path) -> None:
    shown = workflow.run("transformer", "attention", "Ein Hund läuft.").stdout
    assert "1 <bos>  2 ein  3 " in shown
    assert shown.startswith("Cross-attention: ein ")
    model = ("-m", "models/sentiment/bundle")
    workflow.run("transformer", "attention", *model, "--layers", "all", "A fine film.", "-o", str(tmp_path / "map.png"))
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


def test_output_that_cannot_be_written_is_one_line(workflow: Clone) -> None:
    found = workflow.run("sh", "-c", "transformer parameters runtime > /dev/full", check=False)
    assert (found.returncode, found.stderr) == (1, "error: the output cannot be written: No space left on device\n")


def test_a_text_with_a_line_end_stays_on_one_line(
    workflow: Clone, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    in_this_process(workflow, monkeypatch, "classify", "A fine\nfilm.\tSo", "Dull.")
    shown = [line.split("\t")[2:] for line in capsys.readouterr().out.splitlines()]
    assert shown == [["A fine film. So"], ["Dull."]]


def test_faults_of_the_command_line_are_one_line(
    workflow: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad").write_bytes(b"gut\n\xff\n")
    for arguments, message in [
        (("translate", "-m", "nowhere", "a"), "nowhere does not exist"),
        (("translate", "-m", "models/sentiment/bundle", "a"), "is a model for `transformer classify`: choose another"),
        (("translate", "-f", "nowhere"), "cannot read nowhere"),
        (("translate", "-f", str(tmp_path / "bad"), "a"), "give texts or --file, not both"),
        (("translate", "-f", str(tmp_path / "bad")), "line 2: not UTF-8"),
        (("translate", "-m", "models:/a@best", "a"), "models:/a@best is in MLflow's registry, and this reads folders"),
        (("translate", "-m", "params.yaml", "a"), "params.yaml is a file: name the folder of an exported model"),
        (("check", "nowhere.yaml"), "nowhere.yaml is missing"),
        (("translate", "--beam", "2", "--n-best", "3", "a"), "n_best (3) must not be more than beam_size (2)"),
        (("translate", "--temperature", "2", "a"), "--temperature has no effect without --sample"),
        (("translate", "--greedy", "--stopping", "first", "a"), "--stopping has no effect without --beam"),
        (("translate", "--greedy", "--mbr-utility", "bleu", "a"), "--mbr-utility has no effect without --beam"),
        (("translate", "--beam", "1", "--mbr-utility", "bleu", "a"), "--mbr-utility has no effect on a beam of 1"),
        (("translate", "--beam", "3", "--mbr-scale", "1", "a"), "without an expected utility: add --mbr-utility"),
        (("translate", "--sample", "--top-p", "0", "a"), "`decoding.top_p`"),
        (("attention", "--map", "x", "ein Hund"), "--map is one of cross_attention, encoder_attention"),
        (("attention", "-o", "map.gif", "ein Hund"), "--output map.gif must end in .png or .svg"),
        (("attention", "-o", "params.yaml/map.png", "ein Hund"), "cannot write params.yaml/map.png"),
        (("attention", " "), "has no token"),
        (("compare", "nowhere"), "'nowhere' is not a commit, experiment or MLflow run"),
        (("compare", "HEAD~1"), "HEAD~1 has no complete result in dvc.lock"),
    ]:
        with pytest.raises(SystemExit) as ended:  # with a message, which Python writes to stderr, and status 1
            in_this_process(workflow, monkeypatch, *arguments)
        assert message in str(ended.value.code)
        assert len(str(ended.value.code).splitlines()) == 1
        assert capsys.readouterr().err == ""
