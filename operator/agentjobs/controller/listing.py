"""The stored objects of one kind that administrators edit, and which of their settings are in force."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import ValidationError

from agentjobs.apis import validation
from agentjobs.apis.base import Model
from agentjobs.apis.names import API_VERSION
from agentjobs.apis.records import SettingsRecord
from agentjobs.apis.root import Resource

_log = logging.getLogger(__name__)

Spec = TypeVar("Spec", bound=Model)


class Listed(NamedTuple):
    """An AgentPool or AgentTeam as it is stored, but for its spec.

    Attributes:
        version: its resourceVersion as a number.
        created: microseconds since the epoch.
        status: as JSON.
        fault: why its spec cannot be used; "" when it can.
    """

    uid: str
    version: int
    created: int
    generation: int
    status: dict[str, Any]
    fault: str = ""

    @property
    def observed(self) -> int:
        """The generation that its status was computed from; -1 for none."""
        stored = self.status.get("observedGeneration")
        return stored if isinstance(stored, int) else -1

    def condition(self, kind: str) -> dict[str, Any]:
        """Return a condition of its status; an empty one where there is none."""
        stored = self.status.get("conditions")
        found = (each for each in stored if isinstance(each, dict)) if isinstance(stored, list) else ()
        return next((each for each in found if each.get("type") == kind), {})

    def text(self, field: str) -> str:
        """Return a field of its status; "" where it is no text."""
        stored = self.status.get(field)
        return stored if isinstance(stored, str) else ""


class Listing(Generic[Spec]):
    """Everything stored of one kind, told by its reflector.

    An object that cannot be read keeps the settings it had: an edit past the schema must not
    open or close a pool.

    Args:
        kind, model: of the objects and of their specs.
        take: called with the name and the spec of an object whose settings are new or were edited.
        forget: called with the name of an object that is gone; it may never have been taken.

    Attributes:
        listed: by name.
        moved: names of objects that were stored or changed since somebody took them down.
    """

    def __init__(
        self,
        kind: type[Resource],
        model: type[Spec],
        take: Callable[[str, Spec], object],
        forget: Callable[[str], object],
    ) -> None:
        self.kind = kind.__name__
        self.listed: dict[str, Listed] = {}
        self.moved: set[str] = set()
        self._model = model
        self._take = take
        self._forget = forget

    def changed(self, old: SettingsRecord | None, new: SettingsRecord | None) -> bool:
        """An object was seen, changed or deleted; return whether settings may have changed."""
        if new is not None:
            return self.stored(new)
        return old is not None and self.deleted(old)

    def stored(self, record: SettingsRecord) -> bool:
        """An object was created or changed; return whether its settings may have."""
        name = record.name
        known = self.listed.get(name)
        if known is not None and known.uid != record.uid:
            if record.version < known.version:
                return False  # late news of one that was deleted: another has its name
            self._drop(name)
            known = None
        self.moved.add(name)
        if known is not None and not _edited(known, record):
            self._list(record, known.fault)
            return False
        spec = self._read(record)
        self._list(record, spec if isinstance(spec, str) else "")
        if not isinstance(spec, str):
            self._take(name, spec)
        return True

    def deleted(self, record: SettingsRecord) -> bool:
        """An object is gone; return whether that changes anything: another may have its name by now."""
        known = self.listed.get(record.name)
        if known is None or known.uid != record.uid:
            return False
        self._drop(record.name)
        return True

    def _drop(self, name: str) -> None:
        self._forget(name)
        del self.listed[name]

    def _list(self, record: SettingsRecord, fault: str) -> None:
        self.listed[record.name] = Listed(
            record.uid, record.version, record.created, record.generation, record.status, fault
        )

    def _read(self, record: SettingsRecord) -> Spec | str:
        """Return the spec, or what is wrong with it."""
        try:
            return self._model.model_validate(record.spec)
        except ValidationError as error:
            metadata = {"name": record.name}
            named = {"apiVersion": API_VERSION, "kind": self.kind, "metadata": metadata, "spec": record.spec}
            faults = validation.validate(named)
            fault = "; ".join(map(str, faults)) or error.errors(include_url=False)[0]["msg"]
            _log.error(
                "%s %s cannot be read and keeps its former settings: %s", self.kind, record.name, fault
            )
            return fault


def _edited(known: Listed, stored: SettingsRecord) -> bool:
    """Whether the spec may be another: every status that is written comes back as an event as well."""
    return not stored.generation or known.generation != stored.generation
