"""Outputs are complete or absent; an existing file stays if writing fails."""

import os
import platform
import re
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kit import ROOT, STAGES, TASKS, stage_files
from transformer.core.errors import UserError
from transformer.core.files import (
    atomic_write,
    copy_file,
    copy_folder,
    read_rows,
    read_table,
    write_json,
    write_rows,
    write_table,
)


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Writing more raises OSError, as on a full disk, by the operating system itself and without privileges."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_what_cannot_be_written_is_one_line_and_what_stood_there_stays(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "file").write_bytes(b"x" * 9000)
    target = tmp_path / "folder" / "file"
    write_json(target, "before")
    for write in (
        lambda: write_json(target, "x" * 9000),
        lambda: write_rows(target, iter([{"text": "x" * 3000}] * 3)),
        lambda: write_table(target, ["column"], [["x" * 3000]] * 3),
        lambda: copy_folder(tmp_path / "source", target.parent),
    ):
        with largest_file(4096), pytest.raises(UserError) as raised:
            write()
        assert str(raised.value).startswith(f"cannot write {target}: File too large; free some disk space")
        assert [path.name for path in target.parent.iterdir()] == ["file"]
        assert target.read_bytes() == b'"before"\n'
    with pytest.raises(UserError, match=r"cannot write .*/file/more: "):
        write_json(target / "more", 1)


def test_an_error_inside_the_block_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), atomic_write(tmp_path / "file") as stream:
        stream.write(b"half")
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def test_the_next_write_removes_what_a_dead_process_left_and_spares_a_living_ones(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "file"):
        (part,) = tmp_path.iterdir()
    host = re.sub(r"[^\w-]", "-", platform.node())[:40]
    assert part.name == f".file.{host}.{os.getpid()}.part"
    with subprocess.Popen(["true"]) as dead:
        pass
    places = ((host, dead.pid), (host, os.getppid()), (f"another-{host}", dead.pid))
    left, *spared = (tmp_path / f".file.{where}.{process}.part" for where, process in places)
    for path in (left, *spared):
        path.touch()
    write_json(tmp_path / "another", 1)
    assert {*tmp_path.iterdir()} == {tmp_path / "file", tmp_path / "another", *spared}


def test_a_source_that_cannot_be_read_is_not_called_a_target_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match=rf"^{tmp_path}/folder cannot be read \(Is a directory\)"):
        copy_file(tmp_path / "folder", tmp_path / "copy")
    for read in (read_rows, read_table):
        with pytest.raises(UserError, match=rf"^{tmp_path}/folder cannot be read \(Is a directory\)"):
            list(read(tmp_path / "folder"))
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_stages_write_their_outputs_in_no_other_way() -> None:
    """Checked in the code of all stages: the only module that opens files for writing is files.py."""
    other = re.compile(r"write_(text|bytes)\(|shutil\.(copy|move)|save_file\(|to_(csv|json)\(|open\([^)]*[\"'][wax]")
    code = {path for stage in STAGES for task in TASKS for path in stage_files(stage, task) if path.endswith(".py")}
    found = {path for path in code if other.search((ROOT / path).read_text(encoding="utf-8"))}
    assert found == {"transformer/core/files.py"}
