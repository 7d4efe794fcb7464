"""What the user sees while a command works: one line a phase, with its time."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TextIO


@dataclass
class Phase:
    """A phase under way; `result` is what its line says when it is over."""

    result: str = "done"


@dataclass
class Console:
    """Prints progress; a silent one (`Console(None)`) is for tests and benchmarks."""

    stream: TextIO | None = field(default_factory=lambda: sys.stdout)

    def say(self, text: str = "") -> None:
        """Print one line."""
        if self.stream:
            print(text, file=self.stream, flush=True)

    def fact(self, name: str, text: str) -> None:
        """Print what was chosen, and why."""
        self.say(f"  {name:<15} {text}")

    @property
    def terminal(self) -> bool:
        """Whether lines can be overwritten."""
        return self.stream is not None and self.stream.isatty()

    def progress(self, name: str, text: str) -> None:
        """Show where a long phase stands: in place on a terminal, as a line of its own elsewhere."""
        if self.stream:
            end = "\r" if self.terminal else "\n"
            print(f"  {name:<15} {text:<58}", end=end, file=self.stream, flush=True)

    @contextmanager
    def phase(self, name: str) -> Iterator[Phase]:
        """Time one phase and print a line for it, also when it fails."""
        phase, began = Phase(), time.monotonic()
        if self.terminal:
            self.progress(name, "…")
        try:
            yield phase
        except BaseException:
            self.say(f"  {name:<15} {f'failed after {time.monotonic() - began:.1f} s':<58}")
            raise
        self.say(f"  {name:<15} {phase.result:<58} {time.monotonic() - began:5.1f} s")
