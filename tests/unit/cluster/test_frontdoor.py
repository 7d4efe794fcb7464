"""The front door: API servers are led to the leader of the latest epoch, whatever others write."""

from __future__ import annotations

import asyncio
import base64
from contextlib import suppress

import pytest

from agentjobs.apis import names
from agentjobs.cluster.certificates import Certificates
from agentjobs.cluster.frontdoor import LOOK_SECONDS, Address, FrontDoor, last_epoch
from tests.unit.cluster.candidates import Candidate, EndedError, released
from tests.unit.cluster.fake_api import JSON, FakeApi, RefusedError
from tests.unit.cluster.virtual import in_virtual_time
from tests.unit.controller.harness import MemorySession

HOOKS = ("agentjobs", "agentteams", "agentpools")
BY_URL = Address("127.0.0.1", 9443, pod=False)
IN_POD = Address("10.1.2.3", 9443, pod=True)
CLOSED = {"service": {"namespace": "agentjobs-system", "name": "agentjobs-admission", "path": "/closed"}}
CERTIFICATES = Certificates(["127.0.0.1"])
BUNDLE = base64.b64encode(CERTIFICATES.bundle).decode()


def install(api: FakeApi, **annotations: str) -> None:
    hooks = [
        {"name": f"{plural}.agentjobs.dev", "clientConfig": CLOSED, "failurePolicy": "Fail"}
        for plural in HOOKS
    ]
    hooks.append({"name": "agentjobs.example.com", "clientConfig": CLOSED, "failurePolicy": "Ignore"})
    metadata: JSON = {"name": "agentjobs"}
    if annotations:
        metadata["annotations"] = annotations
    api.put("validatingwebhookconfigurations", {"metadata": metadata, "webhooks": hooks})


def configuration(api: FakeApi) -> JSON:
    return api.get("validatingwebhookconfigurations", "agentjobs")


def clients(api: FakeApi) -> list[JSON]:
    return [hook["clientConfig"] for hook in configuration(api)["webhooks"]]


def endpoints(api: FakeApi) -> JSON:
    return api.get("endpointslices", "agentjobs-admission", namespace=names.SYSTEM_NAMESPACE)


class Leader(Candidate):
    """A candidate with a front door, which it opens once elected."""

    def __init__(self, api: FakeApi, identity: str = "a", address: Address = BY_URL) -> None:
        super().__init__(api, identity)
        self.door = FrontDoor(self.session, self.lease, CERTIFICATES, address)
        self.session._may_write = lambda: self.lease.held or not self.lease.epoch
        self.task: asyncio.Task[None] | None = None

    async def leads(self) -> None:
        await self.elected(within=10)
        self.task = asyncio.create_task(self._open())

    async def _open(self) -> None:
        with suppress(EndedError):
            await self.door.run()


async def leader(api: FakeApi, identity: str = "a", address: Address = BY_URL) -> Leader:
    released(api)
    found = Leader(api, identity, address)
    await found.leads()
    return found


@in_virtual_time
async def test_every_hook_of_ours_leads_to_this_process_and_term() -> None:
    api = FakeApi()
    install(api)
    a = Leader(api)
    assert a.door.prefix == ""
    released(api)
    await a.leads()
    await asyncio.sleep(0.1)
    assert a.door.written.is_set()
    assert a.door.prefix.endswith(f"/{a.lease.epoch}")
    assert len(a.door.prefix) > 30
    urls = [f"https://127.0.0.1:9443{a.door.prefix}/{plural}" for plural in HOOKS]
    assert clients(api) == [*({"url": url, "caBundle": BUNDLE} for url in urls), CLOSED]
    assert configuration(api)["webhooks"][0]["failurePolicy"] == "Fail"
    assert configuration(api)["metadata"]["annotations"] == {"agentjobs.dev/epoch": str(a.lease.epoch)}
    assert await last_epoch(a.session) == a.lease.epoch


@in_virtual_time
async def test_in_a_pod_the_service_leads_to_its_address() -> None:
    api = FakeApi()
    install(api)
    a = await leader(api, address=IN_POD)
    await asyncio.sleep(0.1)
    service = {"namespace": "agentjobs-system", "name": "agentjobs-admission", "port": 443}
    path = f"{a.door.prefix}/agentjobs"
    assert clients(api)[0] == {"service": {**service, "path": path}, "caBundle": BUNDLE}
    slice_ = endpoints(api)
    assert slice_["addressType"] == "IPv4"
    assert slice_["endpoints"] == [{"addresses": ["10.1.2.3"], "conditions": {"ready": True}}]
    assert slice_["ports"] == [{"name": "https", "port": 9443, "protocol": "TCP"}]
    assert slice_["metadata"]["labels"]["kubernetes.io/service-name"] == "agentjobs-admission"
    b = Leader(api, "b", Address("fd00::7", 9443, pod=True))
    await a.door.leave()
    assert endpoints(api)["endpoints"] == []
    assert a.door.prefix == ""
    await a.lease.release()
    await b.leads()
    await asyncio.sleep(0.1)
    assert endpoints(api)["endpoints"][0]["addresses"] == ["fd00::7"]
    assert endpoints(api)["metadata"]["annotations"] == {"agentjobs.dev/epoch": str(b.lease.epoch)}


@in_virtual_time
async def test_what_is_as_it_should_be_is_not_written_again() -> None:
    api = FakeApi()
    install(api)
    await leader(api, address=IN_POD)
    await asyncio.sleep(60)
    assert api.count("update validatingwebhookconfigurations") == 1
    assert api.count("create endpointslices") == 1
    assert api.count("update endpointslices") == 0
    assert api.count("get validatingwebhookconfigurations") <= 60 / LOOK_SECONDS + 2


@in_virtual_time
async def test_put_back_by_another_it_is_written_again() -> None:
    api = FakeApi()
    install(api)
    a = await leader(api)
    await asyncio.sleep(0.1)
    install(api)  # as a GitOps tool would: the annotation stays
    await asyncio.sleep(LOOK_SECONDS + 0.1)
    assert all(a.door.prefix in client["url"] for client in clients(api)[:3])


@in_virtual_time
async def test_a_configuration_that_is_not_there_yet_is_told_once_and_written_when_it_comes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    api = FakeApi()
    a = await leader(api)
    await asyncio.sleep(60)
    assert a.door.written.is_set()  # there is nothing to write
    assert caplog.text.count("API servers are not led here yet") == 1
    install(api)
    await asyncio.sleep(LOOK_SECONDS + 0.1)
    assert a.door.prefix in clients(api)[0]["url"]


@in_virtual_time
async def test_a_leader_of_a_later_epoch_ends_this_one_and_keeps_its_door() -> None:
    api = FakeApi()
    install(api)
    a = await leader(api)
    await asyncio.sleep(0.1)
    later = str(a.lease.epoch + 1)
    install(api, **{names.ANNOTATION_EPOCH: later})
    await asyncio.sleep(LOOK_SECONDS + 0.1)
    assert a.ended == f"superseded: epoch {later} leads, this is {a.lease.epoch}"
    assert clients(api)[0] == CLOSED


@pytest.mark.parametrize("text", ["", "x", "-3", "٣", "9" * 5000, "2147483647"])
@in_virtual_time
async def test_an_epoch_that_no_leader_wrote_is_written_over(text: str) -> None:
    api = FakeApi()
    install(api, **{names.ANNOTATION_EPOCH: text})
    assert await last_epoch(MemorySession(api)) == 0
    a = await leader(api)
    await asyncio.sleep(0.1)
    assert a.door.written.is_set()
    assert await last_epoch(a.session) == a.lease.epoch


@in_virtual_time
async def test_what_changed_since_it_was_read_is_not_written_over() -> None:
    api = FakeApi()
    install(api)
    gate = asyncio.Event()
    released(api)
    a = Leader(api)
    a.session.gates["update validatingwebhookconfigurations"] = gate
    await a.leads()
    await asyncio.sleep(0.1)
    later = str(a.lease.epoch + 1)
    install(api, **{names.ANNOTATION_EPOCH: later})
    gate.set()
    await asyncio.sleep(LOOK_SECONDS + 0.1)
    assert clients(api)[0] == CLOSED
    assert a.ended


@in_virtual_time
async def test_nothing_is_written_by_who_lost_the_lease() -> None:
    api = FakeApi()
    install(api)
    released(api)
    a = Leader(api)
    gate = a.session.gates["get validatingwebhookconfigurations"] = asyncio.Event()
    await a.leads()
    await asyncio.sleep(0.1)
    a.asleep = 20  # between its look and its write
    gate.set()
    await asyncio.sleep(0.5)
    assert a.door.prefix == ""
    assert api.count("update validatingwebhookconfigurations") == 0


@in_virtual_time
async def test_after_leaving_nothing_is_written() -> None:
    api = FakeApi()
    install(api)
    a = await leader(api, address=IN_POD)
    await asyncio.sleep(0.1)
    await a.door.leave()
    install(api)
    await asyncio.sleep(30)
    assert clients(api)[0] == CLOSED
    assert endpoints(api)["endpoints"] == []
    assert a.task is not None
    assert a.task.done()


@in_virtual_time
async def test_refusals_are_tried_again() -> None:
    api = FakeApi()
    install(api)
    api.refuse("get validatingwebhookconfigurations", RefusedError(500), times=2)
    api.refuse("update validatingwebhookconfigurations", RefusedError(409, "Conflict"))
    a = await leader(api)
    await asyncio.sleep(2 * LOOK_SECONDS)
    assert not a.door.written.is_set()
    await asyncio.sleep(2 * LOOK_SECONDS)
    assert a.door.written.is_set()
