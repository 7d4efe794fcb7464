"""Floods of creates at a team's limit: exact when all is well; what faults let through is counted."""

import threading
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.compat.flood import Answer, flood
from tests.compat.user import AGENTJOBS, User
from tests.live.lab import Lab
from tests.live.support import eventually

LIMIT, AT_ONCE = 50, 80
FLOODS, FAULTS, WAVES = 100, 5, 10
SOON = 60


@pytest.fixture
def user(lab: Lab) -> Iterator[User]:
    """A team of its own each time; nothing of it is left."""
    user = User(lab)
    yield user
    lab.api.delete("/apis/agentjobs.dev/v1alpha1/namespaces/default/agentjobs")


def begin(user: User) -> tuple[threading.Thread, list[Answer]]:
    """Flood from a thread; its answers are there once it has ended."""
    answers: list[Answer] = []
    thread = threading.Thread(
        target=lambda: answers.extend(user.flood([user.manifest() for _ in range(AT_ONCE)]))
    )
    thread.start()
    return thread, answers


def over(user: User) -> int:
    return int(user.lab.metric("agentjobs_over_limit_runs_total") or 0)


def fill_up(user: User) -> None:
    """Create until the team is refused for its limit, as a patient client would after any other refusal."""

    def refused() -> bool:
        [(code, _)] = user.flood([user.manifest()])
        return code == 429

    eventually(refused, seconds=SOON)


@pytest.mark.parametrize("_round", range(FLOODS))
def test_eighty_at_once_leave_exactly_fifty(user: User, _round: int) -> None:
    codes = Counter(code for code, _ in user.flood([user.manifest() for _ in range(AT_ONCE)]))
    assert codes == {201: LIMIT, 429: AT_ONCE - LIMIT}
    assert len(user.stored()) == LIMIT


def test_creates_that_are_allowed_and_refused_later(user: User) -> None:
    """A quota comes after us. What is looked for then must not cost the leader its Lease; nothing stays."""
    lab, namespace = user.lab, user.lab.namespace()
    quotas = f"/api/v1/namespaces/{namespace}/resourcequotas"
    lab.make(quotas, {"metadata": {"name": "none"}, "spec": {"hard": {"count/agentjobs.agentjobs.dev": "0"}}})
    eventually(lambda: "hard" in lab.api.request("GET", f"{quotas}/none").get("status", {}))
    path, pid = AGENTJOBS.replace("/default/", f"/{namespace}/"), lab.cluster.pid("operator")
    for wave in range(WAVES):
        manifests = [user.manifest(teamId=f"{user.team}-{wave}-{number}") for number in range(AT_ONCE * 3)]
        codes = {code for code, _ in flood(lab.cluster, path, manifests)}
        assert codes <= {403, 500}, codes
    assert eventually(lambda: lab.metric("agentjobs_admission_reservations") == 0, seconds=SOON)
    assert lab.cluster.pid("operator") == pid


@pytest.mark.parametrize("answered", range(0, AT_ONCE, AT_ONCE // FAULTS))
def test_leader_that_is_killed_in_the_middle(user: User, answered: int) -> None:
    cluster = user.lab.cluster
    before = user.lab.metric("agentjobs_admission_reviews_total", kind="agentjobs", outcome="allowed") or 0
    thread, answers = begin(user)

    def in_the_middle() -> bool:
        allowed = (
            user.lab.metric("agentjobs_admission_reviews_total", kind="agentjobs", outcome="allowed") or 0
        )
        return allowed - before >= min(answered, LIMIT) or not thread.is_alive()

    eventually(in_the_middle, every=0.001)
    cluster.kill("operator")
    thread.join(SOON)
    assert {code for code, _ in answers} <= {201, 429, 500}, answers
    eventually(cluster.operator.ready, seconds=SOON)
    fill_up(user)
    assert len(user.stored()) == LIMIT + over(user)


@pytest.mark.parametrize("seconds", [3, 6, 12])
def test_etcd_that_stands_still_between_answer_and_storage(user: User, seconds: int) -> None:
    """Longer than 4.5 s costs the leader its Lease; longer than 5 s makes it look for what it allowed."""
    cluster = user.lab.cluster
    counted = over(user)
    still = threading.Event()
    cluster.pause("etcd")
    try:
        thread, answers = begin(user)
        still.wait(seconds)
    finally:
        cluster.resume("etcd")
    thread.join(2 * SOON)
    assert {code for code, _ in answers} <= {201, 429, 500, 504}, answers
    eventually(cluster.operator.ready, seconds=SOON)
    fill_up(user)
    new = over(user)
    # A process that ended for want of the Lease took its count along; it had seen nothing stored by then.
    assert len(user.stored()) == LIMIT + (new - counted if new >= counted else new)
