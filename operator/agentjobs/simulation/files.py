"""Opens a trace by the name of its file."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO, cast

from agentjobs.errors import TraceError
from agentjobs.simulation.jsonl import read_jsonl
from agentjobs.simulation.tables import read_csv, read_swf
from agentjobs.simulation.trace import Trace

_KEPT = "surrogateescape"


@contextmanager
def opened(path: Path, *, team_column: str = "user", pool_name: str | None = None) -> Iterator[Trace]:
    """Open a trace: `.jsonl`, `.csv` or `.swf`, also with `.gz`; its runs are read as they are asked for.

    Raises:
        TraceError: for a file that cannot be opened or read, now or when its runs are asked for.
    """
    file = path.name
    kind = next((suffix for suffix in reversed(path.suffixes) if suffix != ".gz"), "")
    if kind not in (".jsonl", ".csv", ".swf"):
        raise TraceError(
            file, "is of no kind that is known", "name it .jsonl, .csv or .swf, perhaps with .gz"
        )
    try:
        with _text(path) as lines:
            if kind == ".csv":
                yield read_csv(lines, file, team_column)
            elif kind == ".swf":
                yield read_swf(lines, file, team_column)
            else:
                yield read_jsonl(lines, file, pool_name)
    except (OSError, EOFError, zlib.error) as error:
        words = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise TraceError(file, f"cannot be read: {words}", "name a whole file that can") from error


def _text(path: Path) -> TextIO:
    """Open a file; bytes that are no UTF-8 stay in the text, to be told of with their line."""
    if path.suffix == ".gz":
        return cast("TextIO", gzip.open(path, "rt", encoding="utf-8-sig", errors=_KEPT, newline=""))
    return path.open(encoding="utf-8-sig", errors=_KEPT, newline="")
