"""Figures: held against their goals, printed, and kept under `results/`."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table

from agentjobs.scheduling import pool
from deploy.local.versions import KUBERNETES

RESULTS = Path(__file__).parent / "results"
_JSON, _TEXT = RESULTS / "figures.json", RESULTS / "figures.md"
_PACKAGES = ("agentjobs", "aiohttp", "kopf", "msgspec", "pydantic", "uvloop")


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value.

    Attributes:
        low, high: of repeated measurements, whose median `value` is.
        goal: what it should be at most, or at least where `at_least` says so.
    """

    name: str
    value: float
    unit: str
    low: float | None = None
    high: float | None = None
    goal: float | None = None
    at_least: bool = False

    @property
    def met(self) -> bool | None:
        """Whether the goal is met, None where there is none."""
        if self.goal is None:
            return None
        return self.value >= self.goal if self.at_least else self.value <= self.goal

    def row(self) -> tuple[str, str, str, str, str]:
        """Name, value with unit, range, goal, verdict: as text."""
        spread = "" if self.low is None or self.high is None else f"{_text(self.low)} to {_text(self.high)}"
        goal = "" if self.goal is None else f"{'≥' if self.at_least else '≤'} {_text(self.goal)}"
        verdict = {None: "", True: "met", False: "missed"}[self.met]
        return (self.name, f"{_text(self.value)} {self.unit}", spread, goal, verdict)


@dataclass(slots=True)
class Report:
    """What one benchmark found.

    Attributes:
        how: what was done, in a sentence or two.
        noise: share of the machine that other processes had meanwhile, 0 to 1, one a measurement.
    """

    name: str
    how: str
    figures: list[Figure] = field(default_factory=list)
    noise: list[float] = field(default_factory=list)

    def add(
        self,
        name: str,
        values: Sequence[float],
        unit: str,
        *,
        goal: float | None = None,
        at_least: bool = False,
    ) -> None:
        """Add the median of repeated measurements, or a single one."""
        low, high = (min(values), max(values)) if len(values) > 1 else (None, None)
        self.figures.append(Figure(name, statistics.median(values), unit, low, high, goal, at_least))

    @property
    def quiet(self) -> str:
        """How much others disturbed, in words."""
        share = max(self.noise, default=0.0)
        word = "quiet" if share < 0.05 else "shared" if share < 0.2 else "noisy"
        return f"the machine was {word}: other processes had up to {share:.0%} of it"


def show(report: Report) -> None:
    """Print a report as a table."""
    table = Table(title=report.name, title_justify="left", caption=report.quiet, caption_justify="left")
    for heading in ("figure", "value", "range", "goal", ""):
        table.add_column(heading, justify="left" if heading in ("figure", "") else "right")
    for figure in report.figures:
        style = "red" if figure.met is False else "green" if figure.met else None
        table.add_row(*figure.row(), style=style)
    console = Console()
    console.print(report.how)
    console.print(table)


def store(report: Report) -> None:
    """Put a report beside those of the other benchmarks, in place of its former self."""
    kept = json.loads(_JSON.read_text()) if _JSON.exists() else {}
    kept[report.name] = {
        "measured": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "machine": _machine(),
        "how": report.how,
        "quiet": report.quiet,
        "figures": [{**asdict(figure), "met": figure.met} for figure in report.figures],
    }
    RESULTS.mkdir(exist_ok=True)
    _JSON.write_text(json.dumps(kept, indent=2, ensure_ascii=False, sort_keys=True) + "\n")
    _TEXT.write_text(_markdown(kept))


def _markdown(kept: dict[str, dict[str, object]]) -> str:
    lines = ["# Figures", "", "Written by `make benchmark`; do not edit.", ""]
    for name, section in sorted(kept.items()):
        lines += [f"## {name}", "", f"{section['how']}", ""]
        lines += ["| figure | value | range | goal | |", "|---|---:|---:|---:|---|"]
        figures = section["figures"]
        assert isinstance(figures, list)
        for entry in figures:
            figure = Figure(**{key: value for key, value in entry.items() if key != "met"})
            lines.append(f"| {' | '.join(figure.row())} |")
        machine = section["machine"]
        assert isinstance(machine, dict)
        versions = ", ".join(f"{key} {value}" for key, value in machine.items() if key != "cores")
        lines += ["", f"{section['measured']}, {machine['cores']} cores; {section['quiet']}. {versions}.", ""]
    return "\n".join(lines)


def _machine() -> dict[str, object]:
    return {
        "cores": os.cpu_count(),
        "kubernetes": KUBERNETES,
        "python": platform.python_version(),
        "policy": "interpreted" if pool.__file__.endswith(".py") else "compiled",
        **{package: version(package) for package in _PACKAGES},
    }


def _text(value: float) -> str:
    """A number with three significant digits, at most two decimals."""
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
