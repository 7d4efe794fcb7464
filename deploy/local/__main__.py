"""`python -m deploy.local setup|up|down|status`: the commands behind `make`."""

import signal
import sys
import time

from deploy.local import binaries, node, status
from deploy.local.cluster import DEFAULT_STATE
from deploy.local.console import Console
from deploy.local.errors import LocalError
from deploy.local.local import LocalCluster
from deploy.local.options import Options, choose_cluster, choose_node
from deploy.local.record import Record
from deploy.local.versions import GROUPS


def setup(console: Console) -> int:
    """Find, download or build every program, and say where each comes from."""
    Options.read()
    obstacle = node.missing()
    console.say("programs")
    binaries.ensure(console, GROUPS[:2] if obstacle else GROUPS)
    if obstacle:
        console.fact("real node", f"not possible: {obstacle}")
    else:
        with console.phase("real node") as phase:
            node.install_packages(console.say)
            phase.result = "packages are in place"
    return 0


def up(console: Console) -> int:
    """Start the cluster and all that runs in it."""
    began = time.monotonic()
    options = Options.read()
    record = Record.load(DEFAULT_STATE)
    present = record if record and record.complete else None
    cluster = choose_cluster(options.cluster, present.kind if present else None)
    nodes = choose_node(options.node, present.node if present else None)
    console.say("local cluster")
    console.fact("cluster", f"{cluster.value} ({cluster.reason})")
    console.fact("node", f"{nodes.value} ({nodes.reason})")
    instance = LocalCluster(
        node=nodes.value, nodes=options.nodes, slots=options.slots, port=options.port, console=console
    )
    already = instance.up()
    console.say(f"{'already up' if already else 'up'} after {time.monotonic() - began:.1f} s; next:")
    console.say("  . .local/env                        # in each shell: kubectl talks to this cluster")
    console.say("  kubectl apply -f examples/compute/agentjob.yaml && kubectl get agentjobs --watch")
    console.say("  make status                         # what runs; logs are in .local/logs")
    console.say("  make down                           # stop it and remove what it left")
    return 0


def down(console: Console) -> int:
    """Stop everything and remove what it left."""
    console.say("down" if LocalCluster(console=console).down() else "nothing is up")
    return 0


def show_status(console: Console) -> int:
    """Print each component; 1 when one of them is not well, or nothing is up."""
    record = Record.load(DEFAULT_STATE)
    if record is None:
        console.say("nothing is up; start it with: make up")
        return 1
    instance = LocalCluster()
    instance.record = record
    table = status.rows(instance)
    status.show(table)
    if not record.complete:
        console.say("`make up` was interrupted, or is still at work; it may be repeated")
    return 0 if record.complete and all(row.well for row in table) else 1


COMMANDS = {"setup": setup, "up": up, "down": down, "status": show_status}


def main(arguments: list[str]) -> int:
    """Run one command; errors the user can mend are shown without a traceback."""
    if len(arguments) != 1 or arguments[0] not in COMMANDS:
        print(f"usage: python -m deploy.local {'|'.join(COMMANDS)}", file=sys.stderr)
        return 2
    name = arguments[0]
    try:
        return COMMANDS[name](Console())
    except LocalError as error:
        print(f"{name}: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print(
            f"{name}: interrupted; go on with make up, or clean up with make down",
            file=sys.stderr,
        )
        return 128 + signal.SIGINT
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
