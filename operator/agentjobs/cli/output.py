"""Where results go: the standard output, or a file. All of it arrives, or an error says why not."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

from agentjobs.errors import OutputError


@contextmanager
def standard_output(encoding: str | None = None) -> Iterator[TextIO]:
    """Yield the standard output; at the end of the block, what was printed there has arrived.

    Args:
        encoding: None for that of the terminal; what it does not have becomes a question mark.

    Raises:
        OutputError: when it cannot be written, for example because a disk is full.
        BrokenPipeError: when whoever read has seen enough.
    """
    out = sys.stdout
    if out is None:
        raise OutputError("the standard output cannot be written: it is closed")
    if isinstance(out, io.TextIOWrapper):
        out.reconfigure(encoding=encoding, errors="replace")
    try:
        yield out
        out.flush()
    except OSError as error:
        # What is still to be written goes nowhere: Python would try, and complain, once more at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
        if isinstance(error, BrokenPipeError):
            raise
        raise _failed("the standard output", error) from error


def write(path: Path, text: str) -> None:
    """Write a file as UTF-8, and say so; when that fails, no half of it stays behind.

    Raises:
        OutputError: when it cannot be written.
    """
    try:
        with path.open("wb") as file, ExitStack() as failed:
            if path.is_file() and not path.is_symlink():  # no device, and not /dev/stdout
                failed.callback(path.unlink)
            file.write(text.encode(errors="replace"))
            file.flush()
            failed.pop_all()
    except OSError as error:
        raise _failed(str(path), error) from error
    print(f"written: {path}", file=sys.stderr)


def _failed(what: str, error: OSError) -> OutputError:
    return OutputError(f"{what} cannot be written: {error.strerror or error}")
