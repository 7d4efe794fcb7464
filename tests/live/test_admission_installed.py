"""The webhook configuration in a real API server: what it asks about, and that a leader's part is left alone.

Nobody answers here, so a request that is reviewed is a request that is refused.
"""

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from deploy.local import admission
from deploy.local.errors import LocalError
from deploy.local.local import LocalCluster
from deploy.local.ports import free_ports
from tests.live.api import AGENTS, Api, NoAnswerError, Object
from tests.live.lab import agentjob, unique
from tests.live.support import eventually

AGENTJOBS = f"{AGENTS}/namespaces/default/agentjobs"
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/agentjobs"
KINDS: dict[str, Object] = {
    f"{AGENTS}/agentteams": {"apiVersion": "agentjobs.dev/v1alpha1", "kind": "AgentTeam", "spec": {}},
    f"{AGENTS}/agentpools": {"apiVersion": "agentjobs.dev/v1alpha1", "kind": "AgentPool", "spec": {}},
}


@pytest.fixture
def api(cluster: LocalCluster) -> Iterator[Api]:
    with Api(cluster) as api:
        yield api


@pytest.fixture
def waiting(api: Api) -> Iterator[str]:
    """The path of an AgentJob that was stored before anybody was asked."""
    name = unique("stored")
    api.create(AGENTJOBS, agentjob(name, "default", "1s", "", 0, {}))
    yield f"{AGENTJOBS}/{name}"
    api.delete(f"{AGENTJOBS}/{name}")


@pytest.fixture
def installed(cluster: LocalCluster, api: Api, waiting: str) -> Iterator[str]:
    """The configuration, in effect; the address that nobody listens at."""
    address = f"127.0.0.1:{free_ports(1)[0]}"
    admission.install(cluster.kubectl, address)
    eventually(lambda: refused(lambda: touch(api)))
    yield address
    admission.remove(cluster.kubectl)
    eventually(lambda: not refused(lambda: touch(api)))


def refused(request: Callable[[], Object]) -> bool:
    """Whether the API server asked before it did what is requested."""
    try:
        request()
    except NoAnswerError as error:
        if admission.UNANSWERED in str(error):
            return True
        raise
    return False


def touch(api: Api) -> Object:
    return api.patch(f"{AGENTS}/agentpools/default", {"metadata": {"labels": {"touched": unique("time")}}})


def test_what_is_created_or_changed_is_reviewed(api: Api, waiting: str, installed: str) -> None:
    manifest = agentjob(unique("new"), "default", "1s", "", 0, {})
    assert refused(lambda: api.create(AGENTJOBS, manifest))
    assert refused(lambda: api.create(f"{AGENTJOBS}?dryRun=All", manifest))
    assert refused(lambda: api.patch(waiting, {"spec": {"cancel": True}}))
    assert refused(lambda: api.patch(waiting, {"metadata": {"annotations": {"note": "1"}}}))
    for collection, body in KINDS.items():
        assert refused(partial(api.create, collection, {**body, "metadata": {"name": unique("new")}}))
    assert refused(lambda: api.patch(f"{AGENTS}/agentpools/default", {"spec": {"hold": True}}))
    assert api.request("GET", waiting)["spec"].get("cancel") is None


def test_ends_are_never_reviewed(api: Api, waiting: str, installed: str) -> None:
    """Neither a status, nor finalizers and owners, nor a deletion waits for an operator."""
    api.patch(f"{waiting}/status", {"status": {"phase": "FAILED", "reason": "JobLost", "message": "lost"}})
    api.patch(waiting, {"metadata": {"finalizers": ["example.com/keep"]}})
    api.delete(waiting)
    assert api.request("GET", waiting)["metadata"]["deletionTimestamp"]
    api.patch(waiting, {"metadata": {"finalizers": None}})
    assert api.get(waiting) is None
    api.patch(f"{AGENTS}/agentpools/default", {"metadata": {"ownerReferences": []}})
    api.patch(f"{AGENTS}/agentpools/default/status", {"status": {"observedGeneration": 1}})


def test_applying_again_leaves_the_leaders_part_alone(
    cluster: LocalCluster, api: Api, installed: str
) -> None:
    stored = api.request("GET", HOOKS)
    assert {hook["clientConfig"]["url"] for hook in stored["webhooks"]} == {f"https://{installed}/closed"}
    for hook in stored["webhooks"]:
        hook["clientConfig"] = {"url": f"https://{installed}/secret/3/{hook['name']}", "caBundle": ""}
        hook["timeoutSeconds"] = 9
    stored["metadata"]["annotations"] = {"agentjobs.dev/epoch": "3"}
    api.request("PUT", HOOKS, stored)
    admission.install(cluster.kubectl, installed)
    again = api.request("GET", HOOKS)
    assert [ways(hook) for hook in again["webhooks"]] == [ways(hook) for hook in stored["webhooks"]]
    assert {hook["timeoutSeconds"] for hook in again["webhooks"]} == {3}
    assert again["metadata"]["annotations"]["agentjobs.dev/epoch"] == "3"


def ways(hook: Object) -> str:
    url: str = hook["clientConfig"]["url"]
    return url


def test_the_shipped_manifest_is_accepted_as_it_is(cluster: LocalCluster) -> None:
    out = cluster.kubectl(
        "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", str(admission.MANIFEST)
    )
    assert len(out.splitlines()) == 2
    with pytest.raises(LocalError, match="not found"):
        cluster.kubectl("get", admission.KIND, admission.NAME)
