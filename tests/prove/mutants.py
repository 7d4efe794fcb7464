"""Mutants of the scheduling core: one change of its syntax tree each, and whether the fast tests notice it.

    python -m tests.prove.mutants [part of a name ...]

What is changed: `changes.py`. The tests are collected once; each mutant lives in a child of that process.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from itertools import zip_longest
from multiprocessing import get_context
from pathlib import Path
from types import CodeType, FunctionType

import pytest
from hypothesis import Phase, settings

from tests.prove.changes import UNCHANGED, Mutant, mutants, tree_of

PACKAGE = "agentjobs.scheduling"
TESTS = Path(__file__).parents[1] / "unit" / "scheduling"
SELECTION = (
    "test_worked_examples",
    "test_rules",
    "test_parking",
    "test_reservation",
    "test_backfill",
    "test_nodes",
    "test_reasons",
    "test_odd_input",
    "test_policy_port",
    "test_guard",
    "test_answers",
    "test_silence",
    "test_explanation",
    "test_promises",
    "test_preview",
    "test_policy_machine",
)
CPU_SECONDS = 10  # a mutant that never ends is noticed too
MEMORY_BYTES = 2 << 30


class Hunt:
    """A plugin of pytest: runs the collected tests for each mutant, each time in a child process of its own.

    Attributes:
        alive: the mutants that no test noticed.
    """

    def __init__(self, chosen: list[Mutant]) -> None:
        self.alive: list[Mutant] = []
        self._chosen = chosen
        self._running: dict[int, Mutant] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for mutant in [UNCHANGED, *self._chosen]:
            while len(self._running) >= (os.cpu_count() or 1):
                self._reap()
            child = os.fork()
            if child == 0:
                noticed = 1
                try:
                    noticed = _try(mutant, session)
                finally:  # whatever comes, the child must not go on as a copy of its parent
                    os._exit(noticed)
            self._running[child] = mutant
        while self._running:
            self._reap()
        return True

    def _reap(self) -> None:
        child, status = os.wait()
        mutant = self._running.pop(child)
        if os.waitstatus_to_exitcode(status) == 0:
            self.alive.append(mutant)
            if mutant is not UNCHANGED:
                print(mutant.name, flush=True)


def _try(mutant: Mutant, session: pytest.Session) -> int:
    """Return 0 where every test passes with a mutant in place."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    _put_in_place(mutant)
    for item, following in zip_longest(session.items, session.items[1:]):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return 1
    return 0


def _put_in_place(mutant: Mutant) -> None:
    """Give the function that a mutant is in the changed code, wherever it is known already."""
    if mutant is UNCHANGED:
        return
    owner: object = import_module(f"{PACKAGE}.{mutant.module}")
    for name in mutant.place.split("."):
        owner = vars(owner)[name]
    function = owner.fget if isinstance(owner, property) else owner
    assert isinstance(function, FunctionType)
    changed = compile(tree_of(mutant), function.__code__.co_filename, "exec")
    function.__code__ = next(code for code in _codes(changed) if code.co_qualname == function.__qualname__)


def _codes(code: CodeType) -> Iterator[CodeType]:
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield part
            yield from _codes(part)


def _hunt(parts: list[str]) -> tuple[int, list[str]]:
    generate = [Phase.explicit, Phase.generate]  # that it fails is enough, the smallest failure costs time
    settings.register_profile(
        "mutants", database=None, derandomize=True, deadline=None, max_examples=60, phases=generate
    )
    hunt = Hunt([m for m in mutants() if not parts or any(part in m.name for part in parts)])
    paths = [str(TESTS / f"{name}.py") for name in SELECTION]
    quiet = ["-q", "-s", "-o", "cache_dir=.local/cache/mutants", "-o", "filterwarnings=ignore"]
    pytest.main([*quiet, "--hypothesis-profile=mutants", *paths], plugins=[hunt])
    if UNCHANGED not in hunt.alive:
        raise RuntimeError("the tests fail with the code as it is; mutants would tell nothing")
    return len(hunt._chosen), [m.name for m in hunt._chosen if m in hunt.alive]


def survivors(parts: list[str] | None = None) -> tuple[int, list[str]]:
    """Return how many mutants there are whose names contain one of the parts, and which of them survive."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as apart:
        return apart.submit(_hunt, parts or []).result()


if __name__ == "__main__":
    everyone, left = survivors(sys.argv[1:])
    print(f"{everyone - len(left)} of {everyone} mutants killed")
