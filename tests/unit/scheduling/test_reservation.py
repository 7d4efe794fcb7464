"""Who holds the reservation, for when (rule 7), and when the pool is looked at next."""

from agentjobs.scheduling.model import SECOND
from tests.unit.scheduling.scene import START, Scene, amounts


def test_an_end_that_nobody_knows_makes_no_promise() -> None:
    scene = Scene(slots=1)
    scene.running("b-1", ends_in=None)
    scene.submit("a-1")
    scene.look()
    assert (scene.promise, scene.why("a-1")) == (None, "NoFreeSlot")


def test_what_ends_together_counts_together() -> None:
    """After b-1's end a-1 would take all there is; c-1 ends at the same moment, and leaves a GPU for d-1."""
    scene = Scene(slots=9, gpus=3, share_percent=100)
    scene.running("b-1", amounts(gpus=1), ends_in=600)
    scene.running("c-1", amounts(gpus=1), ends_in=600)
    scene.submit("a-1", request=amounts(gpus=2))
    scene.submit("d-1", request=amounts(gpus=1), timeout=9_000)
    assert scene.look() == ["d-1"]
    assert scene.promise == ("a-1", 600)


def test_an_overdue_run_does_not_count_as_ending() -> None:
    scene = Scene(slots=1)
    scene.running("b-1", ends_in=0)
    scene.submit("a-1")
    scene.look()
    assert scene.promise is None


def test_more_capacity_moves_a_promise_earlier() -> None:
    scene = Scene(slots=5, gpus=2)
    scene.running("b-1", amounts(gpus=1), ends_in=500)
    scene.running("c-1", amounts(gpus=1), ends_in=900)
    scene.submit("a-1", request=amounts(gpus=2))
    scene.look()
    assert scene.promise == ("a-1", 900)
    scene.configure(gpus=3)
    scene.look()
    assert scene.promise == ("a-1", 500)


def test_a_promise_moves_earlier_and_never_later() -> None:
    scene = Scene(slots=2, gpus=2)
    scene.running("b-1", amounts(gpus=1), ends_in=500)
    scene.running("c-1", amounts(gpus=1), ends_in=900)
    scene.submit("a-1", request=amounts(gpus=2))
    scene.look()
    assert scene.promise == ("a-1", 900)
    scene.running("c-1", amounts(gpus=1), ends_in=700)
    scene.look()
    assert scene.promise == ("a-1", 700)
    scene.running("c-1", amounts(gpus=1), ends_in=2_000)
    scene.look()
    assert scene.promise == ("a-1", 700)


def test_while_a_run_is_overdue_the_next_moment_is_s() -> None:
    scene = Scene(slots=4, gpus=2)
    scene.running("b-1", amounts(gpus=1), ends_in=500)
    scene.running("c-1", amounts(gpus=1), ends_in=900)
    scene.configure(gpus=3)
    scene.submit("a-1", request=amounts(gpus=2))
    scene.look()
    assert scene.promise == ("a-1", 500)
    scene.submit("d-1", request=amounts(gpus=1), timeout=340)
    assert scene.look(500) == ["d-1"]  # 900 - 500 - 340 - 30 = 30 s to start in
    assert scene.promise == ("a-1", 500)


def test_where_nobody_can_say_when_any_more_the_promise_is_s() -> None:
    """b-1 is overdue, and the promise has passed: d-1 would take the slot that a-1 needs as well."""
    scene = Scene(slots=2, gpus=1)
    scene.running("b-1", amounts(gpus=1), ends_in=600)
    scene.submit("a-1", request=amounts(gpus=1))
    scene.look()
    scene.submit("d-1", timeout=1)
    assert scene.look(650) == []
    assert scene.why("d-1") == "BehindReservation"
    scene.configure(slots=3)
    assert scene.look() == ["d-1"]


def test_a_look_that_gives_the_reservation_goes_on_with_others_of_its_class() -> None:
    scene = Scene(slots=3, gpus=1)
    scene.running("z-1", amounts(gpus=1))
    scene.submit("a-1", request=amounts(gpus=1))
    scene.submit("b-1", timeout=60)
    assert scene.look() == ["b-1"]
    assert scene.promise == ("a-1", 600)


def test_nobody_need_look_again_for_a_window_of_the_only_team() -> None:
    scene = Scene(slots=4)
    scene.submit("blue-1")
    scene.look()
    scene.finish("blue-1")
    assert scene.plan().look_again is None


def test_the_next_look_is_at_the_first_moment_that_may_change_anything() -> None:
    """red's window ends an hour after its last run; blue-2 is in back-off."""
    scene = Scene(slots=4)
    scene.running("blue-1")
    scene.running("red-1")
    scene.submit("blue-2")
    scene.pool.wait(scene.pool.books.waiting["blue-2"]._replace(version=9), not_before=(START + 40) * SECOND)
    scene.finish("red-1")
    assert scene.plan().look_again == (START + 40) * SECOND
    scene.look(after=40)
    assert scene.plan().look_again == (START + 3_600) * SECOND
