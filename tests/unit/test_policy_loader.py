"""Policies by name: what is installed, and what a package may do wrong."""

import re
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from agentjobs import policy_loader
from agentjobs.errors import PolicyError
from agentjobs.scheduling.fairshare import FairShare
from agentjobs.scheduling.policies import Fifo, PriorityOnly
from tests.unit.scheduling.odd import Nameless, UnspeakableError

__all__ = ["Nameless"]  # offered below
FIFO = "agentjobs.scheduling.policies:Fifo"


def offer(monkeypatch: pytest.MonkeyPatch, *offers: tuple[str, str]) -> None:
    points = EntryPoints(EntryPoint(name, value, policy_loader.GROUP) for name, value in offers)
    monkeypatch.setattr(policy_loader, "entry_points", points.select)


def test_three_are_shipped() -> None:
    assert policy_loader.names() == ["fair-share", "fifo", "priority-only"]
    made = [type(policy_loader.load(name)()) for name in policy_loader.names()]
    assert made == [FairShare, Fifo, PriorityOnly]
    assert policy_loader.DEFAULT in policy_loader.names()


def test_one_that_nobody_offers_is_told_with_those_that_are(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, ("b", FIFO), ("a", FIFO))
    with pytest.raises(PolicyError, match="there is no policy 'c'; installed are a, b"):
        policy_loader.load("c")
    offer(monkeypatch)
    with pytest.raises(PolicyError, match="installed are none"):
        policy_loader.load("c")


def test_two_offers_of_one_name_are_refused_unless_they_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, ("a", FIFO), ("a", FIFO))
    assert policy_loader.load("a") is Fifo
    offer(monkeypatch, ("a", FIFO), ("a", "other:Thing"))
    with pytest.raises(
        PolicyError, match=r"policy 'a' is offered more than once: .*, other:Thing; uninstall"
    ):
        policy_loader.load("a")


@pytest.mark.parametrize("value", ["nowhere.at.all:Thing", "agentjobs.scheduling.policies:Absent", "math:pi"])
def test_one_that_cannot_be_made_is_told(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    offer(monkeypatch, ("a", value))
    with pytest.raises(PolicyError, match=rf"policy 'a' \({value}\) cannot be loaded: \w+Error: "):
        policy_loader.load("a")


class NoPolicy:
    name = " "
    propose = 7


class Exits:
    def __init__(self) -> None:
        raise SystemExit("bye")


class Shy(Exits):
    """Made, but asking for its name goes wrong, in an error that has no words."""

    def __init__(self) -> None:
        self.made = True

    @property
    def name(self) -> str:
        raise UnspeakableError


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (
            "NoPolicy",
            "is no policy: it has no attribute name, no method propose, no method why; see docs/policies.md",
        ),
        ("Nameless", "is no policy: it has no attribute name; see docs/policies.md"),
        ("Exits", "cannot be loaded: SystemExit: bye"),
        ("Shy", "cannot be loaded: UnspeakableError: it cannot say what"),
    ],
)
def test_one_that_is_no_policy_is_told_with_what_it_lacks(
    monkeypatch: pytest.MonkeyPatch, thing: str, message: str
) -> None:
    value = f"{__name__}:{thing}"
    offer(monkeypatch, ("a", value))
    with pytest.raises(PolicyError, match=re.escape(f"policy 'a' ({value}) {message}")):
        policy_loader.load("a")
