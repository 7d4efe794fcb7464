"""Finds a scheduling policy by the name under which a package offers it."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import cast

from agentjobs.errors import PolicyError
from agentjobs.scheduling.policies import Policy

GROUP = "agentjobs.policies"
DEFAULT = "fair-share"


def names() -> list[str]:
    """Return the names of all installed policies."""
    return sorted({entry.name for entry in entry_points(group=GROUP)})


def load(name: str) -> Callable[[], Policy]:
    """Return what makes a policy: one instance serves one pool.

    Raises:
        PolicyError: when no installed package offers it, several do, or it cannot be imported.
    """
    found = sorted(entry_points(group=GROUP, name=name), key=lambda entry: entry.value)
    if not found:
        raise PolicyError(f"there is no policy {name!r}; installed are {', '.join(names()) or 'none'}")
    if len({entry.value for entry in found}) > 1:
        offers = ", ".join(entry.value for entry in found)
        raise PolicyError(f"policy {name!r} is offered more than once: {offers}; uninstall all but one")
    try:
        make = found[0].load()
        make()
    except Exception as error:
        raise PolicyError(
            f"policy {name!r} ({found[0].value}) cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    return cast("Callable[[], Policy]", make)
