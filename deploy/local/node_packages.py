"""Parts of a real node that come from Debian's or Ubuntu's packages: runc, network plugins, Python.

They are unpacked into the cache folder and not installed: this machine's
system stays as it is. Unpacked once, they are found there ever after.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from deploy.local.binaries import cache_folder
from deploy.local.errors import LocalError
from deploy.local.oci import entries_of_folder, layer

TOOLS = ("runc", "containernetworking-plugins", "busybox-static")
PLUGINS = ("bridge", "host-local", "loopback")
# A small Python with the modules that agents use; of what its packages depend on, only the
# libraries that these modules load. The distribution decides the version.
PYTHON = ("python3-minimal", "libpython3-stdlib")
KEPT = re.compile(
    r"(lib)?python3\.\d+-(minimal|stdlib)|libc6|libgcc-s1|zlib1g|libssl3(t64)?|libffi\d+|libexpat1"
    r"|libbz2-1\.0|liblzma5|libzstd1|libcrypt1|libuuid1|libsqlite3-0(t64)?"
)
UNWANTED = (
    "*/share/doc",
    "*/share/man",
    "*/share/lintian",
    "*/share/locale",
    "*/gconv",
    "*/lib2to3",
    "*/pydoc_data",
)
USERS = "root:x:0:0:root:/root:/bin/sh\nagent:x:10001:10001:agent:/home/agent:/bin/sh\n"
GROUPS = "root:x:0:\nagent:x:10001:\n"
# A static program cannot load the name service of another C library: these would crash.
NAME_RESOLVING = {"ftpget", "ftpput", "nslookup", "ping", "ping6", "telnet", "tftp", "traceroute", "wget"}
PROOF = "import asyncio, bz2, ctypes, decimal, hashlib, json, lzma, sqlite3, ssl, uuid, urllib.request, zlib"


def folder() -> Path:
    """Where the parts lie in the cache; named by this very recipe, so that an old result is never used."""
    recipe = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:8]
    return cache_folder().parent / f"node-{recipe}"


def present() -> bool:
    """Whether everything is unpacked already."""
    return folder().exists()


def provide(say: Callable[[str], None]) -> None:
    """Download and unpack what is not there yet; as root, since Python's modules are compiled in a chroot.

    Leaves `runc`, `busybox`, the network plugins under `cni/`, and `python.tar`,
    the layer that all example images share.

    Raises:
        LocalError: the packages cannot be had, or do not work here.
    """
    if present():
        return
    target = folder()
    target.parent.mkdir(parents=True, exist_ok=True)
    work = target.parent / ".node"
    with (target.parent / "node.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Somebody else may have been faster; and of who was killed, half of the work may lie here.
        if present():
            return
        shutil.rmtree(work, ignore_errors=True)
        say("runc, network plugins and a small Python from the distribution's packages, into the cache")
        _make(work, say).rename(target)
        shutil.rmtree(work)


def _make(work: Path, say: Callable[[str], None]) -> Path:
    """Everything that `provide` promises, in a folder below `work`."""
    tools, python = _download(work / "packages", say)
    ready = work / "ready"
    ready.mkdir()
    _unpack(tools, work / "tools")
    _take_tools(work / "tools", ready)
    _build_python(python, ready / "busybox", work / "root")
    (ready / "python.tar").write_bytes(layer(entries_of_folder(work / "root")).data)
    return ready


def _download(into: Path, say: Callable[[str], None]) -> tuple[list[Path], list[Path]]:
    """The package files of the tools, and those of Python."""
    try:
        return _download_once(into)
    except LocalError:
        say("package lists are absent or old: apt-get update")
        _run(["apt-get", "--quiet", "update"])
        return _download_once(into)


def _download_once(into: Path) -> tuple[list[Path], list[Path]]:
    options = [
        f"--no-{kind}" for kind in ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")
    ]
    closure = _run(["apt-cache", "depends", "--recurse", *options, *PYTHON]).split()
    wanted = sorted({package for package in closure if KEPT.fullmatch(package)})
    found = []
    for subfolder, packages in (("tools", TOOLS), ("python", wanted)):
        place = into / subfolder
        place.mkdir(parents=True, exist_ok=True)
        _run(["apt-get", "--quiet", "-o", "APT::Sandbox::User=root", "download", *packages], cwd=place)
        found.append(sorted(place.glob("*.deb")))
    return found[0], found[1]


def _unpack(packages: Sequence[Path], root: Path) -> None:
    """Unpack into a root where /bin, /lib and the like are links into /usr, as in every system of today."""
    for name in ("bin", "lib", "lib64", "sbin"):
        (root / "usr" / name).mkdir(parents=True, exist_ok=True)
        if not (root / name).is_symlink():
            (root / name).symlink_to(f"usr/{name}")
    tar = ["tar", "--extract", "--keep-directory-symlink", f"--directory={root}"]
    tar += [f"--exclude={pattern}" for pattern in UNWANTED]
    for package in packages:
        content = subprocess.run(
            ["dpkg-deb", "--fsys-tarfile", package], capture_output=True, check=True
        ).stdout
        subprocess.run(tar, input=content, check=True)


def _take_tools(root: Path, ready: Path) -> None:
    places = {"runc": "usr/sbin/runc", "busybox": "usr/bin/busybox"}
    places |= {f"cni/{plugin}": f"usr/lib/cni/{plugin}" for plugin in PLUGINS}
    for name, place in places.items():
        target = ready / name
        target.parent.mkdir(exist_ok=True)
        source = root / place
        if not source.exists():
            raise LocalError(
                f"the distribution's package of {target.name} has no /{place}; use NODE=simulated"
            )
        shutil.copy2(source, target)
    _run([str(ready / "runc"), "--version"])


def _build_python(packages: Sequence[Path], busybox: Path, root: Path) -> None:
    """A root filesystem with Python, a shell, and the agent's user."""
    _unpack(packages, root)
    interpreter = next(
        path for path in (root / "usr/bin").glob("python3.*") if re.fullmatch(r"python3\.\d+", path.name)
    )
    for link in ("python3", "python"):
        (root / "usr/bin" / link).symlink_to(interpreter.name)
    shutil.copy2(busybox, root / "usr/bin/busybox")
    for applet in set(_run([str(busybox), "--list"]).split()) - NAME_RESOLVING:
        command = root / "usr/bin" / applet
        if not command.exists() and not command.is_symlink():
            command.symlink_to("busybox")
    (root / "etc").mkdir(exist_ok=True)
    (root / "etc/passwd").write_text(USERS)
    (root / "etc/group").write_text(GROUPS)
    for place in ("dev", "home/agent", "proc", "sys", "tmp", "workspace"):
        (root / place).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    python = ["chroot", str(root), f"/usr/bin/{interpreter.name}"]
    # Compiled now, since nobody can in a read-only container. By content and with a fixed
    # order of sets, so that the same packages give the same image.
    unchanging = ["--invalidation-mode", "unchecked-hash"]
    modules = f"/usr/lib/{interpreter.name}"
    _run([*python, "-m", "compileall", "-q", *unchanging, modules], env={"PYTHONHASHSEED": "0"})
    _run([*python, "-c", PROOF])


def _run(command: Sequence[str], *, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", **(env or {})}
    for proxy in ("http_proxy", "https_proxy", "no_proxy"):
        if proxy in os.environ:
            environment[proxy] = os.environ[proxy]
    result = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if result.returncode:
        raise LocalError(f"{' '.join(command)}\nfailed:\n{result.stderr.strip() or result.stdout.strip()}")
    return result.stdout
