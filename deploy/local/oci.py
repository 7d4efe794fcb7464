"""Container images packed by hand: OCI archives without a builder, a registry or Docker.

An archive is a tar of blobs named by their digest, and an index that names the
images among them. Several images share the layers they have in common. The
same input gives the same bytes, so also the same digests: no clock, no user
and no order of a directory leaks in.

Format: the OCI image specification, https://github.com/opencontainers/image-spec.
"""

import hashlib
import io
import json
import os
import platform
import stat
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

EPOCH = "1970-01-01T00:00:00Z"
LAYER = "application/vnd.oci.image.layer.v1.tar"
CONFIG = "application/vnd.oci.image.config.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
# containerd's importer gives the image this name; the specification's own annotation holds only the tag.
NAME_ANNOTATION = "io.containerd.image.name"
TAG_ANNOTATION = "org.opencontainers.image.ref.name"

# What Go, and so every image, calls the processors that Python names on the left.
ARCHITECTURES = {
    "x86_64": "amd64",
    "aarch64": "arm64",
    "arm64": "arm64",
    "riscv64": "riscv64",
    "s390x": "s390x",
}


@dataclass(frozen=True)
class Entry:
    """One thing in a layer: a file's bytes, a link's target, or a directory (neither)."""

    content: bytes | None = None
    link: str | None = None
    mode: int = 0o755


@dataclass(frozen=True)
class Blob:
    """Bytes that an archive refers to by digest."""

    data: bytes

    @cached_property
    def digest(self) -> str:
        """The name of these bytes: `sha256:` and 64 hexadecimal digits."""
        return "sha256:" + hashlib.sha256(self.data).hexdigest()

    def descriptor(self, media_type: str) -> dict[str, object]:
        """How an index or a manifest points here."""
        return {"mediaType": media_type, "digest": self.digest, "size": len(self.data)}


@dataclass(frozen=True)
class Image:
    """What to pack: a full name with a tag, layers from the bottom up, and what runs by default."""

    name: str
    layers: Sequence[Blob]
    entrypoint: Sequence[str]
    user: str = "0:0"
    environment: Mapping[str, str] = field(default_factory=dict)


def layer(entries: Mapping[str, Entry]) -> Blob:
    """A layer of these relative paths, all owned by root; parents that are not named are made."""
    parents = {str(up) for path in entries for up in Path(path).parents if str(up) != "."}
    complete = {path: Entry() for path in parents} | dict(entries)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(complete):
            _add(tar, path, complete[path])
    return Blob(out.getvalue())


def _add(tar: tarfile.TarFile, path: str, entry: Entry) -> None:
    header = tarfile.TarInfo(path)
    header.mode = entry.mode
    if entry.link is not None:
        header.type, header.linkname = tarfile.SYMTYPE, entry.link
        tar.addfile(header)
    elif entry.content is not None:
        header.size = len(entry.content)
        tar.addfile(header, io.BytesIO(entry.content))
    else:
        header.type = tarfile.DIRTYPE
        tar.addfile(header)


def entries_of_folder(root: Path) -> dict[str, Entry]:
    """Everything below a folder, as `layer` takes it; devices, sockets and owners are left out."""
    entries: dict[str, Entry] = {}
    for folder, directories, files in os.walk(root):
        for name in [*directories, *files]:
            path = Path(folder, name)
            status = path.lstat()
            mode = stat.S_IMODE(status.st_mode)
            key = path.relative_to(root).as_posix()
            if stat.S_ISLNK(status.st_mode):
                entries[key] = Entry(link=str(path.readlink()), mode=0o777)
            elif stat.S_ISDIR(status.st_mode):
                entries[key] = Entry(mode=mode)
            elif stat.S_ISREG(status.st_mode):
                entries[key] = Entry(content=path.read_bytes(), mode=mode)
    return entries


def write_archive(target: Path, images: Iterable[Image]) -> None:
    """Pack images into one archive for `ctr images import`; replaces the target at once or not at all."""
    blobs: dict[str, Blob] = {}
    manifests = []
    for image in images:
        config, manifest = _config(image), _manifest(image)
        blobs |= {blob.digest: blob for blob in (*image.layers, config, manifest)}
        names = {NAME_ANNOTATION: image.name, TAG_ANNOTATION: image.name.rpartition(":")[2]}
        manifests.append(manifest.descriptor(MANIFEST) | {"annotations": names})
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}
    files = {
        f"blobs/{digest.replace(':', '/')}": Entry(blob.data, mode=0o644) for digest, blob in blobs.items()
    }
    files["oci-layout"] = Entry(_json({"imageLayoutVersion": "1.0.0"}), mode=0o644)
    files["index.json"] = Entry(_json(index), mode=0o644)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    temporary.write_bytes(layer(files).data)
    temporary.replace(target)


def _config(image: Image) -> Blob:
    # The layers are not compressed, so their digests are also those of their content.
    config = {
        "created": EPOCH,
        "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": {
            "User": image.user,
            "Env": [f"{name}={value}" for name, value in image.environment.items()],
            "Entrypoint": list(image.entrypoint),
            "WorkingDir": "/",
        },
        "rootfs": {"type": "layers", "diff_ids": [blob.digest for blob in image.layers]},
    }
    return Blob(_json(config))


def _manifest(image: Image) -> Blob:
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": _config(image).descriptor(CONFIG),
        "layers": [blob.descriptor(LAYER) for blob in image.layers],
    }
    return Blob(_json(manifest))


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
