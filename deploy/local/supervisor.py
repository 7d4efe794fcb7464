"""Keeps one program running: starts it again within a second, however it ended.

Run as `python -m deploy.local.supervisor PID_FILE LOG PROGRAM ARGUMENT…`. The
pid file always names the present process. TERM or INT ends the program (KILL
after a grace period), removes the file, and then the supervisor itself.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from deploy.local.processes import write_atomically

RESTART_SECONDS = 0.5
GRACE_SECONDS = 10


class Supervisor:
    """One program, its present process, and whether it is to stop."""

    def __init__(self, command: Sequence[str], pid_file: Path) -> None:
        self.command = command
        self.pid_file = pid_file
        self.child: subprocess.Popen[bytes] | None = None
        self.stopping = False

    def run(self, output: IO[bytes]) -> None:
        """Start the program again and again until `stop` is called."""
        while not self.stopping:
            began = time.monotonic()
            self.child = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
            write_atomically(self.pid_file, f"{self.child.pid}\n")
            self._end_if_stopping()  # the signal may have come while it was being started
            _note(output, describe(self.child.wait()))
            # What ran for a while is started again at once, what fails at once twice a second.
            time.sleep(max(0.0, RESTART_SECONDS - (time.monotonic() - began)))
        self.pid_file.unlink(missing_ok=True)

    def stop(self, *_: object) -> None:
        """The handler of TERM and INT."""
        self.stopping = True
        self._end_if_stopping()

    def _end_if_stopping(self) -> None:
        if self.stopping and self.child is not None:
            self.child.terminate()
            # A program that is stopped (SIGSTOP) takes its TERM only once it runs again.
            self.child.send_signal(signal.SIGCONT)
            signal.setitimer(signal.ITIMER_REAL, GRACE_SECONDS)

    def kill(self, *_: object) -> None:
        """The handler of the timer: the grace period is over."""
        if self.child is not None:
            self.child.kill()


def describe(code: int) -> str:
    """A process's end in words: `exit code 1`, `ended by SIGKILL`."""
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _note(output: IO[bytes], text: str) -> None:
    output.write(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ} supervisor: {text}\n".encode())


def main(pid_file: Path, log: Path, command: Sequence[str]) -> None:
    """Supervise `command` until TERM or INT."""
    supervisor = Supervisor(command, pid_file)
    signal.signal(signal.SIGTERM, supervisor.stop)
    signal.signal(signal.SIGINT, supervisor.stop)
    signal.signal(signal.SIGALRM, supervisor.kill)
    with log.open("ab", buffering=0) as output:
        supervisor.run(output)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
