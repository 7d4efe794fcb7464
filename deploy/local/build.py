"""Building the cluster's programs from Go modules: slow once, never again."""

import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from deploy.local.console import Console
from deploy.local.disk import require_space
from deploy.local.errors import LocalError
from deploy.local.versions import CONTAINERD, GROUPS, KUBERNETES, KWOK, of_group

SOURCE = Path(__file__).parent / "kubernetes"
MULTICALL = "kubernetes"
MAKE_ROOM = "free some, or point GOCACHE and XDG_CACHE_HOME to a larger disk"


@dataclass(frozen=True)
class Recipe:
    """How one group is built."""

    minutes: float
    """Cold, on two free cores."""
    disk: float
    """Gigabytes that the Go build cache and the modules take."""
    arguments: tuple[str, ...]
    """What follows `go`; `{out}` is the folder for the results."""


def recipes() -> dict[str, Recipe]:
    """The recipe of each group."""
    major, minor = KUBERNETES[1:].split(".")[:2]
    version = "k8s.io/component-base/version"
    # Without these the API server reports v0.0.0, and clients misbehave.
    stamps = {"gitVersion": KUBERNETES, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    flags = " ".join(["-s", "-w", *(f"-X {version}.{key}={value}" for key, value in stamps.items())])
    plain = ("-trimpath", "-ldflags", "-s -w")
    return {
        "kubernetes": Recipe(
            7.5,
            5,
            ("build", "-mod=readonly", "-trimpath", "-ldflags", flags, "-o", f"{{out}}/{MULTICALL}", "."),
        ),
        "kwok": Recipe(
            1.5,
            1.5,
            ("install", *plain, *(f"sigs.k8s.io/kwok/cmd/{p.name}@{KWOK}" for p in of_group("kwok"))),
        ),
        "containerd": Recipe(
            1,
            1.5,
            (
                "install",
                *plain,
                "-tags",
                "no_btrfs no_zfs no_devmapper no_aufs",
                *(
                    f"github.com/containerd/containerd/v2/cmd/{p.name}@{CONTAINERD}"
                    for p in of_group("containerd")
                ),
            ),
        ),
    }


def build(group: str, cache: Path, console: Console) -> None:
    """Build one group into the cache; a build that is broken off leaves nothing there.

    Raises:
        LocalError: no Go or too old a one, the disk is full, no network, or the compiler failed.
    """
    recipe = recipes()[group]
    require_go()
    _require_space(group, cache, recipe)
    out = cache / ".building"
    out.mkdir(parents=True)
    log = cache.parent / f"build-{group}.log"
    step = f"step {GROUPS.index(group) + 1} of {len(GROUPS)}"
    console.fact(group, f"building from Go modules ({step}): about {recipe.minutes:g} minutes, this once")
    command = ["go", *(argument.replace("{out}", str(out)) for argument in recipe.arguments)]
    environment = {**os.environ, "CGO_ENABLED": "0", "GOBIN": str(out), "GOFLAGS": ""}
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment, cwd=SOURCE)
        try:
            _watch(process, group, step, recipe, console)
        except BaseException:
            process.terminate()
            process.wait()
            raise
    if process.returncode:
        raise LocalError(explain(group, log.read_text(errors="replace"), log))
    _publish(group, out, cache)


def _watch(
    process: "subprocess.Popen[bytes]", group: str, step: str, recipe: Recipe, console: Console
) -> None:
    began = time.monotonic()
    while True:
        try:
            process.wait(timeout=1 if console.terminal else 30)
            return
        except subprocess.TimeoutExpired:
            elapsed = int(time.monotonic() - began)
            clock = f"{elapsed // 60}:{elapsed % 60:02}"
            console.progress(group, f"{step}, {clock} elapsed, about {recipe.minutes:g} minutes in all")


def _publish(group: str, out: Path, cache: Path) -> None:
    """Move what was built into place, each file in one step."""
    for path in out.iterdir():
        path.replace(cache / path.name)
    if group == MULTICALL:
        for program in of_group(group):
            temporary = out / program.name
            temporary.symlink_to(MULTICALL)
            temporary.replace(cache / program.name)
    out.rmdir()


def require_go() -> None:
    """Raise LocalError unless a Go is there that can build Kubernetes."""
    if not shutil.which("go"):
        raise LocalError(
            "no `go` on PATH: the cluster's programs are not on this machine and cannot be downloaded from "
            "here, so they must be built, with Go 1.26 or newer; install it from https://go.dev/dl/, or name "
            "a folder with the programs in KUBEBUILDER_ASSETS"
        )
    # Asked in the module's folder: an older Go fetches the one the module needs, if it may.
    answer = subprocess.run(["go", "version"], cwd=SOURCE, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise LocalError(
            f"this Go is too old to build Kubernetes {KUBERNETES}: {answer.stderr.strip()}; "
            "install Go 1.26 or newer from https://go.dev/dl/"
        )


def _require_space(group: str, cache: Path, recipe: Recipe) -> None:
    answer = subprocess.run(["go", "env", "GOCACHE"], capture_output=True, text=True, check=True)
    for folder in (Path(answer.stdout.strip()), cache):
        require_space(folder, recipe.disk, f"building {group}", MAKE_ROOM)


def explain(group: str, output: str, log: Path) -> str:
    """What a failed build means for the user."""
    end = "\n".join(f"    {line}" for line in output.strip().splitlines()[-8:])
    if "no space left on device" in output:
        return (
            f"disk full while building {group}, which takes about {recipes()[group].disk:g} GB; {MAKE_ROOM}"
        )
    unreachable = (
        "dial tcp",
        "no such host",
        "i/o timeout",
        "connection refused",
        "TLS handshake",
        "proxyconnect",
    )
    if any(sign in output for sign in unreachable):
        return (
            f"no network: Go could not fetch the modules of {group}; name a module proxy that answers in "
            f"GOPROXY, or a folder with the programs in KUBEBUILDER_ASSETS. The end of {log}:\n{end}"
        )
    return f"building {group} failed; the end of {log}:\n{end}"
