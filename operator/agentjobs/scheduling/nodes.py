"""What is free on each node, so that a run is only started where one node can hold it."""

from __future__ import annotations

from collections.abc import Mapping

from agentjobs.scheduling.resources import NOTHING, Amounts

_REMEMBERED = 1000  # requests: each makes every change of a node dearer
_NO_ROOMS: Mapping[str, Amounts] = {}


class Nodes:
    """Free amounts of every node of a pool, and which nodes fit which request.

    The scheduler of Kubernetes places pods, not we: until a pod is bound, its run is counted on the node
    that has most room, which is where the scheduler's default scoring would put it.

    Cost: a change of one node is looked at once for each request known, whatever the number of nodes.
    """

    def __init__(self, offered: Mapping[str, Amounts]) -> None:
        self._offered = offered
        self._possible: dict[Amounts, bool] = {}
        self._free = dict(offered)
        self._fitting: dict[Amounts, set[str]] = {}

    def take(self, node: str, request: Amounts) -> None:
        """Count a request on a node; one that is not known is no error."""
        self._change(node, request, -1)

    def give(self, node: str, request: Amounts) -> None:
        """Undo `take`."""
        self._change(node, request, 1)

    def fitting(self, request: Amounts) -> set[str]:
        """Return the nodes that can hold a request now; the set is kept true and must not be changed."""
        known = self._fitting.get(request)
        if known is None:
            if len(self._fitting) == _REMEMBERED:
                self._fitting.clear()
            known = {node for node, free in self._free.items() if _holds(free, request)}
            self._fitting[request] = known
        return known

    def fits(self, request: Amounts, avoid: str | None = None) -> bool:
        """Whether a node other than one to avoid can hold a request now."""
        fitting = self.fitting(request)
        return len(fitting) > (avoid in fitting)

    def possible(self, request: Amounts) -> bool:
        """Whether a node could hold a request if nothing else were there."""
        known = self._possible.get(request)
        if known is None:
            known = any(_holds(offer, request) for offer in self._offered.values())
            self._possible[request] = known
        return known

    def freed(self, node: str, amounts: Amounts, rooms: dict[str, Amounts], request: Amounts) -> bool:
        """Add to the room on a node, among those of `rooms`, what will be freed there.

        Returns whether the node then holds a request; one that is not known never does.
        """
        room = rooms.get(node) or self._free.get(node)
        if room is None:
            return False
        rooms[node] = room = room.plus(amounts)
        return _holds(room, request)

    def roomiest(
        self, request: Amounts, avoid: str | None = None, rooms: Mapping[str, Amounts] = _NO_ROOMS
    ) -> str | None:
        """Return the node with most room among those that fit; None when there is none.

        Args:
            rooms: by node, what will be free there, where that is more than is free now.
        """
        fitting = self.fitting(request)
        if rooms:
            fitting = fitting.union(node for node, room in rooms.items() if _holds(room, request))
        return max(
            (node for node in fitting if node != avoid),
            key=lambda node: ((rooms.get(node) or self._free[node])[1:], node),
            default=None,
        )

    def _change(self, node: str, request: Amounts, sign: int) -> None:
        free = self._free.get(node)
        if free is None:
            return
        free = self._free[node] = Amounts(
            0, *(f + sign * r for f, r in zip(free[1:], request[1:], strict=True))
        )
        for shape, nodes in self._fitting.items():
            if _holds(free, shape):
                nodes.add(node)
            else:
                nodes.discard(node)


def _holds(free: Amounts, request: Amounts) -> bool:
    """Whether a node has enough of everything but slots, which belong to the pool."""
    return all(r <= f or not r for f, r in zip(free[1:], request[1:], strict=True))


def shrank(before: Mapping[str, Amounts] | None, after: Mapping[str, Amounts] | None) -> bool:
    """Whether a node went, or offers less of anything than before."""
    if before is None or after is None:
        return before is not after
    return any(min(after.get(node, NOTHING).minus(offer)) < 0 for node, offer in before.items())


def total(offered: Mapping[str, Amounts]) -> Amounts:
    """Return the sum of what all nodes offer."""
    sums = [sum(column) for column in zip(*offered.values(), strict=True)] or [0, 0, 0, 0]
    return Amounts(*sums)
