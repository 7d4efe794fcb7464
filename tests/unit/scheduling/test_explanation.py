"""What a run that waits is told: places, what helps, who went ahead."""

import pytest

from agentjobs.scheduling.explanation import Explanation, unblocks
from agentjobs.scheduling.model import SECOND, Wait, WaitReason
from agentjobs.scheduling.policies import Fifo
from agentjobs.scheduling.resources import Amounts
from tests.unit.scheduling.scene import CRITICAL, DEFAULT, HIGH, LOW, START, Scene, amounts, team


def explain(scene: Scene, name: str) -> Explanation:
    found = scene.pool.explain(name, scene.now * SECOND)
    assert found is not None
    return found


def places(scene: Scene, *names: str) -> list[tuple[int | None, int | None]]:
    return [(found.place_in_team, found.place) for found in (explain(scene, name) for name in names)]


def test_places_by_class_and_by_turns() -> None:
    scene = Scene(slots=1)
    scene.running("gold-1")
    scene.submit("blue-1", count=3)
    scene.submit("red-1", count=2)
    scene.submit("red-3", CRITICAL)
    assert places(scene, "red-3") == [(1, 1)]
    # The teams hold nothing and take turns; of equals the one whose name comes first goes first here.
    assert places(scene, "blue-1", "red-1", "blue-2", "red-2", "blue-3") == [
        *((1, 2), (1, 3)),
        *((2, 4), (2, 5)),
        (3, 6),
    ]
    scene.pool.remember("blue", served=START * SECOND)
    assert places(scene, "red-1", "blue-1") == [(1, 2), (1, 3)]


def test_places_by_weight_and_by_what_is_held() -> None:
    scene = Scene(slots=9, on_hold=True, teams={"blue": team(weight=2)})
    scene.running("red-0")
    scene.submit("red-1", count=2)
    scene.submit("blue-1", count=5)
    # Red holds 1, and blue is owed twice as much: blue's go first while they hold 0, 1 and, of equals, 2.
    assert places(scene, "blue-1", "blue-2", "blue-3", "red-1", "blue-4") == [
        *((1, 1), (2, 2), (3, 3)),
        (1, 4),
        (4, 5),
    ]


def test_of_teams_whose_turns_fall_together_the_one_served_longest_ago_is_first() -> None:
    """Blue's fourth turn comes with red's third, at 3/3 and 2/2."""
    scene = Scene(slots=9, on_hold=True, teams={"blue": team(weight=3), "red": team(weight=2)})
    scene.submit("blue-1", count=4)
    scene.submit("red-1", count=4)
    assert places(scene, "blue-4") == [(4, 6)]
    scene.pool.remember("blue", served=START * SECOND)
    assert places(scene, "blue-4") == [(4, 7)]


def test_the_place_of_one_that_is_set_aside_and_of_nobody() -> None:
    scene = Scene(slots=1)
    scene.submit("blue-1", request=amounts(2))
    assert places(scene, "blue-1") == [(None, None)]
    assert scene.pool.explain("nobody", START) is None


def test_where_teams_take_no_turns_there_is_no_place_among_all() -> None:
    scene = Scene(Fifo(), slots=1)
    scene.submit("blue-1", count=2)
    scene.submit("red-1", CRITICAL)
    assert places(scene, "blue-2", "red-1") == [(2, None), (1, None)]


def test_nothing_is_promised_where_nothing_starts() -> None:
    scene = Scene(slots=1)
    scene.running("blue-1")
    scene.submit("red-1")
    assert scene.look() == []
    promised = explain(scene, "red-1").starts_before
    assert promised is not None
    scene.configure(on_hold=True)
    scene.look()
    assert explain(scene, "red-1").starts_before is None
    scene.configure(on_hold=False)
    scene.look()
    assert explain(scene, "red-1").starts_before == promised
    scene.pool.retire()
    assert explain(scene, "red-1").starts_before is None


def test_who_went_ahead() -> None:
    scene = Scene(slots=3)
    scene.running("blue-1")
    scene.submit("red-1", CRITICAL, count=2)
    assert scene.look() == ["red-1"]
    assert explain(scene, "red-2").went_ahead == ""
    scene.now += 1
    scene.submit("gold-1", LOW)
    assert scene.look(1) == ["gold-1"]
    assert explain(scene, "red-2").went_ahead == "gold-1"
    assert scene.message("red-2").endswith("; gold-1 went ahead")


def test_who_went_ahead_is_told_by_name_where_there_is_one() -> None:
    for name, shown in (("", "gold-1"), ("nightly", "nightly")):
        scene = Scene(slots=3)
        scene.running("blue-1")
        scene.submit("red-1", CRITICAL, count=2)
        scene.look()
        scene.now += 1
        scene.submit("gold-1", LOW)
        scene.pool.wait(scene.pool.books.waiting["gold-1"]._replace(name=name))
        scene.look(1)
        assert explain(scene, "red-2").went_ahead == shown


def test_a_run_that_started_just_as_another_came_did_not_go_ahead_of_it() -> None:
    scene = Scene(slots=1)
    scene.submit("gold-1", LOW)
    assert scene.look() == ["gold-1"]
    scene.submit("red-1", CRITICAL)
    assert explain(scene, "red-1").went_ahead == ""


@pytest.mark.parametrize("weight", [CRITICAL, HIGH])
def test_a_more_urgent_run_does_not_go_ahead_of_anybody(weight: int) -> None:
    scene = Scene(slots=1)
    scene.submit("red-1", DEFAULT)
    scene.now += 1
    scene.submit("blue-1", weight)
    assert scene.look(1) == ["blue-1"]
    assert explain(scene, "red-1").went_ahead == ""


def test_the_promise_and_the_hole() -> None:
    scene = Scene(slots=1, gpus=1)
    scene.running("gold-1", amounts(0, gpus=1), ends_in=500)
    scene.submit("blue-1", request=amounts(gpus=1))
    scene.submit("red-1", timeout=900)
    assert scene.look() == []
    holder, other = explain(scene, "blue-1"), explain(scene, "red-1")
    assert (holder.starts_before, other.starts_before) == ((START + 500) * SECOND, None)
    assert other.hole_seconds == 500 - 30 - 20
    assert other.unblocks == "the holder of the reservation starts, or a shorter timeout"


def test_every_reason_says_what_helps() -> None:
    scene = Scene()
    scene.submit("red-1")
    books, run = scene.pool.books, scene.pool.books.waiting["red-1"]
    assert all(unblocks(books, run, Wait(reason, "")) for reason in WaitReason)
    assert unblocks(books, run, None) == "nothing: it starts at the next look"


@pytest.mark.parametrize(
    ("cpu", "reason", "message", "helps"),
    [
        (
            2_500,
            "NoNodeFits",
            "no node has 2500 millicores of CPU free together",
            "runs end on one node, or a node is added",
        ),
        (
            3_500,
            "NoNodeFits",
            "no node has 3500 millicores of CPU together, not even an empty one",
            "a larger node, or a smaller run",
        ),
        (
            9_000,
            "InsufficientCPU",
            "no node has 9000 millicores of CPU together, not even an empty one",
            "a larger node, or a smaller run",
        ),
    ],
)
def test_what_helps_a_run_that_no_node_has_room_for(cpu: int, reason: str, message: str, helps: str) -> None:
    scene = Scene(nodes={"n1": Amounts(0, 2_000), "n2": Amounts(0, 3_000)})
    scene.running("blue-1", amounts(cpu=1_000), node="n2")
    scene.submit("red-1", request=amounts(cpu=cpu))
    assert scene.look() == []
    explanation = explain(scene, "red-1")
    assert explanation.wait is not None
    assert (explanation.wait.reason.value, explanation.wait.message) == (reason, message)
    assert explanation.unblocks == helps
