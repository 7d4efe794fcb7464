"""The API server and etcd stopped for a minute and more: longer than any request or watch may be silent."""

import time
from random import Random

import pytest

from tests.live.lab import Lab
from tests.live.stream import after_writes, assert_once, stream
from tests.live.support import eventually
from tests.live.test_faults import paused, recovery, survived, wait_until_back

MINUTE = 60
# Past the time after which a silent watch is given up, so that it is also opened anew.
BEYOND_SILENCE = 90


@pytest.mark.parametrize("seconds", [MINUTE, BEYOND_SILENCE])
@pytest.mark.parametrize("component", ["kube-apiserver", "etcd"])
def test_stopped_for_long(lab: Lab, component: str, seconds: int, capsys: pytest.CaptureFixture[str]) -> None:
    with survived(lab), stream(lab, Random(seconds)) as runs:
        after_writes(lab, runs, 40)
        with paused(lab, component):
            until = time.monotonic() + seconds
            eventually(lambda: time.monotonic() > until, seconds=seconds + 10, every=0.5)
        lasted = recovery(lab, wait_until_back(lab))
        with capsys.disabled():
            print(f"\n{component} stopped for {seconds} s: the operator wrote again {lasted:.1f} s after it")
    assert_once(lab, runs, outage=True)


def test_killed_again_and_again(lab: Lab) -> None:
    """The API server dies five times under one stream."""
    with survived(lab), stream(lab, Random(5)) as runs:
        for point in range(20, 120, 20):
            after_writes(lab, runs, point)
            lab.cluster.kill("kube-apiserver")
            lab.cluster.restart("kube-apiserver")
            wait_until_back(lab)
    assert_once(lab, runs, outage=True)
