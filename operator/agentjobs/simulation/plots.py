"""The plot of a replay: which part of the runs had started after how long a wait."""

from __future__ import annotations

from array import array
from collections.abc import Mapping

from agentjobs.scheduling.model import SECOND
from agentjobs.simulation.ranks import at_ranks
from agentjobs.simulation.svg import Axis, Line, chart

_WAIT = Axis(
    "wait",
    [
        (1, "1 s"),
        (10, "10 s"),
        (60, "1 min"),
        (600, "10 min"),
        (3600, "1 h"),
        (21_600, "6 h"),
        (86_400, "1 d"),
        (432_000, "5 d"),
        (2_592_000, "30 d"),
    ],
    logarithmic=True,
)
_STARTED = Axis("runs started", [(0, "0 %"), (0.25, "25 %"), (0.5, "50 %"), (0.75, "75 %"), (1, "100 %")])
_POINTS = 100


def waits(title: str, groups: Mapping[str, array[int]]) -> str:
    """Return an SVG with a line a group; waits are microseconds, those below a second count as one."""
    return chart(
        title, _WAIT, _STARTED, [Line(name, _curve(group)) for name, group in groups.items() if group]
    )


def _curve(waits: array[int]) -> list[tuple[float, float]]:
    """Return (seconds, part of the runs that had started by then), at most so many points."""
    count = len(waits)
    ranks = sorted({max(1, count * step // _POINTS) for step in range(_POINTS + 1)})
    found = zip(at_ranks(waits, ranks), ranks, strict=True)
    return [(max(1.0, wait / SECOND), rank / count) for wait, rank in found]
