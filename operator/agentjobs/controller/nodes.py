"""What nodes offer to the pools that are bound to them: allocatable, less what others take there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from agentjobs.apis import names
from agentjobs.apis.noderecords import ForeignPodRecord, NodeRecord
from agentjobs.cluster import paths
from agentjobs.cluster.reflector import Reflector
from agentjobs.cluster.session import Session
from agentjobs.scheduling.model import Holding
from agentjobs.scheduling.resources import Amounts


class Nodes:
    """Nodes and foreign pods; they are read only once a pool asks for them, since there may be many.

    Args:
        changed: called when what is offered may have changed.
    """

    def __init__(self, session: Session, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._nodes = Reflector(session, paths.NODES, NodeRecord, self._node_changed)
        self._pods = Reflector(
            session,
            paths.PODS,
            ForeignPodRecord,
            self._pod_changed,
            selector=f"!{names.LABEL_RUN_UID}",
            fields="status.phase!=Succeeded,status.phase!=Failed",
        )
        self._wanted = asyncio.Event()
        self._foreign: dict[str, Amounts] = {}  # by node: what foreign pods take there

    @property
    def complete(self) -> bool:
        """Whether both were listed: before that, nothing is known to be free."""
        return self._nodes.synced.is_set() and self._pods.synced.is_set()

    async def run(self) -> None:
        """Wait until a pool wants nodes, then follow them until cancelled."""
        await self._wanted.wait()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._nodes.run())
            group.create_task(self._pods.run())
            await self._nodes.synced.wait()
            await self._pods.synced.wait()
            self._changed()

    def offered(self, labels: Mapping[str, str], others: Mapping[str, Holding]) -> dict[str, Amounts]:
        """Return what each node of a selection offers; an empty map until everything was listed.

        Args:
            labels: that a node must have, all of them.
            others: what runs of other pools hold, by uid.
        """
        self._wanted.set()
        if not self.complete:
            return {}
        taken = dict(self._foreign)
        for holding in others.values():
            if holding.node is not None:
                taken[holding.node] = taken.get(holding.node, Amounts()).plus(holding.request)
        return {
            node.name: _left(node.offers, taken.get(node.name, Amounts()))
            for node in self._nodes.objects.values()
            if node.offers != Amounts() and labels.items() <= node.labels.items()
        }

    def _node_changed(self, old: NodeRecord | None, new: NodeRecord | None) -> None:
        # A kubelet's heartbeat changes the object and nothing that matters here.
        if old is None or new is None or (old.offers, old.labels) != (new.offers, new.labels):
            self._tell()

    def _pod_changed(self, old: ForeignPodRecord | None, new: ForeignPodRecord | None) -> None:
        before, after = _place(old), _place(new)
        if before == after:
            return
        for (node, takes), sign in ((before, -1), (after, 1)):
            if node:
                known = self._foreign.get(node, Amounts())
                self._foreign[node] = known.plus(takes) if sign > 0 else known.minus(takes)
        self._tell()

    def _tell(self) -> None:
        if self.complete:
            self._changed()


def _left(offers: Amounts, taken: Amounts) -> Amounts:
    """Return what is left on a node; one that is overdrawn must not count against the others."""
    return Amounts(0, *(max(0, there - used) for there, used in zip(offers[1:], taken[1:], strict=True)))


def _place(pod: ForeignPodRecord | None) -> tuple[str, Amounts]:
    return ("", Amounts()) if pod is None or not pod.node else (pod.node, pod.takes)
