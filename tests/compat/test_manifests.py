"""Tests 1 to 6: what a manifest may say."""

from typing import Any

import pytest

from tests.compat.user import User

BOUNDS = {
    "cpuMillicores": (100, 8000),
    "memoryMb": (128, 32768),
    "gpuCount": (0, 4),
    "timeoutSeconds": (30, 7200),
}
IMAGES = {
    "agent:1": True,
    "Agent:V1.2-3_4": True,
    "team/agent:1": True,
    "a//b:1": True,
    "../../x:1": True,
    "agent:sha256": True,
    "localhost:5000/a:1": True,
    "a@sha256:" + "0" * 64: True,
    "agent": False,
    "agent:": False,
    ":1": False,
    "a b:1": False,
    "a:1+2": False,
    "https://a:1": False,
    "агент:1": False,
    "agent:1\n": False,
    "": False,
}


def test_01_minimal_manifest_shows_the_defaults(user: User) -> None:
    assert user.create("minimal").done
    spec = user.run("minimal").get()["spec"]
    assert spec["resources"] == {
        "cpuMillicores": 1000,
        "memoryMb": 2048,
        "gpuCount": 0,
        "timeoutSeconds": 600,
    }
    assert spec["priority"] == "default"


@pytest.mark.parametrize("field", BOUNDS)
def test_02_bounds_are_inclusive(user: User, field: str) -> None:
    low, high = BOUNDS[field]
    for value in (low, high):
        assert user.try_out(resources={field: value}).done
    for value in (low - 1, high + 1):
        said = user.try_out(resources={field: value})
        assert not said.done
        assert f"spec.resources.{field}" in said.text


def test_03_images(user: User) -> None:
    assert {image: user.try_out(agentImage=image).done for image in IMAGES} == IMAGES


@pytest.mark.parametrize(
    ("team", "accepted"), [("ab", False), ("abc", True), ("x" * 64, True), ("x" * 65, False)]
)
def test_04_team_ids_have_3_to_64_characters(user: User, team: str, accepted: bool) -> None:
    assert user.try_out(teamId=team).done == accepted


def test_04_team_id_of_any_characters_runs(user: User) -> None:
    pool = user.pool(maxConcurrency=1)
    assert user.create("any-characters", teamId="a/b c", pool=pool).done
    user.run("any-characters").reaches("SUCCEEDED")


@pytest.mark.parametrize(
    ("environment", "named"),
    [
        ({"POD_NAME": "x"}, "Reserved env vars: POD_NAME"),
        ({"NODE_NAME": "x"}, "Reserved env vars: NODE_NAME"),
        ({"POD_NAME": "x", "NODE_NAME": "y", "K8S_NAMESPACE": "z"}, "K8S_NAMESPACE, NODE_NAME, POD_NAME"),
        ({"pod_name": "x", "EMPTY": ""}, None),
    ],
)
def test_05_reserved_variables(user: User, environment: dict[str, Any], named: str | None) -> None:
    said = user.try_out(environment=environment)
    assert said.done == (named is None)
    assert (named or "created") in said.text


def test_06_priority_is_lower_case(user: User) -> None:
    assert not user.try_out(priority="CRITICAL").done
    assert user.try_out(priority="critical").done
