"""Kill storms: the operator is SIGKILLed at random points of a stream of runs, and started again."""

from random import Random

from tests.live.lab import Lab
from tests.live.stream import COUNT, Stream, after_writes, assert_once, stream
from tests.live.support import eventually

KILLS = 3


def storm(lab: Lab, seed: int) -> Stream:
    """One round: a stream with `KILLS` kills, each after a random number of the operator's writes.

    A write is in the audit log the moment it is done: so many kills fall between a write and the
    answer to it, and those whose point has passed meanwhile fall into the next start.
    """
    random = Random(seed)
    # A run costs four writes at most and two at least: the points lie within the stream.
    points = sorted(random.sample(range(1, 2 * COUNT), KILLS))
    print(f"seed {seed}: the operator is killed after {points} writes")
    with stream(lab, random) as runs:
        for point in points:
            after_writes(lab, runs, point)
            eventually(lambda: lab.cluster.process("operator"), every=0.002)
            lab.cluster.kill("operator")
    eventually(lab.cluster.operator.ready)
    assert_once(lab, runs)
    return runs
