"""What a real node needs of this machine: whether it is here, and its address and link."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from deploy.local import node_cgroup
from deploy.local.errors import LocalError
from deploy.local.node_config import Identity

# Commands that come with nearly every system, and the packages that have them.
COMMANDS = {
    "ip": "iproute2",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "mount": "mount",
    "chroot": "coreutils",
    "tar": "tar",
}
LAST_ADDRESS = 253
# Everything that only a privileged root may do, tried where it leaves no trace.
PROBE = """
mount -t overlay -o lowerdir="$1/lower",upperdir="$1/upper",workdir="$1/work" overlay "$1/merged"
if command -v ip > /dev/null; then
    ip link add probe type bridge
    ip link add one type veth peer name two
fi
"""


def problem(state: Path) -> str | None:
    """Why no real node can run here, with what would change that; None when one can."""
    if sys.platform != "linux":
        return "a real node needs Linux (with Docker, CLUSTER=kind gives one)"
    if os.geteuid() != 0:
        return "a real node needs root; run the command with sudo"
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        return (
            "a real node takes runc and Python from Debian's or Ubuntu's packages; there is no apt-get here"
        )
    if not shutil.which("unshare"):
        return "the command unshare is missing: apt-get install util-linux"
    return node_cgroup.problem() or _refused(state)


def missing_packages() -> list[str]:
    """The packages whose commands are not here."""
    return sorted({package for command, package in COMMANDS.items() if not shutil.which(command)})


def install(say: Callable[[str], None]) -> None:
    """Install the missing packages; raises LocalError with apt-get's words."""
    packages = missing_packages()
    if not packages:
        return
    say(f"apt-get install {' '.join(packages)}")
    quiet = ["apt-get", "--quiet", "--yes"]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in ([*quiet, "update"], [*quiet, "install", "--no-install-recommends", *packages]):
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if result.returncode:
            raise LocalError(f"{' '.join(command)} failed:\n{result.stderr.strip()}")


def _refused(state: Path) -> str | None:
    """Try mounts and links in namespaces of their own: containers often allow neither."""
    state.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=state, prefix=".probe-") as folder:
        for name in ("lower", "upper", "work", "merged"):
            Path(folder, name).mkdir()
        command = ["unshare", "--mount", "--net", "sh", "-eu", "-c", PROBE, "probe", folder]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        # A mount that fails explains itself in several lines; the first says what.
        reason = (result.stderr.strip() or f"exit code {result.returncode}").splitlines()[0]
        return f"this machine's kernel, or the container around it, does not allow it: {reason}"
    return None


def address(identity: Identity) -> str | None:
    """The address that the instance holds, if any."""
    lines = _ip(
        "-oneline", "-4", "address", "show", "dev", "lo", "label", identity.address_label
    ).splitlines()
    return lines[0].split()[3].partition("/")[0] if lines else None


def take_address(identity: Identity, wanted: str) -> str:
    """Put an address of its own on the loopback device: the wanted one, else the next that nobody holds."""
    if held := address(identity):
        return held
    network, _, last = wanted.rpartition(".")
    for step in range(LAST_ADDRESS):
        candidate = f"{network}.{(int(last) - 1 + step) % LAST_ADDRESS + 1}"
        try:
            _ip("address", "add", f"{candidate}/32", "dev", "lo", "label", identity.address_label)
        except LocalError as error:
            # The kernel's answer to two at once: exactly one of them gets it.
            if "File exists" in str(error) or "already assigned" in str(error):
                continue
            raise
        return candidate
    raise LocalError(
        f"every address from {network}.1 to {network}.{LAST_ADDRESS} is taken on the loopback device"
    )


def release_network(identity: Identity) -> None:
    """Give the address back and remove the pods' link; nothing happens where there is none."""
    if held := address(identity):
        _ip("address", "delete", f"{held}/32", "dev", "lo")
    if Path("/sys/class/net", identity.bridge).exists():
        _ip("link", "delete", identity.bridge)


def run(command: Sequence[str | Path]) -> str:
    """What a command prints; LocalError with its complaint when it fails."""
    words = [str(word) for word in command]
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    if result.returncode:
        raise LocalError(f"{' '.join(words)}: {result.stderr.strip()}")
    return result.stdout


def _ip(*arguments: str) -> str:
    return run(["ip", *arguments])
