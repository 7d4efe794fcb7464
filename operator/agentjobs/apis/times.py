"""Time as the package holds it: whole microseconds since the epoch, UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

SECOND = 1_000_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse(text: str | None) -> int | None:
    """Return the microseconds of an RFC 3339 time; None for None, "" and what is no time at all."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def text(micros: int) -> str:
    """Return an RFC 3339 time in UTC with six decimals, `2026-11-29T23:59:59.000001Z`."""
    moment = _EPOCH + timedelta(microseconds=micros)
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def second(micros: int) -> str:
    """Return an RFC 3339 time in UTC without decimals, as Kubernetes' own conditions have it."""
    return text(micros)[:19] + "Z"


def within_second(seen: int, stamp: int) -> int:
    """Return `seen`, moved as little as needed to lie within the second that `stamp` begins.

    Kubernetes stamps whole seconds; our own clock is finer but sees things late.
    """
    return min(max(seen, stamp), stamp + SECOND - 1)
