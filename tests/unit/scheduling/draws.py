"""What random histories draw: pools and their settings, teams, requests, and how far the clock moves."""

from __future__ import annotations

from random import Random

from tests.unit.scheduling.oracle.world import NONE, SECOND, ZERO, Bound, Four, Owed, World

TEAMS = ("blue", "red", "gold", "jade")
TIMEOUTS = (30, 60, 120, 300, 600, 1800)
EDITS = (
    "slots",
    "slots",
    "share",
    "headroom",
    "window",
    "start",
    "hold",
    "hold",
    "require",
    "capacity",
    "delete",
)


def shape_pool(random: Random, world: World) -> str:
    """Give a world its pool and some of its teams; return what kind of pool it is."""
    pick = random.choice
    kind = pick(("slots", "slots", "gpus", "gpus", "mixed", "scarce", "nodes", "nodes", "unbounded"))
    if kind == "slots":
        world.capacity = (slots(random), None, None, None)
    elif kind == "gpus":
        world.capacity = (slots(random), None, None, pick((1, 2, 3, 4)))
    elif kind == "mixed":
        world.capacity = (pick((None, slots(random))), pick((4, 8)), pick((None, 4)), pick((None, 2, 4)))
    elif kind == "scarce":  # shares are of CPU, and what is waited for are GPUs
        world.capacity = (12, pick((8, 12, 16)), None, pick((1, 2)))
    elif kind == "nodes":
        world.capacity = (pick((None, 3, 6)), None, None, None)
        world.nodes = {name: node(random) for name in ("n0", "n1", "n2")[: pick((1, 2, 3, 3))]}
    world.window = pick((0, 60, 3600))
    world.share = pick((25, 25, 25, 50))
    world.start_timeout = pick((20, 60, 300))
    for team in TEAMS:
        if random.random() < 0.4:
            world.owed[team] = owed(random)
    return kind


def edit_pool(random: Random, world: World, edit: str) -> None:
    """Edit the settings of a pool: one of EDITS, but for its deletion."""
    pick = random.choice
    if edit == "slots":
        world.capacity = (slots(random), *world.capacity[1:])
    elif edit == "share":
        world.share = pick((0, 25, 50, 100))
    elif edit == "headroom":
        world.headroom = pick((0, 10, 34, 100))
    elif edit == "window":
        world.window = pick((0, 60, 3600))
    elif edit == "start":
        world.start_timeout = pick((20, 60, 300))
    elif edit == "hold":
        world.on_hold = not world.on_hold
    elif edit == "require":
        world.admitted = None if world.admitted is not None else frozenset(TEAMS[: pick((1, 3, 4))])
    elif world.nodes is None:
        world.capacity = (world.capacity[0], *bounds(random, 0.5)[1:])


def slots(random: Random) -> int:
    return random.choice((0, 1, 1, 2, 2, 3, 3, 4, 4, 6, 8))


def node(random: Random) -> Four:
    return (0, random.choice((0, 2, 4)), random.choice((2, 4)), random.choice((0, 1, 2, 4)))


def owed(random: Random) -> Owed:
    pick = random.choice
    guaranteed, limit, critical = ZERO, NONE, NONE
    if random.random() < 0.6:
        guaranteed = (pick((1, 2, 2, 4)), pick((0, 4, 8, 8)), pick((0, 4, 4)), pick((0, 1, 2, 4)))
    if random.random() < 0.4:
        limit = bounds(random, 0.6)
    if random.random() < 0.5:
        critical = (pick((None, 1, 1, 2)), None, None, pick((None, 1)))
    return Owed(pick((1, 1, 1, 2, 3, 1000)), guaranteed, limit, critical)


def bounds(random: Random, chance: float) -> Bound:
    pick = random.choice
    return (
        pick((1, 2, 3)) if random.random() < chance else None,
        pick((2, 4)) if random.random() < chance else None,
        pick((2, 4)) if random.random() < chance / 2 else None,
        pick((1, 2, 3)) if random.random() < chance else None,
    )


def weight(random: Random) -> int:
    """The weight of a class: 0 is critical, then high, default and low."""
    return random.choice((0, 0, 1, 2, 2, 2, 3))


def request(random: Random, kind: str) -> Four:
    """What a run asks for, in a pool of that kind."""
    pick = random.choice
    if kind == "slots":
        return (1, 1, 1, 0)
    return (1, pick((0, 1, 1, 2, 4)), pick((0, 1, 1, 2)), pick((0, 0, 0, 1, 1, 2, 4)))


def span(random: Random, world: World) -> int:
    """How far the clock moves: a little, to where something happens, or far."""
    instants = [held.until for held in world.held.values() if held.until is not None]
    instants += [job.not_before for job in world.jobs.values() if job.not_before]
    if world.promise is not None:
        instants.append(world.promise.before)
    ahead = sorted(instant - world.now for instant in instants if instant > world.now)
    if ahead and random.random() < 0.5:
        return random.choice(ahead) + random.choice((0, 0, 1))
    return random.choice((0, 1, SECOND, 10 * SECOND, 61 * SECOND, 4000 * SECOND))
