"""Changes of leader again and again, as users see them: the figures of docs/availability.md."""

import signal
from statistics import median

import pytest

from deploy.local.local import LocalCluster
from tests.live.callers import Outage
from tests.live.contenders import contest, proxied
from tests.live.lab import Lab
from tests.live.outages import DISTURBANCES, disturbance, outage
from tests.live.support import eventually

ROUNDS = 5


@pytest.mark.parametrize("kind", DISTURBANCES)
def test_with_a_standby(cluster: LocalCluster, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for _ in range(ROUNDS):
        with contest(cluster) as lab, proxied(cluster) as proxy:
            leader, standby = lab.pair(proxy.port)
            found.append(outage(lab, disturbance(lab, kind, leader, standby, proxy.cut)))
    with capsys.disabled():
        tell(f"{kind}, a standby takes over", found)


@pytest.mark.parametrize("kind", ["kill", "terminate"])
def test_alone(lab: Lab, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The only operator ends, and is started again by its supervisor."""

    def disturb() -> None:
        process = lab.cluster.process("operator")
        assert process is not None
        if kind == "kill":
            lab.cluster.kill("operator")
        else:
            process.signal(signal.SIGTERM)
        eventually(lambda: not process.alive)
        eventually(lab.cluster.operator.ready, seconds=60)

    found = [outage(lab, disturb) for _ in range(ROUNDS)]
    with capsys.disabled():
        tell(f"{kind}, started again", found)


def tell(what: str, found: list[Outage]) -> None:
    """Print the rounds' durations, refusals and slowest answers."""
    seconds = sorted(each.seconds for each in found)
    refusals = {code: sum(each.refusals[code] for each in found) for each in found for code in each.refusals}
    slowest = max(each.slowest for each in found)
    print(
        f"\n{what}: {median(seconds):.1f} s ({seconds[0]:.1f} to {seconds[-1]:.1f}), "
        f"refusals in {len(found)} rounds {refusals}, the slowest {slowest:.2f} s"
    )
    for code, message in {code: text for each in found for code, text in each.messages.items()}.items():
        print(f"    {code}: {message[:200]}")
