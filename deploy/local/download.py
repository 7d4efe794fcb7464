"""Official releases, verified against the checksums their projects publish.

Every failure here is quiet: where a network refuses, the programs are built instead.
"""

import hashlib
import io
import json
import platform
import sys
import tarfile
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deploy.local.console import Console
from deploy.local.versions import Program

CONNECT_SECONDS = 5
RELEASES = {
    "etcd": ("etcd-io/etcd", "etcd-{version}-{system}-{machine}.tar.gz"),
    "kwok": ("kubernetes-sigs/kwok", "{name}-{system}-{machine}"),
    "containerd": ("containerd/containerd", "containerd-{number}-{system}-{machine}.tar.gz"),
}


def fetch(programs: Sequence[Program], cache: Path, console: Console) -> bool:
    """Download programs into the cache; False when that is not possible here."""
    archives: dict[str, bytes] = {}
    try:
        for program in programs:
            console.progress(program.group, f"downloading {program.name} {program.version}")
            _install(_program(program, archives), cache / program.name)
    except (OSError, LookupError, ValueError, tarfile.TarError):
        return False
    return True


def _program(program: Program, archives: dict[str, bytes]) -> bytes:
    """The verified content of one program."""
    if program.group == "kubernetes" and program.name != "etcd":
        url = kubernetes_url(program)
        return _verified(_get(url), _get(f"{url}.sha256").decode().strip())
    repository, pattern = RELEASES[program.name if program.name == "etcd" else program.group]
    asset = pattern.format(
        name=program.name,
        version=program.version,
        number=program.version[1:],
        system=system(),
        machine=machine(),
    )
    if asset not in archives:
        archives[asset] = _github_asset(repository, program.version, asset)
    if not asset.endswith(".tar.gz"):
        return archives[asset]
    return member(archives[asset], program.name)


def kubernetes_url(program: Program) -> str:
    """Where the Kubernetes project publishes one of its programs."""
    return f"https://dl.k8s.io/release/{program.version}/bin/{system()}/{machine()}/{program.name}"


def _github_asset(repository: str, tag: str, name: str) -> bytes:
    """A release asset, checked against the digest that the release lists for it."""
    release: dict[str, Any] = json.loads(
        _get(f"https://api.github.com/repos/{repository}/releases/tags/{tag}")
    )
    asset = next((entry for entry in release["assets"] if entry["name"] == name), None)
    if asset is None or not asset.get("digest"):
        raise LookupError(f"{repository} {tag} lists no {name} with a digest")
    return _verified(_get(asset["browser_download_url"]), asset["digest"].removeprefix("sha256:"))


def member(archive: bytes, name: str) -> bytes:
    """The file of that name in a compressed tar archive, in whatever folder it lies."""
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        for entry in tar:
            if entry.isfile() and Path(entry.name).name == name:
                content = tar.extractfile(entry)
                if content:
                    return content.read()
    raise LookupError(f"the archive holds no {name}")


def _verified(content: bytes, checksum: str) -> bytes:
    if hashlib.sha256(content).hexdigest() != checksum.lower():
        raise ValueError("the checksum differs")
    return content


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=CONNECT_SECONDS) as answer:  # noqa: S310  (https, above)
        return bytes(answer.read())


def _install(content: bytes, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_bytes(content)
    temporary.chmod(0o755)
    temporary.replace(path)


def system() -> str:
    """This system as Go names it: linux, darwin."""
    return sys.platform.rstrip("0123456789")


def machine() -> str:
    """This processor as Go names it: amd64, arm64."""
    name = platform.machine().lower()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(name, name)
