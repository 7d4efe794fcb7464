"""`python -m deploy.wheel [FOLDER]`: the package as it is released, its policy compiled to C.

Below the folder stand the source distribution, the wheel, and in `unpacked` what the wheel holds, to be run
with PYTHONPATH. What stood there before stays until all of it is built.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from deploy.local.cluster import DEFAULT_STATE, ROOT

DIST = DEFAULT_STATE / "dist"


def missing() -> str:
    """Return what is missing to compile for this Python, and how to get it; "" when nothing is."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    if shutil.which(compiler) is None:
        return f"this Python compiles with {compiler}, which is not there; on Debian: apt-get install gcc"
    headers = Path(sysconfig.get_path("include"), "Python.h")
    if not headers.exists():
        return f"there is no {headers}; on Debian: apt-get install python3-dev"
    return ""


def build(folder: Path) -> Path:
    """Build everything, put it into a folder in place of what was built before, and return the wheel.

    Raises:
        subprocess.CalledProcessError: when a step fails; it has said why.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        new = Path(made)
        _run("hatchling", "build", "--target", "sdist", "--directory", made)
        # From the source distribution, so that nothing compiled is left beside the sources.
        pip = ("pip", "--quiet", "--disable-pip-version-check")
        flags = ("--no-deps", "--no-build-isolation", "--wheel-dir", made)
        _run(*pip, "wheel", *flags, *map(str, new.glob("*.tar.gz")), HATCH_BUILD_HOOK_ENABLE_MYPYC="true")
        (wheel,) = new.glob("*.whl")
        _run(*pip, "install", "--no-deps", "--target", str(new / "unpacked"), str(wheel))
        folder.mkdir(exist_ok=True)
        for former in [*folder.glob("agentjobs-*"), folder / "unpacked"]:
            shutil.rmtree(former) if former.is_dir() else former.unlink(missing_ok=True)
        for part in [*new.glob("agentjobs-*"), new / "unpacked"]:
            part.rename(folder / part.name)
    return folder / wheel.name


def _run(module: str, *arguments: str, **environment: str) -> None:
    command = [sys.executable, "-m", module, *arguments]
    subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, check=True, stdout=sys.stderr)


def main(arguments: list[str]) -> int:
    """Build, and print the wheel's path; return the exit code."""
    if lacks := missing():
        print(f"wheel: {lacks}", file=sys.stderr)
        return 1
    try:
        print(build(Path(arguments[0]).absolute() if arguments else DIST))
    except subprocess.CalledProcessError as error:
        print(f"wheel: {shlex.join(error.cmd[2:4])} failed; what was built before is kept", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
