"""The writer: one write of a run at a time, the most urgent first, none forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agentjobs.cluster.writer import Writer
from tests.unit.cluster.virtual import in_virtual_time


def now() -> float:
    return asyncio.get_running_loop().time()


@asynccontextmanager
async def working(
    write: Callable[[str], Awaitable[float | None]], *, workers: int = 2
) -> AsyncIterator[Writer]:
    writer = Writer(write, workers)
    task = asyncio.create_task(writer.run())
    yield writer
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled(), task.exception()


class Log:
    """Writes that take a second each; some fail at first."""

    def __init__(self, **failures: float | Exception | None) -> None:
        self.begun: list[tuple[float, str]] = []
        self.most = 0  # at the same time
        self.failures: dict[str, list[float | Exception | None]] = {
            key: [failure] for key, failure in failures.items()
        }
        self._busy: list[str] = []

    async def write(self, key: str) -> float | None:
        assert key not in self._busy
        self._busy.append(key)
        self.begun.append((now(), key))
        self.most = max(self.most, len(self._busy))
        await asyncio.sleep(1)
        self._busy.remove(key)
        failure = self.failures[key].pop(0) if self.failures.get(key) else None
        if isinstance(failure, Exception):
            raise failure
        return failure

    @property
    def keys(self) -> str:
        return "".join(key for _, key in self.begun)


@in_virtual_time
async def test_no_more_than_the_workers_at_once_and_the_most_urgent_first() -> None:
    log = Log()
    async with working(log.write, workers=2) as writer:
        for key, urgency in (("a", 3), ("b", 2), ("c", 3), ("d", 0), ("e", 3)):
            writer.add(key, urgency)
        assert writer.depth == 5
        assert writer.loaded
        await writer.drain()
    assert log.keys == "dbace"
    assert log.most == 2
    assert writer.depth == 0


@in_virtual_time
async def test_asking_twice_is_asking_once_with_the_greater_urgency() -> None:
    log = Log()
    async with working(log.write, workers=1) as writer:
        for key, urgency in (("a", 2), ("b", 3), ("a", 2), ("b", 1), ("b", 3)):
            writer.add(key, urgency)
        assert writer.depth == 2
        await writer.drain()
    assert log.keys == "ba"


@in_virtual_time
async def test_what_is_asked_for_while_it_is_written_is_looked_at_once_more() -> None:
    log = Log()
    async with working(log.write) as writer:
        writer.add("a", 1)
        await asyncio.sleep(0.5)
        for _ in range(3):
            writer.add("a", 2)
        await writer.drain()
    assert log.begun == [(0, "a"), (1, "a")]


@in_virtual_time
async def test_what_failed_is_tried_again_after_longer_and_longer_pauses() -> None:
    log = Log()
    log.failures["a"] = [0.0] * 8
    async with working(log.write) as writer:
        writer.add("a", 1)
        await asyncio.sleep(50)
    begun = [moment for moment, _ in log.begun]
    pauses = [round(later - earlier - 1, 3) for earlier, later in pairwise(begun)]
    assert pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10]


@in_virtual_time
async def test_what_the_server_asks_to_wait_is_waited() -> None:
    log = Log(a=30.0)
    async with working(log.write) as writer:
        writer.add("a", 1)
        await asyncio.sleep(60)
    assert log.begun == [(0, "a"), (31, "a")]


@in_virtual_time
async def test_a_pause_is_not_cut_short_by_asking_and_holds_nobody_else_up() -> None:
    log = Log(a=30.0)
    async with working(log.write, workers=1) as writer:
        writer.add("a", 1)
        await asyncio.sleep(2)
        writer.add("a", 0)
        writer.add("b", 3)
        await writer.drain()
        await asyncio.sleep(60)
    assert log.begun == [(0, "a"), (2, "b"), (31, "a")]


@in_virtual_time
async def test_a_failure_of_our_own_is_tried_again_and_ends_no_worker() -> None:
    log = Log(a=RuntimeError("a bug"))
    async with working(log.write, workers=1) as writer:
        writer.add("a", 1)
        writer.add("b", 1)
        await asyncio.sleep(10)
    assert log.keys == "aba"


@in_virtual_time
async def test_it_never_tires() -> None:
    """A write that is refused for a day is tried for a day."""
    tries = 0

    async def write(key: str) -> float | None:
        nonlocal tries
        tries += 1
        return 0.0

    async with working(write) as writer:
        writer.add("a", 1)
        await asyncio.sleep(24 * 3600)
    assert 24 * 360 - 10 < tries < 24 * 360 + 10


@in_virtual_time
async def test_draining_nothing_takes_no_time() -> None:
    async with working(Log().write) as writer:
        await writer.drain()
        assert now() == 0


steps = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.integers(0, 3), st.sampled_from([0.0, 0.3, 1.0, 2.5])),
    max_size=30,
)


@given(steps, st.lists(st.sampled_from("abcdef"), max_size=6), st.integers(1, 3))
def test_whatever_is_asked_for_is_written_afterwards(
    asked: list[tuple[str, int, float]], failing: list[str], workers: int
) -> None:
    """No request is lost: a write of its run begins at or after every one of them."""

    @in_virtual_time
    async def story() -> None:
        log = Log(**dict.fromkeys(failing, 0.0))
        last: dict[str, float] = {}
        async with working(log.write, workers=workers) as writer:
            for key, urgency, pause in asked:
                writer.add(key, urgency)
                last[key] = now()
                await asyncio.sleep(pause)
            await asyncio.sleep(120)
        for key, moment in last.items():
            assert any(begun >= moment for begun, found in log.begun if found == key)
        assert log.most <= workers

    story()
