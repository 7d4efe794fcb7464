"""Kubernetes quantities ("1500m", "2Gi", "1e3") as exact numbers."""

from __future__ import annotations

import re
from fractions import Fraction

_QUANTITY = re.compile(
    r"([+-]?[0-9]*\.?[0-9]+|[+-]?[0-9]+\.)(?:([eE][+-]?[0-9]{1,3})|(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]))?"
)
_BINARY = {f"{letter}i": 1024 ** (power + 1) for power, letter in enumerate("KMGTPE")}
_DECIMAL = {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1)}
_SUFFIXES: dict[str, Fraction | int] = {
    **_DECIMAL,
    **{letter: 1000 ** (power + 1) for power, letter in enumerate("kMGTPE")},
    **_BINARY,
}

MEBI = 1024**2


def parse(text: str) -> Fraction:
    """Return a quantity; 0 for what is none, since a node or a pod that we cannot read must not stop us."""
    found = _QUANTITY.fullmatch(text)
    if found is None:
        return Fraction(0)
    number, exponent, suffix = found.groups()
    return Fraction(number + (exponent or "")) * _SUFFIXES[suffix or ""]


def floor(text: str, unit: Fraction | int = 1) -> int:
    """Return how many whole units a quantity has: for what a node offers."""
    return int(parse(text) // unit)


def ceil(text: str, unit: Fraction | int = 1) -> int:
    """Return how many units a quantity needs: for what a pod asks for."""
    return int(-(-parse(text) // unit))
