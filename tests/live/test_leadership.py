"""Two operators, one cluster: one leads, whatever befalls it; what it was doing goes on under the next."""

import time
from collections.abc import Iterator
from random import Random

import pytest

from deploy.local.local import LocalCluster
from tests.live.contenders import Contender, Contest, contest, proxied
from tests.live.lab import HOOKS
from tests.live.outages import DISTURBANCES, LEASE, disturbance, outage
from tests.live.stream import after_writes, assert_once, stream
from tests.live.support import eventually

FAILOVER_SECONDS = 10
HANDOVER_SECONDS = 2


@pytest.fixture
def lab(cluster: LocalCluster) -> Iterator[Contest]:
    with contest(cluster) as lab:
        yield lab


def led_to(lab: Contest) -> int:
    """The port that the API server asks at."""
    url = lab.api.request("GET", HOOKS)["webhooks"][0]["clientConfig"]["url"]
    return int(url.split("/")[2].rpartition(":")[2])


def taken_over(lab: Contest, standby: Contender, *, within: float) -> None:
    """Wait until the standby leads and answers reviews."""
    began = time.monotonic()
    eventually(lambda: standby.leads, seconds=60, every=0.02)
    assert time.monotonic() - began <= within, standby
    assert led_to(lab) == standby.admission_port


def test_of_two_started_together_one_leads(lab: Contest) -> None:
    both = [lab.start(), lab.start()]
    eventually(lambda: {contender.role for contender in both} == {"leader", "standby"}, seconds=60)
    assert sorted(contender.metric("agentjobs_leader") or 0 for contender in both) == [0, 1]
    assert led_to(lab) == lab.leader.admission_port
    with stream(lab, Random(1), 20) as runs:
        pass
    assert_once(lab, runs)
    assert {contender.role for contender in both} == {"leader", "standby"}


@pytest.mark.parametrize("kind", DISTURBANCES)
def test_whatever_befalls_the_leader_nothing_runs_twice_and_no_limit_is_passed(
    lab: Contest, cluster: LocalCluster, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Frozen past its Lease and woken, killed, cut off, asked to end, its Lease deleted by hand."""
    with proxied(cluster) as proxy:
        leader, standby = lab.pair(proxy.port)
        with stream(lab, Random(2)) as runs:
            after_writes(lab, runs, 20)
            seen = outage(lab, disturbance(lab, kind, leader, standby, proxy.cut))
        proxy.heal()
    assert_once(lab, runs)
    with capsys.disabled():
        print(f"\n{kind}: {seen}")
    assert seen.refusals.keys() <= {500, 503}
    assert seen.seconds <= FAILOVER_SECONDS
    assert led_to(lab) == lab.leader.admission_port


def test_its_lease_deleted_while_it_is_frozen_the_other_leads(lab: Contest) -> None:
    leader, standby = lab.pair()
    with stream(lab, Random(3)) as runs:
        after_writes(lab, runs, 20)
        leader.freeze()
        lab.api.delete(LEASE)
        taken_over(lab, standby, within=FAILOVER_SECONDS)
        leader.wake()
        eventually(lambda: leader.ended)
    assert_once(lab, runs)


def test_asked_to_end_with_nothing_in_flight_it_hands_over_within_two_seconds(lab: Contest) -> None:
    leader, standby = lab.pair()
    leader.terminate()
    taken_over(lab, standby, within=HANDOVER_SECONDS)
    eventually(lambda: leader.ended)
