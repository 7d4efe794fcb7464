"""Write the CustomResourceDefinitions, or check that what is written agrees with the models.

``python -m agentjobs.apis.crds crds`` writes; with ``--check`` it prints a diff and exits with 1.
"""

import argparse
import difflib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from agentjobs.apis.agentjob import AgentJob
from agentjobs.apis.agentpool import AgentPool
from agentjobs.apis.agentteam import AgentTeam
from agentjobs.apis.names import GROUP, VERSION
from agentjobs.apis.root import Resource
from agentjobs.apis.schema import annotated, published

RESOURCES: tuple[type[Resource], ...] = (AgentJob, AgentTeam, AgentPool)
HEADER = "# Generated from the models in operator/agentjobs/apis by `make manifests`. Do not edit.\n"


def definition(resource: type[Resource]) -> dict[str, Any]:
    """Return the CustomResourceDefinition of a resource."""
    kind = resource.__name__
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": resource.plural,
                "singular": kind.lower(),
                "shortNames": [resource.short_name],
                "categories": ["agents"],
            },
            "versions": [_version(resource)],
        },
    }


def _version(resource: type[Resource]) -> dict[str, Any]:
    version: dict[str, Any] = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            {
                "name": column.name,
                "type": column.type,
                "jsonPath": column.path,
                **({"priority": 1} if column.wide else {}),
            }
            for column in resource.columns
        ],
        "schema": {"openAPIV3Schema": _root_schema(resource)},
    }
    if resource.selectable:
        version["selectableFields"] = [{"jsonPath": path} for path in resource.selectable]
    return version


def _root_schema(resource: type[Resource]) -> dict[str, Any]:
    schema = published(annotated(resource))
    schema["properties"] = {
        "apiVersion": {"type": "string", "description": f"{GROUP}/{VERSION}."},
        "kind": {"type": "string", "description": f"{resource.__name__}."},
        # The API server has its own schema for metadata and takes no other.
        "metadata": {"type": "object"},
        "spec": schema["properties"]["spec"],
        "status": schema["properties"]["status"],
    }
    return schema


def files() -> dict[str, str]:
    """Return the text of every file, by its name."""
    return {
        f"{resource.plural}.yaml": HEADER
        + yaml.safe_dump(definition(resource), sort_keys=False, width=110, allow_unicode=True)
        for resource in RESOURCES
    }


def differences(folder: Path) -> str:
    """Return the unified diff from what is in ``folder`` to what belongs there; empty when they agree."""
    wanted = files()
    found = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.yaml"))}
    return "".join(
        line
        for name in sorted(wanted.keys() | found.keys())
        for line in difflib.unified_diff(
            found.get(name, "").splitlines(keepends=True),
            wanted.get(name, "").splitlines(keepends=True),
            str(folder / name),
            f"{name} from the models",
        )
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m agentjobs.apis.crds", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the YAML files are")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file differs")
    options = parser.parse_args(arguments)
    folder: Path = options.folder
    if options.check:
        if diff := differences(folder):
            print(diff, file=sys.stderr)
            print(f"{folder}/ differs from the models; run: make manifests", file=sys.stderr)
            return 1
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files().items():
        (folder / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
