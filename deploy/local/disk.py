"""Room on the disk, asked for before it is needed."""

import shutil
from pathlib import Path

from deploy.local.errors import LocalError

GIGABYTE = 1024**3


def require_space(folder: Path, gigabytes: float, purpose: str, way_out: str) -> None:
    """Raise LocalError unless the disk of `folder`, which need not exist yet, has that much room."""
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free / GIGABYTE
    if free < gigabytes:
        raise LocalError(
            f"disk full: {purpose} takes about {gigabytes:g} GB, and {folder} has {free:.1f} GB left; "
            f"{way_out}"
        )
