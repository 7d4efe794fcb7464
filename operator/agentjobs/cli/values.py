"""Values of flags, each refused with its rule."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable


def filled(text: str) -> str:
    """Read a text that is not empty."""
    if not text.strip():
        raise ArgumentTypeError("it is empty")
    return text


def number(least: int, most: int) -> Callable[[str], int]:
    """Return a reader of whole numbers within bounds."""

    def read(text: str) -> int:
        # Not more than int() would take, and no digits of other scripts.
        if text.isascii() and text.isdecimal() and len(text) <= 20 and least <= int(text) <= most:
            return int(text)
        raise ArgumentTypeError(f"{text!r} is not a whole number from {least:,} to {most:,}")

    return read


def unlimited_or(read: Callable[[str], int]) -> Callable[[str], int | None]:
    """Return a reader that also takes the word `unlimited`, as None."""
    return lambda text: None if text == "unlimited" else _told(read, text, "is neither unlimited nor")


def _told(read: Callable[[str], int], text: str, words: str) -> int:
    try:
        return read(text)
    except ArgumentTypeError as error:
        raise ArgumentTypeError(str(error).replace("is not", words)) from None


def pairs(least: int, most: int) -> Callable[[str], dict[str, int]]:
    """Return a reader of `team=number,team=number`; a team's name may have an equals sign in it."""
    value = number(least, most)

    def read(text: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for part in text.split(","):
            team, equals, amount = part.rpartition("=")
            if not equals or not team:
                raise ArgumentTypeError(f"{part!r} is not TEAM=NUMBER")
            if team in found:
                raise ArgumentTypeError(f"team {team!r} is named twice")
            found[team] = _told(value, amount, f"for team {team!r} is not")
        return found

    return read
