"""Certificates: an API server that trusts the bundle can always connect, also in the middle of a change."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from agentjobs.cluster.certificates import Certificates, Material, make
from agentjobs.errors import SettingsError
from tests.unit.cluster.virtual import in_virtual_time

NAMES = ("agentjobs-admission.agentjobs-system.svc", "127.0.0.1")
DAY = 24 * 3600


def connects(served: ssl.SSLContext, bundle: bytes, name: str = NAMES[0]) -> bool:
    """Whether a client that trusts the bundle completes a handshake."""
    client = ssl.create_default_context(cadata=bundle.decode())
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server, server_hostname=name),
        served.wrap_bio(to_server, to_client, server_side=True),
    ]
    done = 0
    for _ in range(6):
        for side in sides:
            try:
                side.do_handshake()
                done += 1
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLCertVerificationError:
                return False
    assert done >= 2
    return True


@asynccontextmanager
async def running(certificates: Certificates) -> AsyncIterator[None]:
    task = asyncio.create_task(certificates.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def write(folder: Path, material: Material) -> None:
    for name, content in (
        ("ca.crt", material.authority),
        ("tls.crt", material.certificate),
        ("tls.key", material.key),
    ):
        (folder / name).write_bytes(content)


# -- made here ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_its_names_are_those_it_was_made_for(name: str) -> None:
    made = Certificates(NAMES)
    assert connects(made.ssl_context, made.bundle, name)
    assert not connects(made.ssl_context, made.bundle, "example.com")
    assert not connects(made.ssl_context, Certificates(NAMES).bundle)


@in_virtual_time
async def test_it_is_replaced_long_before_it_ends_and_never_unknown_to_clients() -> None:
    began = time.time() - 10 * DAY - 600  # so that both the old and the new one are valid today
    made = Certificates(NAMES, clock=lambda: began + asyncio.get_running_loop().time())
    bundles = [made.bundle]
    async with running(made):
        await asyncio.sleep(10 * DAY - 60)
        assert made.bundle == bundles[0]
        for second in range(300):
            await asyncio.sleep(1)
            bundles.append(made.bundle)
            assert connects(made.ssl_context, made.bundle)
            # An API server may not have heard of the newest yet.
            assert connects(made.ssl_context, bundles[max(0, second - 30)])
    first, both, last = dict.fromkeys(bundles)
    assert both == first + last
    assert not connects(made.ssl_context, first)


# -- from files ---------------------------------------------------------------------------------------


@in_virtual_time
async def test_files_are_read_again_when_they_change(tmp_path: Path) -> None:
    old, new = (make(NAMES, time.time()) for _ in range(2))
    write(tmp_path, old)
    found = Certificates(NAMES, tmp_path)
    assert found.bundle == old.authority
    async with running(found):
        await asyncio.sleep(60)
        write(tmp_path, new)
        await asyncio.sleep(15)
        assert found.bundle == old.authority + new.authority
        assert connects(found.ssl_context, old.authority)
        await asyncio.sleep(60)
        assert connects(found.ssl_context, new.authority)
        assert found.bundle == old.authority + new.authority
        await asyncio.sleep(60)
        assert found.bundle == new.authority


@in_virtual_time
async def test_a_new_certificate_of_the_same_authority_is_served_at_once(tmp_path: Path) -> None:
    chain = make(NAMES, time.time())
    write(tmp_path, chain)
    found = Certificates(NAMES, tmp_path)
    other = make(("other.svc",), time.time())
    write(tmp_path, Material(chain.authority, other.certificate, other.key))
    async with running(found):
        await asyncio.sleep(11)
    assert found.bundle == chain.authority
    assert connects(found.ssl_context, other.authority, "other.svc")


@in_virtual_time
async def test_files_that_are_half_written_change_nothing(tmp_path: Path) -> None:
    old, new = (make(NAMES, time.time()) for _ in range(2))
    write(tmp_path, old)
    found = Certificates(NAMES, tmp_path)
    async with running(found):
        for content in (new.certificate, b"", b"-----BEGIN CERTIFICATE-----\nx"):
            (tmp_path / "tls.crt").write_bytes(content)
            await asyncio.sleep(11)
            assert connects(found.ssl_context, old.authority)
        (tmp_path / "tls.crt").unlink()
        await asyncio.sleep(11)
        write(tmp_path, new)
        await asyncio.sleep(200)
        assert connects(found.ssl_context, new.authority)
        assert found.bundle == new.authority


@pytest.mark.parametrize(
    ("name", "content", "rule"),
    [
        ("tls.key", None, "must hold ca.crt, tls.crt and tls.key; tls.key: No such file or directory"),
        ("ca.crt", b"", "ca.crt must be PEM"),
        ("tls.crt", b"nothing", "tls.crt must be PEM"),
        ("tls.key", make(NAMES, 0).key, "tls.crt and tls.key must be a certificate and its key"),
    ],
)
def test_files_that_cannot_be_used_are_named(
    tmp_path: Path, name: str, content: bytes | None, rule: str
) -> None:
    write(tmp_path, make(NAMES, time.time()))
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(SettingsError) as caught:
        Certificates(NAMES, tmp_path)
    assert rule in str(caught.value)
    assert str(tmp_path) in str(caught.value)
