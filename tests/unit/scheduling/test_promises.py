"""Promises: what becomes of them, and the cause under which a broken one is counted."""

from collections.abc import Callable
from typing import Any

import pytest

from agentjobs.scheduling.fairshare import FairShare
from agentjobs.scheduling.model import SECOND
from agentjobs.scheduling.pool import Pool
from agentjobs.scheduling.resources import Amounts, Bounds
from tests.unit.scheduling.scene import CRITICAL, DEFAULT, HIGH, LOW, START, Scene, amounts, team


def promised(**settings: Any) -> Scene:
    """1 slot; a-1 is promised to start in 600 s at the latest, when b-1 ends."""
    scene = Scene(**{"slots": 1, "share_percent": 100} | settings)
    scene.running("b-1")
    scene.submit("a-1")
    assert scene.look() == []
    assert scene.promise == ("a-1", 600)
    return scene


def start_late(scene: Scene) -> dict[str, int]:
    """b-1 ends after 650 s, a-1 starts; return how its promise is counted."""
    scene.now = START + 650
    scene.finish("b-1")
    assert scene.look() == ["a-1"]
    return dict(scene.pool.promises.outcomes)


def test_a_kept_promise() -> None:
    scene = promised()
    scene.finish("b-1")
    assert scene.look(600) == ["a-1"]
    assert scene.pool.promises.outcomes == {"Kept": 1}


def end_late(scene: Scene) -> None:
    """Nobody looks while the run is overdue; that it was is told by its end."""


def lose_track(scene: Scene) -> None:
    scene.running("b-1", ends_in=None)


def learn_of_a_later_end(scene: Scene) -> None:
    scene.running("b-1", ends_in=700)


def overrun(scene: Scene) -> None:
    scene.look(601)


def edit_the_pool(scene: Scene) -> None:
    scene.configure(headroom_percent=11)


def delete_the_pool(scene: Scene) -> None:
    scene.pool.retire()
    scene.configure(on_hold=False)


def fill_the_quota(scene: Scene) -> None:
    scene.pool.close_namespace("default", (scene.now + 10) * SECOND)


@pytest.mark.parametrize(
    ("disturb", "cause"),
    [
        (end_late, "LostCapacity"),
        (lose_track, "LostCapacity"),
        (learn_of_a_later_end, "LostCapacity"),
        (overrun, "LostCapacity"),
        (edit_the_pool, "Edit"),
        (delete_the_pool, "Edit"),
        (fill_the_quota, "Quota"),
    ],
)
def test_the_cause_of_a_broken_promise(disturb: Callable[[Scene], None], cause: str) -> None:
    scene = promised()
    disturb(scene)
    assert start_late(scene) == {cause: 1}


def test_what_changes_nothing_is_no_cause() -> None:
    scene = promised()
    scene.running("b-1")  # told again
    scene.running("b-1", ends_in=590)
    scene.pool.close_namespace("other", (scene.now + 10) * SECOND)
    scene.configure()
    scene.pool.wait(scene.pool.books.waiting["a-1"])
    edit_the_pool(scene)
    assert start_late(scene) == {"Edit": 1}


def test_a_run_that_may_still_end_now_is_no_cause() -> None:
    scene = promised()
    assert scene.look(600) == []
    edit_the_pool(scene)
    assert start_late(scene) == {"Edit": 1}


def test_a_run_that_holds_on_while_another_makes_room() -> None:
    scene = Scene(slots=2, share_percent=100)
    scene.running("b-1", ends_in=600)
    scene.running("c-1", ends_in=700)
    scene.submit("a-1")
    scene.look()
    assert scene.promise == ("a-1", 600)
    scene.now += 700
    scene.finish("c-1")
    assert scene.look() == ["a-1"]
    assert scene.pool.promises.outcomes == {"LostCapacity": 1}


def test_the_first_cause_counts() -> None:
    scene = promised()
    edit_the_pool(scene)
    fill_the_quota(scene)
    assert start_late(scene) == {"Edit": 1}


def test_a_pod_on_another_node_than_was_likely() -> None:
    nodes = {"n1": Amounts(0, 4_000), "n2": Amounts(0, 3_000)}
    scene = Scene(nodes=nodes, share_percent=100)
    scene.submit("b-1", request=amounts(cpu=1_000), timeout=270)
    scene.submit("b-2", request=amounts(cpu=3_000), timeout=270)
    assert scene.look() == ["b-1", "b-2"]  # both are likely to go to n1
    scene.submit("a-1", request=amounts(cpu=4_000))
    scene.look()
    assert scene.promise == ("a-1", 600)
    scene.running("b-1", amounts(cpu=1_000), ends_in=600, node="n1")
    assert scene.look() == []
    scene.running("b-1", amounts(cpu=1_000), ends_in=600, node="n2")
    scene.now += 650
    scene.finish("b-1", "b-2")
    assert scene.look() == ["a-1"]
    assert scene.pool.promises.outcomes == {"Placement": 1}


def test_a_pod_where_it_was_likely_is_no_cause() -> None:
    scene = Scene(nodes={"n1": Amounts(0, 4_000)}, share_percent=100)
    scene.submit("b-1", request=amounts(cpu=4_000), timeout=270)
    scene.look()
    scene.submit("a-1", request=amounts(cpu=4_000))
    scene.look()
    scene.running("b-1", amounts(cpu=4_000), ends_in=600, node="n1")
    edit_the_pool(scene)
    assert start_late(scene) == {"Edit": 1}


def test_where_a_pod_is_means_nothing_in_a_pool_without_nodes() -> None:
    scene = promised()
    scene.running("b-1", node="n1")
    scene.look()
    assert scene.promise == ("a-1", 600)
    edit_the_pool(scene)
    assert start_late(scene) == {"Edit": 1}


def test_a_promise_that_came_earlier_is_broken_by_the_earlier_moment() -> None:
    scene = promised()
    scene.running("b-1", ends_in=500)
    scene.look()
    assert scene.promise == ("a-1", 500)
    scene.now += 550
    scene.finish("b-1")
    assert scene.look() == ["a-1"]
    assert scene.pool.promises.outcomes == {"LostCapacity": 1}


def test_more_urgent_runs_are_a_cause_for_the_less_urgent_alone() -> None:
    scene = promised()
    scene.finish("b-1")
    scene.submit("c-1", HIGH)
    assert scene.look() == ["c-1"]
    scene.now += 700
    scene.finish("c-1")
    assert scene.look() == ["a-1"]
    assert scene.pool.promises.outcomes == {"MoreUrgentClass": 1}


def test_nothing_is_owed_to_a_run_that_was_canceled_or_changed_its_class() -> None:
    scene = promised()
    scene.pool.wait(scene.pool.books.waiting["a-1"]._replace(weight=LOW))
    scene.look()
    scene.pool.leave("a-1")
    scene.look()
    assert scene.promise is None
    scene.submit("a-1")
    scene.look(700)
    scene.finish("b-1")
    scene.look()
    assert scene.pool.promises.outcomes == {}


@pytest.mark.parametrize("weight", [LOW, HIGH])
def test_a_change_of_class_ends_the_reservation_of_a_pool_on_hold(weight: int) -> None:
    scene = promised()
    scene.configure(on_hold=True)
    assert scene.plan().reservation is not None
    scene.pool.wait(scene.pool.books.waiting["a-1"]._replace(weight=weight))
    assert scene.plan().reservation is None


def test_a_cancel_ends_the_reservation_of_a_pool_on_hold() -> None:
    scene = promised()
    scene.configure(on_hold=True)
    scene.pool.leave("a-1")
    assert scene.plan().reservation is None


def test_promises_are_taken_up_after_a_restart() -> None:
    scene = promised()
    run = scene.pool.books.waiting["a-1"]
    pool = scene.pool = Pool("pool", FairShare())
    scene.configure()
    scene.running("b-1", ends_in=900)
    scene.submit("c-1", DEFAULT)
    pool.wait(run._replace(weight=HIGH))
    for uid in ("c-1", "gone", "a-1"):
        pool.resume(uid, (START + 600) * SECOND)
    scene.look()
    assert scene.promise == ("a-1", 600)
    pool.leave("a-1")
    scene.look()
    assert scene.promise == ("c-1", 900)  # taken up once


def test_of_two_promises_of_a_class_the_older_runs_is_taken_up() -> None:
    scene = Scene(slots=1)
    scene.running("z-1", ends_in=900)
    scene.submit("b-1")
    scene.submit("a-1")
    for uid in ("a-1", "b-1"):
        scene.pool.resume(uid, (START + 600) * SECOND)
    scene.look()
    assert scene.promise == ("b-1", 600)


def test_a_late_start_after_a_restart_is_the_outages() -> None:
    scene = Scene(slots=1)
    scene.submit("a-1")
    scene.pool.resume("a-1", (START - 5) * SECOND)
    assert scene.look() == ["a-1"]
    assert scene.pool.promises.outcomes == {"Outage": 1}


def test_room_that_is_kept_for_others_is_a_cause() -> None:
    scene = Scene(slots=1, teams={"c": team(guaranteed=amounts(1))})
    scene.running("b-1")
    scene.submit("a-1", CRITICAL)
    scene.look()
    scene.submit("c-1", DEFAULT)
    scene.finish("b-1")
    assert scene.look() == ["c-1"]
    scene.now += 700
    scene.finish("c-1")
    assert scene.look() == ["a-1"]
    assert scene.pool.promises.outcomes == {"GuaranteeDemand": 1}


def test_room_that_is_kept_for_others_who_cannot_use_it_yet_is_a_cause() -> None:
    """c-1 waits for a GPU too; it is canceled before it starts."""
    scene = Scene(slots=1, gpus=1, teams={"c": team(guaranteed=amounts(1, gpus=1))})
    scene.running("b-1")
    scene.running("z-1", amounts(0, gpus=1), ends_in=None)
    scene.submit("a-1", CRITICAL)
    scene.look()
    scene.submit("c-1", DEFAULT, amounts(gpus=1))
    scene.finish("b-1")
    assert scene.look() == []
    assert scene.why("a-1") == "GuaranteedToOthers"
    scene.now += 700
    scene.pool.leave("c-1")
    assert scene.look() == ["a-1"]
    assert scene.pool.promises.outcomes == {"GuaranteeDemand": 1}


def test_a_critical_limit_ends_a_reservation() -> None:
    scene = Scene(slots=4, gpus=4, teams={"a": team(critical_limit=Bounds(1))}, share_percent=100)
    scene.running("b-1", amounts(gpus=4))
    scene.submit("a-1", CRITICAL, amounts(gpus=4))
    scene.look()
    assert scene.promise == ("a-1", 600)
    scene.running("a-2", critical=True)
    scene.look()
    assert scene.why("a-1") == "CriticalLimit"
    assert scene.pool.books.reservation is None
