"""The images of the local node: one for each example agent, and the pause image of the sandboxes."""

from pathlib import Path

from deploy.local import node_packages
from deploy.local.cluster import ROOT
from deploy.local.oci import Blob, Entry, Image, layer, write_archive

EXAMPLES = ROOT / "examples"
PAUSE = "agentjobs.local/pause:dev"
# As in the examples' Dockerfiles.
USER = "10001:10001"
ENVIRONMENT = {"PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
ENTRYPOINT = ["python3", "/agent/agent.py"]
PATH = "/usr/local/bin:/usr/bin:/bin"
# The first process of a sandbox has to wait, reap what is left to it, and end on SIGTERM. A plain
# `sleep` would do neither of the last two as process 1; a shell does, and needs no compiler.
PAUSING = "trap 'exit 0' TERM; while :; do sleep 86400 & wait; done"


def image_name(example: str) -> str:
    """What an AgentJob calls the image of `examples/<example>/`."""
    return f"agentjobs.local/{example}:dev"


def write_examples(target: Path) -> list[str]:
    """Pack every example agent and the pause image into one archive; returns the images' names."""
    base = Blob((node_packages.folder() / "python.tar").read_bytes())
    agents = sorted(EXAMPLES.glob("*/agent.py"))
    images = [pause(), *(agent_image(base, agent) for agent in agents)]
    write_archive(target, images)
    return [image.name for image in images]


def agent_image(base: Blob, agent: Path) -> Image:
    """The image of one example: what its Dockerfile says, on the local Python."""
    return Image(
        name=image_name(agent.parent.name),
        layers=[base, layer({"agent/agent.py": Entry(agent.read_bytes(), mode=0o644)})],
        entrypoint=ENTRYPOINT,
        user=USER,
        environment={"PATH": PATH, **ENVIRONMENT},
    )


def pause() -> Image:
    """The image of a sandbox's first process: a static shell."""
    busybox = (node_packages.folder() / "busybox").read_bytes()
    content = layer({"bin/busybox": Entry(busybox), "bin/sleep": Entry(link="busybox")})
    return Image(
        name=PAUSE,
        layers=[content],
        entrypoint=["/bin/busybox", "sh", "-c", PAUSING],
        user="65535:65535",
        environment={"PATH": "/bin"},
    )
