"""JSON that is nested deeper than a decoder follows.

The API server stores up to 10,000 levels; a decoder gives up long before, and must not take everything
else that comes with the same answer down with it.
"""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec

T = TypeVar("T")

LIMIT = 100  # levels of one value; nothing that Kubernetes or we define comes near
_MARKS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[][{}]')
PLACEHOLDER = "nested too deeply"
_INSTEAD = f'"{PLACEHOLDER}"'.encode()


def decode(text: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[T], level: int) -> T:
    """Decode JSON; values on `level` that are nested without end are read as a text that says so.

    Args:
        level: of the values that may be replaced: 3 for the fields of the spec in an object that
            stands alone, more where the object is part of something.

    Raises:
        msgspec.DecodeError: as the decoder's own.
    """
    try:
        return decoder.decode(text)
    except RecursionError:
        return decoder.decode(_shallow(bytes(text), level))


def _shallow(text: bytes, level: int) -> bytes:
    parts: list[bytes] = []
    depth = deepest = begin = taken = 0
    for mark in _MARKS.finditer(text):
        match text[mark.start()]:
            case 0x5B | 0x7B:  # an opening bracket or brace
                depth += 1
                if depth == level:
                    begin, deepest = mark.start(), level
                deepest = max(deepest, depth)
            case 0x5D | 0x7D:
                if depth == level and deepest - level > LIMIT:
                    parts += (text[taken:begin], _INSTEAD)
                    taken = mark.end()
                depth -= 1
    return b"".join((*parts, text[taken:]))
