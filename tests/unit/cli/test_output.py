"""What a command writes arrives whole, or the command fails in a sentence."""

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agentjobs.cli import export, output
from agentjobs.cli.main import main
from agentjobs.errors import OutputError

FULL = "cannot be written: No space left on device"
TRACE = "user,interval,run_time\nbläu,0,1\n"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    path.write_text(TRACE, encoding="utf-8")
    return path


def run(*arguments: object, before: str = "", after: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command as a shell does."""
    command = f'{before} exec "$0" -m agentjobs.cli.main "$@" {after}'
    shell = ["/bin/sh", "-c", command, sys.executable, *map(str, arguments)]
    return subprocess.run(shell, capture_output=True, text=True, check=False)


def test_a_full_disk_below_the_standard_output_is_told_in_a_sentence(trace: Path) -> None:
    done = run("simulate", trace, "--json", trace.with_name("x"), after=">/dev/full")
    assert (done.returncode, done.stderr) == (1, f"agentjobs: the standard output {FULL}\n")
    assert not trace.with_name("x").exists()
    closed = run("simulate", trace, after=">&-")
    words = "agentjobs: the standard output cannot be written: it is closed\n"
    assert (closed.returncode, closed.stderr) == (1, words)


def test_whoever_has_read_enough_is_told_nothing(trace: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "agentjobs.cli.main", "simulate", str(trace), "--slots", "1"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


class Full(io.StringIO):
    """A standard output whose disk is full when it comes to it."""

    def __init__(self, fails: OSError, fileno: int) -> None:
        super().__init__()
        self.fails = fails
        self.fileno: Callable[[], int] = lambda: fileno

    def flush(self) -> None:
        raise self.fails


@pytest.mark.parametrize(
    ("fails", "words"),
    [
        (OSError(28, "No space left on device"), f"agentjobs: the standard output {FULL}\n"),
        (BrokenPipeError(), ""),
    ],
)
def test_an_export_that_does_not_arrive_fails(
    fails: OSError,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def nothing() -> tuple[list[object], list[object], list[object]]:
        return [], [], []

    monkeypatch.setattr(export, "_read", nothing)
    with (tmp_path / "out").open("wb") as file:
        monkeypatch.setattr(sys, "stdout", Full(fails, file.fileno()))
        assert main(["export"]) == 1
    assert capsys.readouterr().err == words


def test_a_file_is_utf_8_and_a_terminal_gets_what_it_has(trace: Path) -> None:
    found = trace.with_name("x.json")
    locale = "LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 PYTHONIOENCODING=ascii"
    done = run("simulate", trace, "--json", found, before=locale)
    assert done.returncode == 0
    assert "bl?u" in done.stdout
    assert '"bläu": {' in found.read_text(encoding="utf-8")


def test_a_file_that_cannot_be_written_whole_is_not_there(trace: Path) -> None:
    found = trace.with_name("x.json")
    done = run("simulate", trace, "--json", found, before="ulimit -f 0;")
    assert done.returncode == 1
    assert done.stderr.endswith(f"agentjobs: {found} cannot be written: File too large\n")
    assert not found.exists()


def test_what_is_no_file_of_ours_is_never_removed(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("/dev/full")
    for path in (Path("/dev/full"), link):
        with pytest.raises(OutputError, match=FULL):
            output.write(path, "x")
        assert path.exists()
