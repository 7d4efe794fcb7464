"""The versions of what the local cluster is made of, and how a program tells its own."""

import re
from dataclasses import dataclass

KUBERNETES = "v1.37.2"
ETCD = "v3.7.0"
KWOK = "v0.8.0"
CONTAINERD = "v2.4.2"


@dataclass(frozen=True)
class Program:
    """One program, and which version of it will do."""

    name: str
    group: str
    """Programs of a group are downloaded or built together: kubernetes, kwok, containerd."""
    version: str
    fits: tuple[str, ...]
    """A program of the user's own is taken when its version begins so: `1.37.` takes any patch."""
    question: tuple[str, ...] = ("--version",)
    """The arguments that make it print its version."""


PROGRAMS = (
    Program("etcd", "kubernetes", ETCD, ("3.6.", "3.7.")),
    Program("kube-apiserver", "kubernetes", KUBERNETES, ("1.37.",)),
    Program("kube-controller-manager", "kubernetes", KUBERNETES, ("1.37.",)),
    Program("kube-scheduler", "kubernetes", KUBERNETES, ("1.37.",)),
    Program("kubelet", "kubernetes", KUBERNETES, ("1.37.",)),
    Program("kubectl", "kubernetes", KUBERNETES, ("1.37.",), ("version", "--client")),
    Program("kwok", "kwok", KWOK, ("0.8.",)),
    Program("kwokctl", "kwok", KWOK, ("0.8.",)),
    Program("containerd", "containerd", CONTAINERD, ("2.",)),
    Program("containerd-shim-runc-v2", "containerd", CONTAINERD, ("2.",), ("-v",)),
    Program("ctr", "containerd", CONTAINERD, ("2.",)),
)
GROUPS = ("kubernetes", "kwok", "containerd")


def of_group(group: str) -> tuple[Program, ...]:
    """The programs of one group."""
    return tuple(program for program in PROGRAMS if program.group == group)


def version_in(output: str) -> str | None:
    """The first version number in what a program printed: `1.37.2` of `Kubernetes v1.37.2`."""
    match = re.search(r"\bv?(\d+\.\d+\.\d+)", output)
    return match.group(1) if match else None
