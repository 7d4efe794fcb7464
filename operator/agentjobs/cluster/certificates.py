"""The admission server's certificate: made here, or taken from files, and changed without a restart.

A change of the authority takes three steps, so that no API server ever meets a certificate that it does not
know: the bundle names the old and the new authority, then the new certificate is served, then the old
authority is dropped.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import ssl
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from agentjobs.errors import SettingsError

_log = logging.getLogger(__name__)

_VALID = timedelta(days=30)
_SKEW = timedelta(days=1)  # clocks of API servers that run behind ours
_RENEW_SECONDS = 10 * 24 * 3600.0
_LOOK_SECONDS = 10.0
# The bundle is written every two seconds, and an API server learns of that at once; a minute is ample.
_SPREAD_SECONDS = 60.0


@dataclass(frozen=True)
class Material:
    """A certificate with its key, and the authorities that a client is to trust; all PEM."""

    authority: bytes
    certificate: bytes
    key: bytes


class Certificates:
    """What the admission server shows and what API servers are to trust.

    Args:
        names: host names and IP addresses that it is reached by.
        folder: with tls.crt, tls.key and ca.crt, as cert-manager writes them; None makes its own.
        clock: seconds since the epoch.

    Attributes:
        ssl_context: for the server; a change reaches it without a new one.
        bundle: PEM of the authorities, for the webhook configuration.

    Raises:
        SettingsError: the folder's files cannot be used.
    """

    def __init__(
        self, names: Sequence[str], folder: Path | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._names = names
        self._folder = folder
        self._clock = clock
        self.ssl_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.ssl_context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._made = clock()
        self._present = make(names, self._made) if folder is None else read(folder)
        self.bundle = self._present.authority
        try:
            load(self.ssl_context, self._present)
        except ssl.SSLError as error:
            raise SettingsError("AGENTJOBS_TLS_DIR", str(folder), _unusable(error)) from error

    async def run(self) -> None:
        """Replace what grows old, or take up files that changed, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                following = self._following()
                if following is not None:
                    await self._change_to(following)
            except (SettingsError, OSError) as error:  # an SSLError is one
                # The files are written one after the other: the next look finds them whole.
                _log.warning("the certificate stays as it is: %s", error)

    def _following(self) -> Material | None:
        """Return what is to be served instead of the present certificate, None when nothing is."""
        if self._folder is None:
            now = self._clock()
            if now - self._made < _RENEW_SECONDS:
                return None
            self._made = now
            return make(self._names, now)
        found = read(self._folder)
        return None if found == self._present else found

    async def _change_to(self, material: Material) -> None:
        load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), material)  # raises where it cannot be used
        if material.authority != self._present.authority:
            self.bundle = self._present.authority + material.authority
            await asyncio.sleep(_SPREAD_SECONDS)
        load(self.ssl_context, material)
        if material.authority != self._present.authority:
            await asyncio.sleep(_SPREAD_SECONDS)
        self._present, self.bundle = material, material.authority
        _log.info("the admission server has a new certificate")


def make(names: Sequence[str], now: float) -> Material:
    """Return an authority and a certificate by it for these names; the authority's key is thrown away.

    Args:
        now: seconds since the epoch.
    """
    moment = datetime.fromtimestamp(now, UTC)
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer, subject = (_name(text) for text in ("agentjobs admission authority", "agentjobs admission"))

    def builder(of: x509.Name, public: Any, *, authority: bool) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder(issuer, of, public, x509.random_serial_number())
            .not_valid_before(moment - _SKEW)
            .not_valid_after(moment + _VALID)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=0 if authority else None), True)
            # Which authority signed it: in a change there are two of one name.
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), False
            )
        )

    authority = builder(issuer, authority_key.public_key(), authority=True).sign(
        authority_key, hashes.SHA256()
    )
    certificate = (
        builder(subject, key.public_key(), authority=False)
        .add_extension(x509.SubjectAlternativeName([_alternative(name) for name in names]), False)
        .sign(authority_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    return Material(
        authority.public_bytes(pem),
        certificate.public_bytes(pem),
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )


def read(folder: Path) -> Material:
    """Return what the files of a folder hold.

    Raises:
        SettingsError: a file is missing or holds no PEM.
    """
    contents = []
    for name in ("ca.crt", "tls.crt", "tls.key"):
        try:
            content = (folder / name).read_bytes()
        except OSError as error:
            rule = f"must hold ca.crt, tls.crt and tls.key; {name}: {error.strerror}"
            raise SettingsError("AGENTJOBS_TLS_DIR", str(folder), rule) from error
        if b"-----BEGIN " not in content:
            raise SettingsError("AGENTJOBS_TLS_DIR", str(folder), f"{name} must be PEM")
        contents.append(content if content.endswith(b"\n") else content + b"\n")
    return Material(*contents)


def load(context: ssl.SSLContext, material: Material) -> None:
    """Make a context serve a certificate; connections that are open keep theirs.

    Raises:
        ssl.SSLError: certificate and key cannot be read, or do not belong together.
    """
    # The ssl module takes files only: one that nobody else may read, and that is gone at once.
    with tempfile.NamedTemporaryFile() as file:
        file.write(material.certificate + material.key)
        file.flush()
        context.load_cert_chain(file.name)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _unusable(error: ssl.SSLError) -> str:
    return f"tls.crt and tls.key must be a certificate and its key ({error.reason or error})"
