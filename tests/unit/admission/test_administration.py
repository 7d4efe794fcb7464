"""AgentTeams and AgentPools: an id is one team's, and what an edit will not do is told."""

from typing import Any

import pytest

from agentjobs.admission.administration import PoolReviews, TeamReviews
from agentjobs.admission.review import Answer, Request
from tests.unit.admission.desk import pool


class Teams:
    """Reviews of AgentTeams, and those that are stored, by id."""

    def __init__(self) -> None:
        self.holders: dict[str, str] = {}
        self.now = 0.0
        self.reviews = TeamReviews({"default": pool()}, self.holders, lambda: self.now)

    def ask(self, name: str, *, dry_run: bool = False, **spec: Any) -> Answer:
        return self.reviews.review(_request("AgentTeam", name, spec, dry_run=dry_run))

    def seen(self, name: str, team_id: str) -> None:
        self.holders[team_id] = name
        self.reviews.seen(name, team_id)


def _request(
    kind: str, name: str, spec: dict[str, Any], *, dry_run: bool = False, old: Any = None
) -> Request:
    manifest = {
        "apiVersion": "agentjobs.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }
    operation = "CREATE" if old is None else "UPDATE"
    old_object = None if old is None else {**manifest, "spec": old}
    return Request("u", operation, name, object=manifest, old_object=old_object, dry_run=dry_run)


def test_id_of_another_team() -> None:
    teams = Teams()
    teams.seen("first", "blue")
    answer = teams.ask("second", teamId="blue")
    assert (answer.code, answer.message) == (
        422,
        'spec.teamId: "blue" is the id of AgentTeam first; choose another id',
    )
    assert teams.ask("blue").code == 422  # its name would be its id
    assert teams.ask("first", dry_run=True, teamId="blue").allowed
    del teams.holders["blue"]
    assert teams.ask("second", teamId="blue").allowed


def test_two_creates_at_once() -> None:
    teams = Teams()
    assert teams.ask("first", teamId="blue").allowed
    assert not teams.ask("second", teamId="blue").allowed
    teams.now = 5.0  # the first was never stored
    assert teams.ask("second", teamId="blue").allowed


def test_dry_run_takes_no_id() -> None:
    teams = Teams()
    assert teams.ask("first", dry_run=True, teamId="blue").allowed
    assert teams.ask("second", teamId="blue").allowed


def test_id_of_a_team_that_was_deleted_is_free_at_once() -> None:
    teams = Teams()
    teams.ask("first", teamId="blue")
    teams.seen("first", "blue")
    del teams.holders["blue"]
    assert teams.ask("second", teamId="blue").allowed


@pytest.mark.parametrize(
    ("spec", "warning"),
    [
        ({"members": {"users": ["jane"]}}, None),
        ({"members": {}}, "spec.members: nobody is listed, so nobody may submit for the team"),
        ({"pools": {"default": {}}}, None),
        ({"pools": {"other": {}}}, "spec.pools: there is no AgentPool named other yet"),
    ],
)
def test_warnings_of_teams(spec: dict[str, Any], warning: str | None) -> None:
    assert Teams().ask("blue", **spec).warnings == (() if warning is None else (warning,))


@pytest.mark.parametrize(
    ("spec", "code"),
    [({"maxConcurrency": 0}, 422), ({"maxConcurrency": None}, 200), ({"maxConcurrency": 1}, 200), ({}, 200)],
)
def test_pools(spec: dict[str, Any], code: int) -> None:
    assert PoolReviews(lambda _: 0).review(_request("AgentPool", "default", spec)).code == code


def test_lowered_slots_interrupt_nothing_and_say_so() -> None:
    reviews = PoolReviews(lambda _: 3)
    answer = reviews.review(_request("AgentPool", "default", {"maxConcurrency": 2}))
    assert answer.warnings == ("spec.maxConcurrency: 3 runs go on; none starts before fewer than 2 do",)
    assert reviews.review(_request("AgentPool", "default", {"maxConcurrency": 3})).warnings == ()


def test_edit_is_not_refused_for_what_is_stored_already() -> None:
    old = {"sharePercent": 0}
    assert (
        PoolReviews(lambda _: 0)
        .review(_request("AgentPool", "default", {**old, "hold": True}, old=old))
        .allowed
    )


def test_another_kind_at_the_path() -> None:
    assert PoolReviews(lambda _: 0).review(_request("AgentTeam", "blue", {})).code == 422
    assert Teams().reviews.review(_request("AgentPool", "default", {})).code == 422
