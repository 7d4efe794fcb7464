"""`python -m deploy.local setup|up|down|status`: the commands behind `make`."""

import signal
import sys
import time

from agentjobs.errors import SettingsError
from deploy.local import binaries, node, status
from deploy.local.cluster import DEFAULT_STATE
from deploy.local.console import Console
from deploy.local.errors import LocalError
from deploy.local.hosted import CurrentCluster, KindCluster
from deploy.local.instance import Instance
from deploy.local.local import LocalCluster
from deploy.local.options import Options, choose_cluster, choose_node
from deploy.local.record import Record
from deploy.local.versions import GROUPS


def setup(console: Console) -> int:
    """Find, download or build every program, and say where each comes from."""
    obstacle = node.missing()
    console.say("programs")
    binaries.ensure(console, GROUPS[:2] if obstacle else GROUPS)
    if obstacle:
        console.fact("real node", f"not possible here: {obstacle}")
    else:
        with console.phase("packages") as phase:
            node.install_packages(console.say)
            phase.result = "what a real node needs is in place"
    return 0


def up(console: Console) -> int:
    """Start the cluster and all that runs in it, and say what to do next."""
    bring_up(console)
    console.say("next:")
    console.say("  . .local/env                 # in each shell: kubectl talks to this cluster")
    console.say("  kubectl apply -f examples/compute/agentjob.yaml")
    console.say("  kubectl get agentjobs --watch")
    console.say("  make status                  # what runs; the logs are in .local/logs")
    console.say("  make down                    # stop it and remove what it left")
    return 0


def bring_up(console: Console) -> None:
    """Start what the variables ask for, or what is missing of it."""
    began = time.monotonic()
    options = Options.read()
    record = Record.load(DEFAULT_STATE)
    present = record if record and record.complete else None
    cluster = choose_cluster(options.cluster, options.node, present.kind if present else None)
    console.say("local cluster")
    console.fact("cluster", f"{cluster.value} ({cluster.reason})")
    if cluster.value == LocalCluster.KIND:
        nodes = choose_node(options.node, present.node if present else None)
        console.fact("node", f"{nodes.value} ({nodes.reason})")
        options = options.with_node(nodes.value)
    already = instance_of(cluster.value, options, console).up()
    console.say(f"{'was up already' if already else 'up'} after {time.monotonic() - began:.1f} s")


def down(console: Console) -> int:
    """Stop everything and remove what it left."""
    record = Record.load(DEFAULT_STATE)
    instance = instance_of(record.kind if record else LocalCluster.KIND, Options(), console)
    console.say("down" if instance.down() else "nothing is up")
    return 0


def show_status(console: Console) -> int:
    """Print each component; 1 when one of them is not well, or nothing is up."""
    record = Record.load(DEFAULT_STATE)
    if record is None:
        console.say("nothing is up; start it with: make up")
        return 1
    table = status.rows(instance_of(record.kind, Options(), console))
    status.show(table)
    if not record.complete:
        console.say("make up is at work, or was interrupted; then repeat it, or clean up with: make down")
    return 0 if record.complete and all(row.well for row in table) else 1


def instance_of(kind: str, options: Options, console: Console) -> Instance:
    """The user's own cluster of that kind."""
    if kind == KindCluster.KIND:
        return KindCluster(slots=options.slots, console=console)
    if kind == CurrentCluster.KIND:
        return CurrentCluster(slots=options.slots, console=console)
    return LocalCluster(
        node=options.node, nodes=options.nodes, slots=options.slots, port=options.port, console=console
    )


COMMANDS = {"setup": setup, "up": up, "down": down, "status": show_status}


def main(arguments: list[str]) -> int:
    """Run one command; errors the user can mend are shown without a traceback."""
    if len(arguments) != 1 or arguments[0] not in COMMANDS:
        print(f"usage: python -m deploy.local {'|'.join(COMMANDS)}", file=sys.stderr)
        return 2
    name = arguments[0]
    try:
        return COMMANDS[name](Console())
    except (LocalError, SettingsError) as error:
        print(f"{name}: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print(f"{name}: interrupted; repeat it, or clean up with: make down", file=sys.stderr)
        return 128 + signal.SIGINT
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
