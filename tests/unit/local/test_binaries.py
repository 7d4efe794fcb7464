"""Where programs come from: the order, the version check, downloads and builds that fail."""

import hashlib
import io
import json
import shutil
import tarfile
from pathlib import Path

import pytest

from deploy.local import binaries, build, download
from deploy.local.console import Console
from deploy.local.disk import GIGABYTE
from deploy.local.errors import LocalError
from deploy.local.versions import GROUPS, KUBERNETES, PROGRAMS, of_group, version_in

SILENT = Console(None)


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty machine: no programs, no network, no Go."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setattr(download, "_get", _no_network)
    return tmp_path


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ("Kubernetes v1.37.2\n", "1.37.2"),
        ("etcd Version: 3.7.0\nGo Version: go1.26.8\n", "3.7.0"),
        ("Client Version: v1.32.4-dispatcher\nKustomize Version: v5.5.0", "1.32.4"),
        ("kwok version v0.8.0 go1.26.8 (linux/amd64)", "0.8.0"),
        ("containerd github.com/containerd/containerd/v2 2.4.2+unknown", "2.4.2"),
        ("usage: etcd", None),
    ],
)
def test_version_in_output(output: str, version: str | None) -> None:
    assert version_in(output) == version


def test_the_users_folder_comes_before_path_and_cache(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("assets", "path"):
        _program(machine / folder / "kwok", "v0.8.1")
        _program(machine / folder / "kwokctl", "v0.8.1")
    assert binaries.ensure(SILENT, ["kwok"])["kwok"] == machine / "path" / "kwok"
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(machine / "assets"))
    assert binaries.ensure(SILENT, ["kwok"])["kwok"] == machine / "assets" / "kwok"


def test_a_version_that_does_not_fit_is_passed_over(machine: Path) -> None:
    _program(machine / "path" / "kwok", "v0.7.0")
    _program(machine / "path" / "kwokctl", "v0.8.3")
    _program(binaries.cache_folder() / "kwok", "v0.8.0")
    found = binaries.ensure(SILENT, ["kwok"])
    assert found == {
        "kwok": binaries.cache_folder() / "kwok",
        "kwokctl": machine / "path" / "kwokctl",
    }


def test_it_says_where_each_program_is_from(machine: Path) -> None:
    _program(machine / "path" / "kwok", "v0.8.0")
    _program(binaries.cache_folder() / "kwokctl", "v0.8.0")
    said = io.StringIO()
    binaries.ensure(Console(said), ["kwok"])
    line = f"v0.8.0 in {machine}/cache/agentjobs/{KUBERNETES}/bin; kwok from {machine}/path"
    assert line in said.getvalue()


def test_no_program_no_network_no_go(machine: Path) -> None:
    with pytest.raises(LocalError, match=r"no `go` on PATH: .*Go 1\.26 or newer.*KUBEBUILDER_ASSETS"):
        binaries.ensure(SILENT, ["kwok"])
    assert not list(binaries.cache_folder().glob("kwok*"))


def test_links_are_replaced(machine: Path) -> None:
    for target in ("one", "two"):
        binaries.link({"kwok": machine / target}, machine / "bin")
    assert (machine / "bin" / "kwok").readlink() == machine / "two"
    assert len(list((machine / "bin").iterdir())) == 1


def test_download_of_kubernetes_is_verified(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubectl = next(program for program in PROGRAMS if program.name == "kubectl")
    url = download.kubernetes_url(kubectl)
    site = {url: b"program", f"{url}.sha256": hashlib.sha256(b"program").hexdigest().encode()}
    monkeypatch.setattr(download, "_get", site.__getitem__)
    assert download.fetch([kubectl], machine, SILENT)
    assert (machine / "kubectl").read_bytes() == b"program"
    assert (machine / "kubectl").stat().st_mode & 0o777 == 0o755

    (machine / "kubectl").unlink()
    site[url] = b"something else"
    assert not download.fetch([kubectl], machine, SILENT)
    assert not (machine / "kubectl").exists()


def test_download_of_a_release_archive(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = of_group("containerd")
    archive = _archive({f"bin/{program.name}": program.name.encode() for program in programs})
    name = f"containerd-2.4.2-{download.system()}-{download.machine()}.tar.gz"
    digest = f"sha256:{hashlib.sha256(archive).hexdigest()}"
    release = {"assets": [{"name": name, "digest": digest, "browser_download_url": "https://there"}]}
    asked: list[str] = []

    def get(url: str) -> bytes:
        asked.append(url)
        return archive if url == "https://there" else json.dumps(release).encode()

    monkeypatch.setattr(download, "_get", get)
    assert download.fetch(programs, machine, SILENT)
    assert (machine / "ctr").read_bytes() == b"ctr"
    assert len(asked) == 2, "the archive is fetched once"


@pytest.mark.parametrize("group", GROUPS)
def test_recipe_never_writes_into_the_source_folder(group: str) -> None:
    arguments = build.recipes()[group].arguments
    assert "-trimpath" in arguments
    if group == "kubernetes":
        assert "-mod=readonly" in arguments
        assert "{out}/kubernetes" in arguments
        assert "gitVersion=v1.37.2" in " ".join(arguments)
    else:
        assert all("@v" in argument for argument in arguments if "/cmd/" in argument)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (
            "write /tmp/x: no space left on device",
            "disk full while building kwok, which takes about 1.5 GB; free some",
        ),
        ("dial tcp 10.0.0.1:443: i/o timeout", "no network: Go could not fetch the modules of kwok"),
        ("undefined: x", "building kwok failed; the end of build.log"),
    ],
)
def test_failed_build_is_explained(output: str, message: str) -> None:
    assert build.explain("kwok", output, Path("build.log")).startswith(message)


def test_room_on_the_disk_is_asked_for_before_a_build(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _script(machine / "path" / "go", 'echo "$XDG_CACHE_HOME"')
    usage = shutil.disk_usage(machine)._replace(free=2 * GIGABYTE)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    message = r"disk full: building kubernetes takes about 5 GB, and .* has 2\.0 GB left; free some"
    with pytest.raises(LocalError, match=message):
        build.build("kubernetes", binaries.cache_folder(), SILENT)


def test_build_is_published_in_whole_files(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fake `go` stands for the compiler."""
    go = 'case "$1" in env) echo "$XDG_CACHE_HOME";; version) ;; *) : > "${GOBIN}/kwok"; exit $FAIL;; esac'
    _script(machine / "path" / "go", go)
    cache = binaries.cache_folder()
    monkeypatch.setenv("FAIL", "1")
    with pytest.raises(LocalError, match="building kwok failed"):
        build.build("kwok", cache, SILENT)
    assert not (cache / "kwok").exists()
    monkeypatch.setenv("FAIL", "0")
    # What the failed build left is removed by the one that holds the lock.
    (cache / ".building" / "kwok").unlink()
    (cache / ".building").rmdir()
    build.build("kwok", cache, SILENT)
    assert (cache / "kwok").exists()
    assert not (cache / ".building").exists()


def _no_network(url: str) -> bytes:
    raise OSError(f"{url}: unreachable")


def _program(path: Path, version: str) -> None:
    _script(path, f"echo {path.name} version {version}")


def _script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def _archive(files: dict[str, bytes]) -> bytes:
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w:gz") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return output.getvalue()
