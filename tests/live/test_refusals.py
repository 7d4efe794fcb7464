"""What is refused: what may pass later waits, what never will ends at once and is never tried again."""

import pytest

from tests.live.api import Object, RefusedError
from tests.live.audit import Write
from tests.live.lab import Lab, Run, unique
from tests.live.support import eventually

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"


def test_quota_of_jobs(lab: Lab) -> None:
    namespace, pool = lab.namespace(), lab.pool()
    quotas = f"/api/v1/namespaces/{namespace}/resourcequotas"
    lab.make(quotas, {"metadata": {"name": "jobs"}, "spec": {"hard": {"count/jobs.batch": "0"}}})
    eventually(lambda: "hard" in lab.api.request("GET", f"{quotas}/jobs").get("status", {}))
    run = lab.submit(pool, namespace=namespace)
    status = run.reaches("PENDING", "QuotaExceeded")
    assert namespace in status["message"]
    assert status["jobId"]
    # Only that namespace waits: it does not stop the line of its pool.
    lab.submit(pool).reaches("SUCCEEDED")
    lab.api.patch(f"{quotas}/jobs", {"spec": {"hard": {"count/jobs.batch": "10"}}})
    run.reaches("SUCCEEDED")
    eventually(lambda: _creates(lab, run)[-1].done)
    creates = _creates(lab, run)
    assert {write.code for write in creates[:-1]} == {403}
    assert len(creates) <= 4


def test_refused_job(lab: Lab) -> None:
    namespace, pool = lab.namespace(), lab.pool()
    _forbid_jobs(lab, namespace)
    before = lab.metric("agentjobs_schedule_failed_total", reason="JobRefused") or 0
    run = lab.submit(pool, namespace=namespace)
    status = run.reaches("SCHEDULE_FAILED", "JobRefused")
    assert "no jobs here" in status["message"]
    assert status["error"].startswith("ScheduleFailed: JobRefused")
    assert {"startedAt", "podName", "exitCode", "result"}.isdisjoint(status)
    assert status["completedAt"] >= status["createdAt"]
    events = eventually(lambda: _events(lab, run))
    assert [(event["type"], event["reason"], event["count"]) for event in events] == [
        ("Warning", "ScheduleFailed", 1)
    ]
    assert "JobRefused" in events[0]["message"]
    assert eventually(
        lambda: lab.metric("agentjobs_schedule_failed_total", reason="JobRefused") == before + 1
    )
    # Not tried again: neither when the reason is gone, nor by an operator that knows of it from a list alone.
    lab.api.delete(f"{POLICIES}/no-jobs-in-{namespace}")
    lab.cluster.restart("operator")
    lab.submit(pool).reaches("SUCCEEDED")
    assert [write.code for write in _creates(lab, run)] == [422]
    assert run.status == status


def test_foreign_job_of_the_same_name(lab: Lab) -> None:
    pool = lab.pool(hold=True)
    run = lab.submit(pool)
    foreign = lab.make(run.job_path.rpartition("/")[0], _foreign(run.job_name))
    lab.edit_pool(pool, hold=False)
    status = run.reaches("SCHEDULE_FAILED", "NameConflict")
    assert run.job_name in status["message"]
    assert [event["type"] for event in eventually(lambda: _events(lab, run))] == ["Warning"]
    left = lab.api.request("GET", run.job_path)
    for part in ("uid", "generation", "labels"):
        assert left["metadata"].get(part) == foreign["metadata"].get(part)
    assert [write for write in lab.audit.by_operator(run.job_name) if write.done] == []


def test_secret_that_the_team_may_not_use(lab: Lab) -> None:
    """Refused at submit; and at the start where it is no longer allowed by then."""
    pool, held, team = lab.pool(), lab.pool(hold=True), unique("team")
    lab.make("/api/v1/namespaces/default/secrets", {"metadata": {"name": team}})
    spec: Object = {"teamId": team, "secrets": [{"name": team}]}
    with pytest.raises(RefusedError, match=r"spec\.secrets\[0\]\.name"):
        lab.submit(pool, **spec)
    path = lab.team(team, secrets=[f"default/{team}"])
    eventually(lambda: lab.accepts(pool, **spec))
    lab.submit(pool, **spec).reaches("SUCCEEDED")
    waiting = lab.submit(held, **spec)
    lab.api.patch(path, {"spec": {"secrets": []}})
    eventually(lambda: not lab.accepts(pool, **spec))
    lab.edit_pool(held, hold=False)
    assert team in waiting.reaches("SCHEDULE_FAILED", "SecretNotAllowed")["message"]


def test_image_from_a_registry_that_the_pool_does_not_list(lab: Lab) -> None:
    pool = lab.pool(sandbox={"registries": ["registry.example.com/team"]})
    refused = lab.submit(pool, agentImage="registry.example.com/team-x/agent:1")
    message = refused.reaches("SCHEDULE_FAILED", "RegistryNotAllowed")["message"]
    assert "registry.example.com/team-x/agent:1" in message
    lab.submit(pool, agentImage="registry.example.com/team/agent:1").reaches("SUCCEEDED")


def test_namespace_that_goes_away(lab: Lab) -> None:
    """Runs in a namespace that is being deleted end with it, and nothing else is disturbed."""
    namespace, pool = lab.namespace(), lab.pool(maxConcurrency=1)
    lab.submit(pool, namespace=namespace, duration="1h").reaches("RUNNING")
    waiting = lab.submit(pool, namespace=namespace)
    behind = lab.submit(pool)
    waiting.reaches("PENDING", "NoFreeSlot")
    lab.api.delete(f"/api/v1/namespaces/{namespace}")
    behind.reaches("SUCCEEDED")
    assert eventually(lambda: lab.metric("agentjobs_held_slots", pool=pool) == 0)


def _forbid_jobs(lab: Lab, namespace: str) -> None:
    """Install a policy against Jobs in a namespace, and wait until it works."""
    name = f"no-jobs-in-{namespace}"
    lab.make(
        POLICIES,
        {
            "metadata": {"name": name},
            "spec": {
                "matchConstraints": {
                    "resourceRules": [
                        {
                            "apiGroups": ["batch"],
                            "apiVersions": ["v1"],
                            "operations": ["CREATE"],
                            "resources": ["jobs"],
                        }
                    ]
                },
                "validations": [{"expression": "false", "message": "no jobs here"}],
            },
        },
    )
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    lab.make(
        BINDINGS,
        {
            "metadata": {"name": name},
            "spec": {
                "policyName": name,
                "validationActions": ["Deny"],
                "matchResources": {"namespaceSelector": selector},
            },
        },
    )

    def works() -> bool:
        try:
            lab.api.create(f"/apis/batch/v1/namespaces/{namespace}/jobs?dryRun=All", _foreign("probe"))
        except RefusedError as error:
            return "no jobs here" in error.message
        return False

    eventually(works)


def _creates(lab: Lab, run: Run) -> list[Write]:
    return [write for write in lab.audit.by_operator(run.job_name) if write.what == "create jobs"]


def _events(lab: Lab, run: Run) -> list[Object]:
    selector = f"fieldSelector=involvedObject.uid={run.uid}"
    return lab.api.items(f"/api/v1/namespaces/{run.namespace}/events?{selector}")


def _foreign(name: str) -> Object:
    """A Job of somebody else, suspended: nothing runs of it."""
    container = {"name": "other", "image": "other:dev"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "suspend": True,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }
