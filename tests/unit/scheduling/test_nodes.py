"""Pools whose capacity is what nodes offer."""

import pytest

from agentjobs.scheduling.nodes import Nodes, shrank
from agentjobs.scheduling.resources import Amounts
from tests.unit.scheduling.scene import CRITICAL, HIGH, Scene, amounts

GIB = 1_024


def test_fragmented_nodes() -> None:
    nodes = {"n1": Amounts(0, 4_000, 8 * GIB, 0), "n2": Amounts(0, 4_000, 8 * GIB, 0)}
    scene = Scene(nodes=nodes)
    scene.running("b-1", amounts(cpu=2_000), ends_in=500, node="n1")
    scene.running("b-2", amounts(cpu=2_000), ends_in=900, node="n2")
    scene.submit("a-1", request=amounts(cpu=3_000))
    assert scene.look() == []
    assert scene.why("a-1") == "NoNodeFits"
    held = scene.pool.books.reservation
    assert held is not None
    assert (held.node, scene.promise) == ("n1", ("a-1", 500))
    scene.submit("c-1", request=amounts(cpu=2_000), timeout=9_000)
    assert [(start.run.uid, start.avoid_node) for start in scene.plan().starts] == [("c-1", "n1")]


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (amounts(cpu=1), "InsufficientCPU"),
        (amounts(memory=1), "InsufficientMemory"),
        (amounts(gpus=1), "InsufficientGPU"),
        (amounts(), "NoNodeFits"),
    ],
)
def test_a_pool_without_nodes_has_nothing(request_: Amounts, reason: str) -> None:
    scene = Scene(nodes={})
    scene.submit("a-1", request=request_)
    assert scene.look() == []
    assert scene.why("a-1") == reason


def test_what_holds_since_before_the_nodes_were_known_is_counted_on_one_of_them() -> None:
    """Found by history 92974: b-1 takes 1 core for ever of the only node that could hold a-1."""
    scene = Scene(slots=3)
    scene.running("b-1", amounts(cpu=1_000), ends_in=None)
    scene.running("c-1", amounts(cpu=2_000), ends_in=390)
    scene.submit("a-1", request=amounts(cpu=4_000))
    scene.configure(nodes={"n1": Amounts(0, 2_000), "n2": Amounts(0, 4_000)})
    assert scene.look() == []
    assert [holding.node for holding in scene.pool.books.holdings.values()] == ["n2", "n2"]
    assert scene.promise is None
    scene.finish("b-1")
    scene.look()
    assert scene.promise == ("a-1", 390)


def test_a_run_larger_than_every_node_waits_and_holds_nothing_up() -> None:
    scene = Scene(nodes={"n1": Amounts(0, 4_000)})
    scene.submit("a-1", HIGH, amounts(cpu=5_000))
    scene.submit("b-1", request=amounts(cpu=1_000))
    assert scene.look() == ["b-1"]
    assert scene.why("a-1") == "InsufficientCPU"
    assert scene.promise is None


def test_a_holder_whom_the_pool_has_become_too_small_for_loses_the_reservation() -> None:
    nodes = {"n1": Amounts(0, 4_000), "n2": Amounts(0, 2_000)}
    scene = Scene(nodes=nodes, share_percent=100)
    scene.running("b-1", amounts(cpu=3_000), node="n1")
    scene.submit("a-1", request=amounts(cpu=4_000))
    scene.look()
    assert scene.promise == ("a-1", 600)
    scene.configure(nodes={"n2": Amounts(0, 2_000)})
    scene.submit("c-1", request=amounts(cpu=1_000), timeout=80_000)
    scene.look()
    assert scene.promise != ("a-1", 600)


def test_nodes_remember_a_thousand_requests_and_answer_the_same_for_more() -> None:
    nodes = Nodes({"n1": Amounts(0, 1_500), "n2": Amounts(0, 3_000)})
    for round_ in range(2):
        for cpu in range(2_000):
            fitting = {name for name, most in (("n1", 1_500 - 100 * round_), ("n2", 3_000)) if cpu <= most}
            assert nodes.fitting(amounts(cpu=cpu)) == fitting
        nodes.take("n1", amounts(cpu=100))
    assert len(nodes._fitting) == 1_000


@pytest.mark.parametrize(
    ("nodes", "cause"),
    [
        ({"n1": Amounts(0, 4_000, 2_048), "n2": Amounts(0, 1_000)}, "MoreUrgentClass"),
        ({"n1": Amounts(0, 5_000, 2_048)}, "MoreUrgentClass"),
        ({"n1": Amounts(0, 3_999, 4_096)}, "LostCapacity"),
        ({"n1": Amounts(0, 4_000, 1_024)}, "LostCapacity"),
        ({"n2": Amounts(0, 4_000, 2_048)}, "LostCapacity"),
    ],
)
def test_only_nodes_that_offer_less_or_go_break_a_promise(nodes: dict[str, Amounts], cause: str) -> None:
    """A more urgent run takes what a-1 was promised; what happened first is the cause that counts."""
    before = {"n1": Amounts(0, 4_000, 2_048)}
    scene = Scene(nodes=before, share_percent=100)
    scene.running("b-1", amounts(cpu=3_000), node="n1")
    scene.submit("a-1", request=amounts(cpu=3_000))
    assert scene.look() == []
    scene.configure(nodes=nodes)
    scene.submit("c-1", CRITICAL, amounts(cpu=3_000))
    scene.look()
    scene.configure(nodes=before)
    scene.finish("b-1")
    assert scene.look(100) == ["c-1"]
    scene.finish("c-1")
    assert scene.look(900) == ["a-1"]
    assert scene.pool.promises.outcomes[cause] == 1


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        (None, {"n1": Amounts(0, 1)}, True),
        ({"n1": Amounts(0, 1)}, None, True),
        (None, None, False),
        ({"n1": Amounts(0, 1), "n2": Amounts(0, 1)}, {"n1": Amounts(0, 2), "n2": Amounts()}, True),
        ({"n1": Amounts(0, 1), "n2": Amounts(0, 1)}, {"n2": Amounts(0, 1), "n1": Amounts(0, 2)}, False),
    ],
)
def test_what_is_lost_of_several_nodes(
    before: dict[str, Amounts] | None, after: dict[str, Amounts] | None, lost: bool
) -> None:
    assert shrank(before, after) == lost


def test_too_little_in_sum_is_told_where_a_node_could_hold_the_run() -> None:
    scene = Scene(nodes={"n1": Amounts(0, 2_000), "n2": Amounts(0, 3_000)})
    scene.running("blue-1", amounts(cpu=2_000), node="n1")
    scene.running("blue-2", amounts(cpu=1_000), node="n2")
    scene.submit("red-1", request=amounts(cpu=2_500))
    assert scene.look() == []
    assert scene.why("red-1") == "InsufficientCPU"
    assert scene.message("red-1") == "needs 2500 millicores of CPU; 3000 of 5000 are held"


def test_too_few_slots_are_told_also_where_no_node_could_hold_the_run() -> None:
    scene = Scene(slots=1, nodes={"n1": Amounts(0, 2_000)})
    scene.running("blue-1", node="n1")
    scene.submit("red-1", request=amounts(cpu=2_500))
    assert scene.look() == []
    assert scene.message("red-1") == "needs 1 slot; 1 of 1 are held"
