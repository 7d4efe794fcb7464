"""What the operator says of a run to `agentjobs explain`."""

from __future__ import annotations

import pytest

from agentjobs.controller.explain import explained
from agentjobs.controller.serve import is_near
from tests.unit.cluster.fake_api import JSON
from tests.unit.cluster.virtual import in_virtual_time
from tests.unit.controller.harness import Cluster, clock


def told(cluster: Cluster, name: str) -> JSON:
    found = explained(cluster.loop, "agents", name, clock())
    assert found is not None
    return found


@in_virtual_time
async def test_a_run_that_waits_and_others() -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.submit("first", teamId="blue", resources={"timeoutSeconds": 300})
        await cluster.calm()
        cluster.starts("first")
        cluster.submit("second", teamId="blue")
        cluster.submit("other", teamId="blue", priority="low")
        await cluster.calm()
        assert told(cluster, "first") == {
            "namespace": "agents",
            "name": "first",
            "team": "blue",
            "priority": "default",
            "pool": "default",
            "deleting": False,
            "phase": "RUNNING",
            "reason": cluster.status("first")["reason"],
        }
        second, other = (told(cluster, name)["waits"] for name in ("second", "other"))
        assert second["reason"] == "NoFreeSlot"
        assert second["message"] == "needs 1 slot; 1 of 1 are held"
        assert second["unblocks"] == "any run ends"
        assert (second["placeInTeam"], second["place"], other["placeInTeam"], other["place"]) == (1, 1, 1, 2)
        assert second["startsBefore"] == cluster.status("second").get("startsBefore", second["startsBefore"])
        assert second["startsBefore"] is not None
        assert (other["startsBefore"], other["holeSeconds"], other["wentAhead"]) == (None, None, None)
        # One that is over, and one that nobody knows.
        cluster.ends("first")
        await cluster.calm()
        ended = told(cluster, "first")
        assert (ended["phase"], ended["reason"]) == ("SUCCEEDED", "Completed")
        assert explained(cluster.loop, "agents", "nobody", clock()) is None
        assert explained(cluster.loop, "elsewhere", "first", clock()) is None


@pytest.mark.parametrize(
    ("remote", "near"),
    [("127.0.0.1", True), ("::1", True), ("10.0.0.7", False), ("fe80::1", False), ("", False), (None, False)],
)
def test_only_this_machine_or_pod_is_answered(remote: str | None, near: bool) -> None:
    assert is_near(remote) == near
