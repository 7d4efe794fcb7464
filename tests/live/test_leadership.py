"""Two operators, one cluster: one leads, whatever befalls it, and what it was doing goes on under the next."""

import time
from collections.abc import Iterator
from functools import partial
from random import Random

import pytest

from deploy.local.local import LocalCluster
from tests.live.contenders import Contender, Contest, contest, proxied
from tests.live.lab import HOOKS
from tests.live.outages import DISTURBANCES, LEASE, disturbed
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


def made_again(lab: Contest, uid: str) -> bool:
    """Whether there is a Lease, and another one than that."""
    lease = lab.api.get(LEASE)
    return lease is not None and lease["metadata"]["uid"] != uid


def taken_over(lab: Contest, standby: Contender, *, within: float) -> float:
    """Wait until the standby leads and answers reviews; return how long that took."""
    began = time.monotonic()
    eventually(lambda: standby.leads, seconds=60, every=0.02)
    seconds = time.monotonic() - began
    assert seconds <= within, standby
    assert led_to(lab) == standby.admission_port
    return seconds


# -- one leads ----------------------------------------------------------------------------------------


def test_of_two_started_together_one_leads(lab: Contest) -> None:
    both = [lab.start(), lab.start()]
    eventually(lambda: {contender.role for contender in both} == {"leader", "standby"}, seconds=60)
    assert sorted(contender.metric("agentjobs_leader") or 0 for contender in both) == [0, 1]
    assert led_to(lab) == lab.leader.admission_port
    with stream(lab, Random(1), 20) as runs:
        pass
    assert_once(lab, runs)
    assert {contender.role for contender in both} == {"leader", "standby"}


# -- the leader is frozen, cut off, deprived ----------------------------------------------------------


def test_frozen_past_its_lease_and_woken_it_ends_and_nothing_ran_twice(lab: Contest) -> None:
    leader, standby = lab.pair()
    with stream(lab, Random(2)) as runs:
        after_writes(lab, runs, 40)
        leader.freeze()
        taken_over(lab, standby, within=FAILOVER_SECONDS)
        leader.wake()
        eventually(lambda: leader.ended)
    assert_once(lab, runs)
    assert standby.leads


def test_cut_off_from_the_api_server_it_ends_before_the_other_leads(
    lab: Contest, cluster: LocalCluster
) -> None:
    with proxied(cluster) as proxy:
        leader, standby = lab.pair(proxy.port)
        with stream(lab, Random(3)) as runs:
            after_writes(lab, runs, 40)
            proxy.cut()
            eventually(lambda: leader.ended, every=0.02)
            assert not standby.leads
            proxy.heal()
            taken_over(lab, standby, within=FAILOVER_SECONDS)
    assert_once(lab, runs)


def test_its_lease_deleted_by_hand_it_goes_on(lab: Contest) -> None:
    leader, standby = lab.pair()
    with stream(lab, Random(4)) as runs:
        for writes in (20, 40, 60, 80):
            after_writes(lab, runs, writes)
            uid = lab.api.request("GET", LEASE)["metadata"]["uid"]
            lab.api.delete(LEASE)
            eventually(partial(made_again, lab, uid))
            assert (leader.role, standby.role) == ("leader", "standby")
    assert_once(lab, runs)
    eventually(lambda: lab.api.request("GET", LEASE)["spec"].get("holderIdentity"))
    assert (leader.role, standby.role) == ("leader", "standby")


def test_its_lease_deleted_while_it_is_frozen_the_other_leads(lab: Contest) -> None:
    leader, standby = lab.pair()
    with stream(lab, Random(5)) as runs:
        after_writes(lab, runs, 40)
        leader.freeze()
        lab.api.delete(LEASE)
        taken_over(lab, standby, within=FAILOVER_SECONDS)
        leader.wake()
        eventually(lambda: leader.ended)
    assert_once(lab, runs)


# -- it ends ------------------------------------------------------------------------------------------


def test_killed_the_other_leads_within_ten_seconds(lab: Contest) -> None:
    leader, standby = lab.pair()
    with stream(lab, Random(6)) as runs:
        after_writes(lab, runs, 40)
        leader.kill()
        taken_over(lab, standby, within=FAILOVER_SECONDS)
    assert_once(lab, runs)


def test_asked_to_end_it_hands_over_within_two_seconds(lab: Contest) -> None:
    leader, standby = lab.pair()
    leader.terminate()
    taken_over(lab, standby, within=HANDOVER_SECONDS)
    eventually(lambda: leader.ended)


def test_asked_to_end_in_the_middle_of_work_it_loses_nothing(lab: Contest) -> None:
    leader, standby = lab.pair()
    with stream(lab, Random(7)) as runs:
        after_writes(lab, runs, 40)
        leader.terminate()
        taken_over(lab, standby, within=FAILOVER_SECONDS)
    assert_once(lab, runs)


# -- what users see of it -----------------------------------------------------------------------------


@pytest.mark.parametrize("disturbance", DISTURBANCES)
def test_at_its_limit_a_team_gets_nothing_more_whoever_leads(
    lab: Contest, cluster: LocalCluster, disturbance: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with proxied(cluster) as proxy:
        leader, standby = lab.pair(proxy.port)
        outage = disturbed(lab, disturbance, leader, standby, proxy.cut)
    with capsys.disabled():
        print(f"\n{disturbance}: {outage}")
    assert outage.refusals.keys() <= {500, 503}
