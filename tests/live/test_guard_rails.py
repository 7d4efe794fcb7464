"""Attempts to get past the guard rails, on a real API server, by a user with every right in the namespace."""

from collections.abc import Iterator

import pytest

from tests.live.api import Api, Object, RefusedError
from tests.live.guarded import (
    OURS,
    STRATEGIC_PATCH,
    Attempt,
    Scene,
    job,
    labels,
    pod_spec,
    rule,
)
from tests.live.lab import Lab
from tests.live.support import eventually

EVERYTHING = rule("*", "*", "*")
MARK = "mark the Jobs and pods of runs"
APP = {"app": "forged"}  # a Job without any label gets those of its template
SMALL = {"cpu": "100m"}
EPHEMERAL = {"name": "look", "image": "agent:dev", "targetContainerName": "agent"}


@pytest.fixture(scope="module")
def scene(lab: Lab) -> Scene:
    return Scene.set(lab)


@pytest.fixture(scope="module")
def mallory(scene: Scene) -> Iterator[Api]:
    """A user who may do everything in the namespace, whatever the resource is called."""
    with scene.person(EVERYTHING) as mallory:
        yield mallory


def binding(name: str) -> Object:
    return {"metadata": {"name": name}, "target": {"kind": "Node", "name": "simulated-1"}}


def waiting_pod(scene: Scene) -> str:
    name: str = scene.waiting.pod()["metadata"]["name"]
    return name


MARKED: dict[str, Attempt] = {
    "a Job with our labels": lambda s, api: api.create(s.jobs, job("forged", OURS)),
    "a Job with another label of ours": lambda s, api: api.create(s.jobs, job("f", {"agentjobs.dev/x": ""})),
    "a Job with our labels in its template only": lambda s, api: api.create(s.jobs, job("f", APP, OURS)),
    "a Job with a name to come": lambda s, api: api.create(
        s.jobs, {**job("", OURS), "metadata": {"generateName": "f-", "labels": OURS}}
    ),
    "a dry run of it": lambda s, api: api.create(f"{s.jobs}?dryRun=All", job("forged", OURS)),
    "labels added to a Job": lambda s, api: api.patch(f"{s.jobs}/{s.foreign_job}", labels(OURS)),
    "labels added to a Job's template": lambda s, api: api.patch(
        f"{s.jobs}/{s.foreign_job}", {"spec": {"template": labels(OURS)}}
    ),
    "labels added by way of a Job's status": lambda s, api: api.patch(
        f"{s.jobs}/{s.foreign_job}/status", labels(OURS)
    ),
    "labels removed from a run's Job": lambda s, api: api.patch(
        s.job, labels(dict.fromkeys(s.evidence()[s.job]["labels"]))
    ),
    "a run's Job suspended": lambda s, api: api.patch(s.job, {"spec": {"suspend": True}}),
    "a run's Job without its owner": lambda s, api: api.patch(s.job, {"metadata": {"ownerReferences": None}}),
    "a run's Job with another status": lambda s, api: api.patch(f"{s.job}/status", {"status": {"ready": 0}}),
    "a run's Job deleted": lambda s, api: api.request("DELETE", s.job),
    "a run's Job deleted among others": lambda s, api: api.request(
        "DELETE", f"{s.jobs}?labelSelector=agentjobs.dev/run-uid"
    ),
    "a pod with our labels": lambda s, api: api.create(
        s.pods, {"metadata": {"name": "forged", "labels": OURS}, "spec": pod_spec()}
    ),
    "labels added to a pod": lambda s, api: api.patch(f"{s.pods}/{s.foreign_pod}", labels(OURS)),
    "labels added by way of a pod's status": lambda s, api: api.patch(
        f"{s.pods}/{s.foreign_pod}/status", labels(OURS)
    ),
    "labels removed from a run's pod": lambda s, api: api.patch(
        s.pod, labels(dict.fromkeys(s.evidence()[s.pod]["labels"]))
    ),
    "a run's pod annotated": lambda s, api: api.patch(s.pod, {"metadata": {"annotations": {"a": "b"}}}),
    "a run's pod with less time": lambda s, api: api.patch(s.pod, {"spec": {"activeDeadlineSeconds": 1}}),
    "a run's pod with another image": lambda s, api: api.request(
        "PATCH", s.pod, {"spec": {"containers": [{"name": "agent", "image": "evil:1"}]}}, STRATEGIC_PATCH
    ),
    "a container added to a run's pod": lambda s, api: api.request(
        "PATCH",
        f"{s.pod}/ephemeralcontainers",
        {"spec": {"ephemeralContainers": [EPHEMERAL]}},
        STRATEGIC_PATCH,
    ),
    "a run's pod resized": lambda s, api: api.request(
        "PATCH",
        f"{s.pods}/{waiting_pod(s)}/resize",
        {"spec": {"containers": [{"name": "agent", "resources": {"limits": SMALL, "requests": SMALL}}]}},
        STRATEGIC_PATCH,
    ),
    "a run's pod ended by its status": lambda s, api: api.patch(
        f"{s.pod}/status", {"status": {"phase": "Succeeded"}}
    ),
    "a run's pod deleted": lambda s, api: api.request("DELETE", s.pod),
    "a run's pod deleted among others": lambda s, api: api.request(
        "DELETE", f"{s.pods}?labelSelector=agentjobs.dev/run-uid"
    ),
}  # fmt: skip
NAMED: dict[str, Attempt] = {
    "a run's pod evicted": lambda s, api: api.create(
        f"{s.pod}/eviction", {"metadata": {"name": s.running.pod()["metadata"]["name"]}}
    ),
    "a run's pod bound to a node": lambda s, api: api.create(
        f"{s.pods}/{waiting_pod(s)}/binding", binding(waiting_pod(s))
    ),
    "a run's pod bound to a node as once": lambda s, api: api.create(
        f"/api/v1/namespaces/{s.namespace}/bindings", binding(waiting_pod(s))
    ),
}


@pytest.mark.parametrize(
    ("attempt", "said"),
    [
        *(pytest.param(attempt, MARK, id=name) for name, attempt in MARKED.items()),
        *(pytest.param(attempt, "named like one of a run", id=name) for name, attempt in NAMED.items()),
    ],
)
def test_runs_are_left_alone(scene: Scene, mallory: Api, attempt: Attempt, said: str) -> None:
    before = scene.evidence()
    with pytest.raises(RefusedError, match=said) as refused:
        attempt(scene, mallory)
    assert refused.value.code == 403
    assert "cancel or delete its AgentJob" in refused.value.message
    assert scene.evidence() == before


def test_a_stranger_learns_no_more_than_rbac_says(scene: Scene) -> None:
    with (
        scene.user("stranger") as stranger,
        pytest.raises(RefusedError, match="cannot create resource") as no,
    ):
        stranger.create(scene.jobs, job("forged", OURS))
    assert no.value.code == 403


@pytest.mark.parametrize("kind", ["cronjob-controller", "replicaset-controller", "daemon-set-controller"])
def test_controllers_that_do_as_others_say_are_not_trusted(scene: Scene, kind: str) -> None:
    body = {"metadata": {"name": "forged", "labels": OURS}}
    path, body = (
        (scene.jobs, job("forged", OURS))
        if kind == "cronjob-controller"
        else (scene.pods, {**body, "spec": pod_spec()})
    )
    with (
        scene.user(f"system:serviceaccount:kube-system:{kind}") as api,
        pytest.raises(RefusedError, match=MARK),
    ):
        api.create(path, body)


def test_a_replica_set_cannot_make_pods_of_runs(scene: Scene, mallory: Api) -> None:
    pod = {"metadata": {"labels": {**APP, **OURS}}, "spec": pod_spec(restartPolicy="Always")}
    path = f"/apis/apps/v1/namespaces/{scene.namespace}/replicasets"
    spec = {"replicas": 1, "selector": {"matchLabels": APP}, "template": pod}
    mallory.create(path, {"metadata": {"name": "forged"}, "spec": spec})

    def failure() -> str | None:
        status = mallory.request("GET", f"{path}/forged").get("status", {})
        said = [c["message"] for c in status.get("conditions", ()) if c["type"] == "ReplicaFailure"]
        return said[0] if said else None

    assert MARK in eventually(failure)
    assert mallory.items(f"{scene.pods}?labelSelector=app%3Dforged") == []
    mallory.delete(f"{path}/forged")


def test_what_is_not_ours_is_not_guarded(scene: Scene, mallory: Api) -> None:
    """The same user's own Jobs and pods, by the same requests."""
    mallory.create(scene.jobs, job("own", {"app": "own"}, {"app": "own"}))
    mallory.patch(f"{scene.jobs}/own", labels({"app": "own2"}))
    mallory.delete(f"{scene.jobs}/own")
    mallory.create(scene.pods, {"metadata": {"name": "own"}, "spec": pod_spec()})
    mallory.patch(f"{scene.pods}/own/status", {"status": {"message": "mine"}})
    mallory.create(f"{scene.pods}/own/eviction", {"metadata": {"name": "own"}})
