"""Policies that propose, set, raise and answer what no policy should, and a scene for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NoReturn, cast

from agentjobs.scheduling.books import Books
from agentjobs.scheduling.model import SECOND, Reservation, Run, Start, Wait
from agentjobs.scheduling.policies import Policy
from agentjobs.scheduling.resources import Amounts
from tests.unit.scheduling.scene import CRITICAL, HIGH, LOW, START, Scene

NOW = START * SECOND


def busy(policy: Policy, **settings: Any) -> Scene:
    """2 slots; a low run is the oldest, then a critical one of the same team, then a high one of another."""
    scene = Scene(policy, **{"slots": 2} | settings)
    scene.submit("blue-1", LOW, timeout=900)
    scene.now += 1
    scene.submit("blue-2", CRITICAL, timeout=300)
    scene.now += 1
    scene.submit("red-1", HIGH, timeout=60)
    return scene


class Odd:
    """Proposes and answers whatever functions of the books say."""

    name: ClassVar[str] = "odd"

    def __init__(
        self, propose: Callable[[Books], Any] | None = None, why: Callable[[Books], Any] | None = None
    ) -> None:
        self._propose = propose or (lambda _: iter(()))
        self._why = why or (lambda _: None)

    def propose(self, books: Books, _now: int) -> Iterator[Start]:
        return cast("Iterator[Start]", self._propose(books))

    def why(self, books: Books, _run: Run, _now: int) -> Wait | None:
        return cast("Wait | None", self._why(books))


def first(books: Books) -> Start:
    return Start(next(iter(books.waiting.values())), 300)


def one(**fields: Any) -> Callable[[Books], Iterator[Start]]:
    """Propose one good start, then one of which a field is not as it must be."""

    def propose(books: Books) -> Iterator[Start]:
        yield first(books)
        yield first(books)._replace(**fields)

    return propose


def yields(value: Any) -> Callable[[Books], Iterator[Any]]:
    def propose(books: Books) -> Iterator[Any]:
        yield first(books)
        yield value

    return propose


def fails(error: BaseException) -> Callable[..., Iterator[Start]]:
    def propose(books: Books, *_: Any) -> Iterator[Start]:
        yield first(books)
        raise error

    return propose


def same_for_ever(books: Books) -> Iterator[Start]:
    start = first(books)
    while True:
        yield start


def all_at_once(books: Books) -> Iterator[Start]:
    for run in list(books.waiting.values()):
        yield Start(run, 300)


def somebody_else(books: Books) -> Iterator[Start]:
    yield first(books)
    yield Start(first(books).run._replace(uid="stranger", name="a\nstranger"), 300)


def larger_than_life(books: Books) -> Iterator[Start]:
    """The same run, said to need nothing."""
    yield Start(first(books).run._replace(request=Amounts()), 300)


def sets(field: str, value: Callable[[Books], Any]) -> Callable[[Books], Iterator[Start]]:
    """Start one run, then set one of the policy's own fields."""

    def propose(books: Books) -> Iterator[Start]:
        yield first(books)
        setattr(books, field, value(books))

    return propose


def reserves(**fields: Any) -> Callable[[Books], Iterator[Start]]:
    """Reserve for a run that waits, with one field that cannot be."""
    good = Reservation("red-1", HIGH, NOW)
    return sets("reservation", lambda _: good._replace(**fields))


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")

    __repr__ = __str__


class Nameless:
    """A policy without a name, which fails."""

    def propose(self, *_: Any) -> NoReturn:
        raise ValueError("no idea")

    why = propose


class Ashamed(Nameless):
    @property
    def name(self) -> str:
        raise ValueError("no name")


class Numbered(Nameless):
    name = 7


class Blank(Nameless):
    name = ""
