"""Finds a scheduling policy by the name under which a package offers it."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import cast

from agentjobs.errors import PolicyError
from agentjobs.scheduling.guard import told_by
from agentjobs.scheduling.policies import Policy

GROUP = "agentjobs.policies"
DEFAULT = "fair-share"


def names() -> list[str]:
    """Return the names of all installed policies."""
    return sorted({entry.name for entry in entry_points(group=GROUP)})


def load(name: str) -> Callable[[], Policy]:
    """Return what makes a policy: one instance serves one pool.

    Raises:
        PolicyError: when no installed package offers it, several do, it cannot be imported, or is no policy.
    """
    found = sorted(entry_points(group=GROUP, name=name), key=lambda entry: entry.value)
    if not found:
        raise PolicyError(f"there is no policy {name!r}; installed are {', '.join(names()) or 'none'}")
    if len({entry.value for entry in found}) > 1:
        offers = ", ".join(entry.value for entry in found)
        raise PolicyError(f"policy {name!r} is offered more than once: {offers}; uninstall all but one")
    who = f"policy {name!r} ({found[0].value})"
    try:
        make = found[0].load()
        lacks = _lacks(make())
    except (Exception, SystemExit) as error:
        raise PolicyError(f"{who} cannot be loaded: {told_by(error)}") from error
    if lacks:
        raise PolicyError(f"{who} is no policy: it has {', '.join(lacks)}; see docs/policies.md")
    return cast("Callable[[], Policy]", make)


def _lacks(made: object) -> list[str]:
    """Return what a thing lacks to be a policy."""
    name = getattr(made, "name", None)
    named = isinstance(name, str) and name.strip()
    methods = [method for method in ("propose", "why") if not callable(getattr(made, method, None))]
    return ([] if named else ["no attribute name"]) + [f"no method {method}" for method in methods]
