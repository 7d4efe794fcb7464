"""An event loop whose time passes only when there is nothing else to do: hours take no time at all."""

from __future__ import annotations

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

P = ParamSpec("P")

_MOST_TURNS = 20_000


class _Selector(selectors.SelectSelector):
    """Instead of waiting for the network, which there is none of, it moves the clock on."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self._turns = 0  # since time passed last

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise AssertionError("everything waits for something that will never happen")
        self._turns = 0 if timeout > 0 else self._turns + 1
        if self._turns > _MOST_TURNS:
            self._turns = 0  # what follows is the clean-up
            raise AssertionError("something spins: it is busy and no time passes")
        self.now += max(0.0, timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now


def in_virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Make a test of a coroutine function, run on a loop of its own that starts at second 0."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(test(*args, **kwargs))

    return run
