"""Line charts as SVG, readable on light and on dark ground; no more than the reports need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import log10

_WIDTH, _HEIGHT = 640, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 150, 36, 46
_COLOURS = ("#2f7ed8", "#d9822b", "#4f9e4f", "#b04f9e", "#7f7f7f")
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 4")  # told apart without colour, too


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis: its title, and the values it is marked at, the first and the last being its ends.

    Attributes:
        marks: value and what is written there.
        logarithmic: equal factors are equally long; every mark is then above 0.
    """

    title: str
    marks: Sequence[tuple[float, str]]
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """Return where a value lies, 0 at one end and 1 at the other; beyond an end is at the end."""
        low, high = self.marks[0][0], self.marks[-1][0]
        value = min(max(value, low), high)
        if self.logarithmic:
            return log10(value / low) / log10(high / low)
        return (value - low) / (high - low)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a chart; `points` are (x, y)."""

    name: str
    points: Sequence[tuple[float, float]]


def chart(title: str, x: Axis, y: Axis, lines: Sequence[Line]) -> str:
    """Return an SVG document; the legend stands at the right."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'font-family="sans-serif" font-size="12" fill="#808080">',
        f"<title>{escape(title)}</title>",
        f'<text x="{_LEFT}" y="20" font-size="14">{escape(title)}</text>',
        *_grid(x, y),
    ]
    for number, line in enumerate(lines):
        parts += _line(line, number, x, y)
    return "\n".join((*parts, "</svg>", ""))


def _grid(x: Axis, y: Axis) -> list[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    parts = []
    for value, text in x.marks:
        at = _x(x, value)
        parts.append(f'<path d="M{at} {_TOP}V{bottom}" stroke="#808080" stroke-opacity=".3"/>')
        parts.append(f'<text x="{at}" y="{bottom + 16}" text-anchor="middle">{escape(text)}</text>')
    for value, text in y.marks:
        at = _y(y, value)
        parts.append(f'<path d="M{_LEFT} {at}H{right}" stroke="#808080" stroke-opacity=".3"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{escape(text)}</text>')
    middle = (_LEFT + right) // 2
    parts.append(f'<text x="{middle}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(x.title)}</text>')
    middle = (_TOP + bottom) // 2
    parts.append(
        f'<text x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})">'
        f"{escape(y.title)}</text>"
    )
    return parts


def _line(line: Line, number: int, x: Axis, y: Axis) -> list[str]:
    style = (
        f'fill="none" stroke="{_COLOURS[number % len(_COLOURS)]}" stroke-width="2" '
        f'stroke-dasharray="{_DASHES[number % len(_DASHES)]}"'
    )
    points = " ".join(f"{_x(x, at)},{_y(y, value)}" for at, value in line.points)
    right, height = _WIDTH - _RIGHT + 10, _TOP + 10 + 20 * number
    return [
        f'<polyline points="{points}" {style}/>',
        f'<path d="M{right} {height}h24" {style}/>',
        f'<text x="{right + 30}" y="{height + 4}">{escape(line.name)}</text>',
    ]


def _x(axis: Axis, value: float) -> float:
    return round(_LEFT + axis.place(value) * (_WIDTH - _RIGHT - _LEFT), 1)


def _y(axis: Axis, value: float) -> float:
    return round(_HEIGHT - _BOTTOM - axis.place(value) * (_HEIGHT - _BOTTOM - _TOP), 1)
