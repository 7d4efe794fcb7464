"""Help for tests against a real API server: waiting on state, never on time."""

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


def eventually(look: Callable[[], Value | None], *, seconds: float = 30, every: float = 0.05) -> Value:
    """Call `look` until it returns something true and raises no AssertionError; return that.

    Raises:
        AssertionError: it did not within `seconds`; carries what was seen last.
    """
    until = time.monotonic() + seconds
    while True:
        seen: object = None
        cause: AssertionError | None = None
        try:
            value = look()
            if value:
                return value
            seen = value
        except AssertionError as error:
            cause = error
        if time.monotonic() > until:
            raise AssertionError(f"not within {seconds:g} s; seen last: {cause or seen!r}") from cause
        time.sleep(every)
