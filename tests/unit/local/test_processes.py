"""Processes that outlive a command, and the supervisor that keeps one running."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local import processes, supervisor
from deploy.local.cluster import MARKER, ROOT
from deploy.local.processes import Process
from tests.live.support import eventually

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]
DEAF = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)",
]


@pytest.fixture
def env(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An environment that marks what is started in it; all of that is ended afterwards."""
    yield {**os.environ, MARKER: str(tmp_path)}
    processes.stop_leftovers(tmp_path)


def test_a_process_is_found_again_and_stopped(tmp_path: Path, env: dict[str, str]) -> None:
    started = _spawn(tmp_path, env, SLEEP)
    found = processes.load(tmp_path, "sleeper")
    assert found == started
    assert started.alive
    processes.stop(found)
    assert not started.alive


def test_a_process_that_ignores_term_is_killed(tmp_path: Path, env: dict[str, str]) -> None:
    started = _spawn(tmp_path, env, DEAF)
    processes.stop(started, seconds=0.1)
    assert not started.alive


def test_a_stopped_process_is_ended(tmp_path: Path, env: dict[str, str]) -> None:
    started = _spawn(tmp_path, env, SLEEP)
    started.signal(signal.SIGSTOP)
    processes.stop(started)
    assert not started.alive


def test_a_recycled_number_is_never_signalled(tmp_path: Path) -> None:
    stranger = Process("sleeper", os.getpid(), "another boot/1")
    assert not stranger.alive
    stranger.signal(signal.SIGKILL)
    processes.stop(stranger)


def test_what_was_not_recorded_is_found_by_its_environment(tmp_path: Path, env: dict[str, str]) -> None:
    started = _spawn(tmp_path, env, SLEEP)
    (tmp_path / "sleeper.json").unlink()
    assert [process.pid for process in processes.leftovers(tmp_path)] == [started.pid]
    assert list(processes.leftovers(tmp_path / "other")) == []
    processes.stop_leftovers(tmp_path)
    assert not started.alive


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}'])
def test_a_broken_record_is_no_record(tmp_path: Path, text: str) -> None:
    (tmp_path / "etcd.json").write_text(text)
    assert processes.load(tmp_path, "etcd") is None


def test_supervisor_starts_it_again_and_rewrites_the_pid_file(tmp_path: Path, env: dict[str, str]) -> None:
    keeper = _supervise(tmp_path, env, SLEEP)
    first = eventually(lambda: _present(tmp_path))
    os.kill(first, signal.SIGKILL)
    second = eventually(lambda: _present(tmp_path, other_than=first), seconds=2)
    processes.stop(keeper)
    assert processes.start_time(second) is None
    assert not (tmp_path / "program.pid").exists()
    assert "ended by SIGKILL" in (tmp_path / "program.log").read_text()


def test_supervisor_ends_a_program_that_is_paused(tmp_path: Path, env: dict[str, str]) -> None:
    keeper = _supervise(tmp_path, env, SLEEP)
    pid = eventually(lambda: _present(tmp_path))
    os.kill(pid, signal.SIGSTOP)
    processes.stop(keeper)
    assert processes.start_time(pid) is None


def test_supervisor_starts_what_fails_at_once_at_most_twice_a_second(
    tmp_path: Path, env: dict[str, str]
) -> None:
    keeper = _supervise(tmp_path, env, [sys.executable, "-c", "print('failed'); raise SystemExit(3)"])
    log = tmp_path / "program.log"
    eventually(lambda: log.exists() and log.read_text().count("exit code 3") >= 2)
    processes.stop(keeper)
    assert log.read_text().count("exit code 3") <= 4


@pytest.mark.parametrize(("code", "text"), [(0, "exit code 0"), (2, "exit code 2"), (-9, "ended by SIGKILL")])
def test_description_of_an_end(code: int, text: str) -> None:
    assert supervisor.describe(code) == text


def _spawn(folder: Path, env: dict[str, str], command: list[str]) -> Process:
    return processes.spawn("sleeper", command, folder=folder, log=folder / "sleeper.log", env=env, cwd=folder)


def _supervise(folder: Path, env: dict[str, str], command: list[str]) -> Process:
    keeper = [sys.executable, "-m", "deploy.local.supervisor"]
    files = [str(folder / "program.pid"), str(folder / "program.log")]
    return processes.spawn(
        "keeper", [*keeper, *files, *command], folder=folder, log=folder / "keeper.log", env=env, cwd=ROOT
    )


def _present(folder: Path, other_than: int = 0) -> int | None:
    try:
        pid = int((folder / "program.pid").read_text())
    except FileNotFoundError:
        return None
    return pid if pid != other_than else None
