"""What runs, where, and whether it is well: the table of `make status`."""

from dataclasses import dataclass

from rich.console import Console as Terminal
from rich.table import Table

from deploy.local import controlplane
from deploy.local.errors import LocalError
from deploy.local.hosted import HostedCluster
from deploy.local.instance import Instance
from deploy.local.local import LocalCluster


@dataclass(frozen=True)
class Row:
    """One component."""

    name: str
    pid: int | None
    health: str
    """`ok`, or what is wrong."""
    where: str = ""

    @property
    def well(self) -> bool:
        """Whether nothing is wrong with it."""
        return self.health == "ok"


def rows(instance: Instance) -> list[Row]:
    """The state of every component."""
    found = []
    if isinstance(instance, LocalCluster):
        found += [_process_row(instance, name) for name in instance.components if name != "operator"]
    elif isinstance(instance, HostedCluster):
        where = instance.record.context or instance.KIND
        found.append(Row("cluster", None, "ok" if instance.answers else "does not answer", where))
    found.append(_nodes_row(instance))
    if instance.record.operator:
        found += _operator_rows(instance)
    return found


def show(table: list[Row]) -> None:
    """Print the table."""
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("COMPONENT", "PID", "HEALTH", "WHERE"):
        grid.add_column(heading, overflow="fold")
    for row in table:
        colour = "green" if row.well else "red"
        grid.add_row(row.name, str(row.pid or "-"), f"[{colour}]{row.health}[/]", row.where)
    Terminal(highlight=False, soft_wrap=True).print(grid)


def _process_row(instance: LocalCluster, name: str) -> Row:
    process = instance.process(name)
    health = "ok" if process else "down"
    where = ""
    if name == "kube-apiserver":
        where = instance.cluster.server
        if process and not controlplane.healthy(instance.cluster):
            health = "does not answer"
    return Row(name, process.pid if process else None, health, where)


def _nodes_row(instance: Instance) -> Row:
    states: list[str] = []
    try:
        answer = instance.kubectl(
            "get",
            "nodes",
            "-o",
            'jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{"\\n"}{end}',
        )
        states = answer.split()
        ready = states.count("True")
        health = "ok" if states and ready == len(states) else f"{ready} of {len(states)} ready"
    except LocalError:
        health = "unknown"
    return Row("nodes", None, health, f"{len(states)} {instance.record.node}")


def _operator_rows(instance: Instance) -> list[Row]:
    operator = instance.operator
    supervisor, process = operator.supervisor(), operator.process()
    health = "ok" if process and operator.ready() else "not ready" if process else "down"
    return [
        Row("operator", process.pid if process else None, health, operator.url),
        Row("supervisor", supervisor.pid if supervisor else None, "ok" if supervisor else "down"),
    ]
