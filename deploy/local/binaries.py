"""Where the cluster's programs come from.

In this order: what the user names (the folder KUBEBUILDER_ASSETS, then PATH),
where the version fits; the cache; the official download; building from Go
modules. The last two fill the cache, under a lock, and never leave half a file.
"""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from deploy.local import build, download
from deploy.local.cluster import DEFAULT_STATE
from deploy.local.console import Console
from deploy.local.versions import GROUPS, KUBERNETES, Program, of_group, version_in


def cache_folder() -> Path:
    """`${XDG_CACHE_HOME:-~/.cache}/agentjobs/<version>/bin`."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "agentjobs" / KUBERNETES / "bin"


def ensure(console: Console, groups: Sequence[str] = GROUPS) -> dict[str, Path]:
    """Find every program of the groups, fetching or building what is missing.

    Returns:
        The path of each program by its name.

    Raises:
        LocalError: something is missing and can neither be downloaded nor built.
    """
    cache = cache_folder()
    found: dict[str, Path] = {}
    for group in groups:
        with console.phase(group) as phase:
            programs = of_group(group)
            named = {program.name: path for program in programs if (path := _named_by_user(program))}
            if not _cached(cache, programs, named):
                with _lock(cache):
                    # Somebody else may have filled the cache while we waited for the lock.
                    if not _cached(cache, programs, named):
                        _obtain(group, cache, [p for p in programs if p.name not in named], console)
            found |= {program.name: named.get(program.name, cache / program.name) for program in programs}
            phase.result = _origin(programs, named, cache)
    return found


def link(found: dict[str, Path], folder: Path) -> None:
    """Make `folder` hold one link for each program, under its own name."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, path in found.items():
        temporary = folder / f".{name}.{os.getpid()}"
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(path)
        temporary.replace(folder / name)


def _obtain(group: str, cache: Path, missing: Sequence[Program], console: Console) -> None:
    shutil.rmtree(cache / ".building", ignore_errors=True)
    if not download.fetch(missing, cache, console):
        build.build(group, cache, console)


def _cached(cache: Path, programs: Sequence[Program], named: dict[str, Path]) -> bool:
    return all(program.name in named or os.access(cache / program.name, os.X_OK) for program in programs)


def _named_by_user(program: Program) -> Path | None:
    """The user's own program of that name, where its version fits."""
    for path in _candidates(program.name):
        version = version_of(program, path)
        if version and version.startswith(program.fits):
            return path
    return None


def _candidates(name: str) -> Iterator[Path]:
    folders = [
        os.environ.get("KUBEBUILDER_ASSETS", ""),
        *os.environ.get("PATH", os.defpath).split(os.pathsep),
    ]
    for folder in folders:
        path = Path(folder).absolute() / name
        # Our own links come onto PATH with `. .local/env`; they are an answer, not a source.
        if folder and not path.is_relative_to(DEFAULT_STATE) and os.access(path, os.X_OK):
            yield path


def version_of(program: Program, path: Path) -> str | None:
    """The version that a program reports of itself, None when it reports none."""
    try:
        answer = subprocess.run(
            [path, *program.question], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return version_in(answer.stdout + answer.stderr)


def _origin(programs: Sequence[Program], named: dict[str, Path], cache: Path) -> str:
    own = sorted({str(path.parent) for path in named.values()})
    if len(named) == len(programs):
        return f"your own in {', '.join(own)}"
    text = f"{programs[-1].version} in {_short(cache)}"
    return f"{text}; {', '.join(named)} from {', '.join(own)}" if named else text


def _short(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


@contextmanager
def _lock(cache: Path) -> Iterator[None]:
    """One setup at a time: a second one waits, and then finds the work done."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache.parent / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
