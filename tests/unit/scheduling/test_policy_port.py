"""The port: the shipped policies, and one of a user's own."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentjobs.scheduling.fairshare import FairShare
from agentjobs.scheduling.model import SECOND, Run, Wait, WaitReason
from agentjobs.scheduling.policies import Fifo, Policy, PriorityOnly
from agentjobs.scheduling.resources import Amounts, Bounds
from tests.unit.scheduling.odd import busy
from tests.unit.scheduling.scene import CRITICAL, DEFAULT, HIGH, Scene, amounts, team

PAGE = Path(__file__).parents[3] / "docs" / "policies.md"


@pytest.mark.parametrize(
    ("policy", "starts"),
    [
        (Fifo, ["blue-1", "blue-2"]),
        (PriorityOnly, ["blue-2", "red-1"]),
        (FairShare, ["blue-2", "red-1"]),
    ],
)
def test_who_goes_first(policy: Callable[[], Policy], starts: list[str]) -> None:
    scene = busy(policy())
    assert scene.look() == starts
    assert scene.look() == []


@pytest.mark.parametrize("policy", [Fifo, PriorityOnly])
def test_a_line_goes_on_with_its_next_run(policy: Callable[[], Policy]) -> None:
    scene = Scene(policy(), slots=4)
    scene.submit("blue-1", count=2)
    scene.submit("red-1", count=2)
    scene.submit("blue-3")
    assert scene.look() == ["blue-1", "blue-2", "red-1", "red-2"]


@pytest.mark.parametrize("policy", [Fifo, PriorityOnly])
def test_what_does_not_fit_blocks_the_rest(policy: Callable[[], Policy]) -> None:
    scene = busy(policy(), gpus=1)
    scene.running("gold-1", amounts(gpus=1))
    scene.submit("blue-0", CRITICAL, amounts(gpus=1))
    scene.pool.wait(scene.pool.books.waiting["blue-0"]._replace(created=0))
    assert scene.look() == []
    assert scene.why("blue-0") == "InsufficientGPU"
    assert scene.message("red-1") == "a run that goes before it does not fit"


@pytest.mark.parametrize("policy", [Fifo, PriorityOnly])
def test_a_node_that_fits_none_blocks_too(policy: Callable[[], Policy]) -> None:
    nodes = {name: Amounts(0, 2_000) for name in ("n1", "n2")}
    scene = busy(policy(), nodes=nodes)
    scene.submit("blue-0", CRITICAL, amounts(cpu=3_000))
    scene.pool.wait(scene.pool.books.waiting["blue-0"]._replace(created=0))
    assert scene.look() == []
    assert scene.why("blue-0") == "NoNodeFits"


@pytest.mark.parametrize("policy", [Fifo, PriorityOnly])
def test_a_line_at_its_limit_is_passed_over(policy: Callable[[], Policy]) -> None:
    scene = busy(policy(), slots=4, teams={"blue": team(limit=Bounds(1))})
    first = "blue-1" if policy is Fifo else "blue-2"
    assert scene.look() == [first, "red-1"]
    assert scene.why("blue-2" if policy is Fifo else "blue-1") == "TeamLimit"


@pytest.mark.parametrize("policy", [Fifo, PriorityOnly])
def test_a_newcomer_is_told_whether_another_goes_before_it(policy: Callable[[], Policy]) -> None:
    scene = Scene(
        policy(), slots=4, gpus=1, teams={"blue": team(limit=Bounds(2)), "red": team(limit=Bounds(1))}
    )
    assert preview(scene, "gold") is None
    scene.running("blue-1")
    scene.submit("blue-2", DEFAULT, amounts(slots=2))
    assert scene.look() == []
    assert preview(scene, "gold") is None  # a limit stops what goes before it
    blocked = Wait(WaitReason.HELD_BACK, "a run that goes before it does not fit")
    assert preview(scene, "blue") == blocked  # its own team's older run goes first
    scene.running("red-1")
    assert (scene.look(), scene.why("blue-2")) == ([], "TeamLimit")
    wait = preview(scene, "red")
    assert wait is not None
    assert wait.reason is WaitReason.TEAM_LIMIT
    scene.running("grey-1", amounts(gpus=1))
    scene.submit("grey-2", DEFAULT, amounts(gpus=1))
    assert preview(scene, "gold") == blocked
    assert preview(scene, "gold", HIGH) == (blocked if policy is Fifo else None)


def preview(scene: Scene, owner: str, weight: int = DEFAULT) -> Wait | None:
    now = scene.now * SECOND
    return scene.pool.preview(Run("new", "d", owner, weight, False, now, 1_000, amounts(), 600), now)[1]


# -- a policy of one's own -----------------------------------------------------------------------------


def test_the_policy_of_the_page_is_short_and_works() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 1
    found: dict[str, Any] = {}
    exec(compile(blocks[0], str(PAGE), "exec"), found)
    body = blocks[0][blocks[0].index("class ") :].strip().splitlines()
    assert len(body) <= 20
    scene = busy(found["ShortestFirst"]())
    assert scene.look() == ["red-1", "blue-2"]
    assert scene.why("blue-1") == "NoFreeSlot"
    scene.submit("red-9", timeout=60)
    assert (scene.why("blue-1"), scene.why("red-9")) == ("HeldBack", "NoFreeSlot")
    assert scene.message("blue-1") == "runs of less than 900 s go first"
    assert preview(Scene(found["ShortestFirst"](), slots=1), "red") is None
    limited = busy(found["ShortestFirst"](), slots=4, teams={"blue": team(limit=Bounds(1))})
    assert limited.look() == ["red-1", "blue-2"]
