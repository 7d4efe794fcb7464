"""Tells the core what the oracle's world says, and back: the one place where both sets of types meet."""

from __future__ import annotations

from agentjobs.scheduling.fairshare import FairShare
from agentjobs.scheduling.model import Holding, PoolSettings, Reservation, Run, TeamSettings
from agentjobs.scheduling.policies import Policy
from agentjobs.scheduling.pool import Pool
from agentjobs.scheduling.resources import Amounts, Bounds
from tests.unit.scheduling.oracle.world import Held, Job, Promise, World


def to_run(job: Job) -> Run:
    return Run(
        job.uid,
        job.namespace,
        job.team,
        job.weight,
        job.critical,
        job.created,
        job.version,
        Amounts(*job.request),
        job.timeout,
        job.uid,
    )


def to_holding(held: Held) -> Holding:
    """A pod that is not bound has no node yet: where it is likely to go is the pool's own guess."""
    node = held.node if held.bound else None
    return Holding(held.uid, held.team, held.critical, Amounts(*held.request), held.until, node)


def to_settings(world: World) -> PoolSettings:
    nodes = None
    if world.nodes is not None:
        nodes = {name: Amounts(*offer) for name, offer in world.nodes.items()}
    return PoolSettings(
        capacity=Bounds(*world.capacity),
        nodes=nodes,
        share_percent=world.share,
        headroom_percent=world.headroom,
        share_window_seconds=world.window,
        start_timeout_seconds=world.start_timeout,
        on_hold=world.on_hold,
        teams={
            team: TeamSettings(
                owed.weight, Amounts(*owed.guaranteed), Bounds(*owed.limit), Bounds(*owed.critical_limit)
            )
            for team, owed in world.owed.items()
        },
        admitted=world.admitted,
    )


def to_reservation(promise: Promise) -> Reservation:
    return Reservation(*vars(promise).values())


def to_promise(held: Reservation | None) -> Promise | None:
    return None if held is None else Promise(*held)


def new_pool(world: World, policy: Policy | None = None) -> Pool:
    """A pool as a restarted operator builds it from the stored objects."""
    pool = Pool("pool", policy or FairShare())
    if world.exists:
        pool.configure(to_settings(world))
    for team in {**world.served, **world.ended}:
        pool.remember(team, served=world.served.get(team, 0), ended=world.ended.get(team, 0))
    for held in sorted(world.held.values(), key=lambda held: not held.bound):
        pool.hold(to_holding(held))
    for namespace, until in world.closed.items():
        pool.close_namespace(namespace, until)
    for job in world.jobs.values():
        pool.wait(to_run(job), job.not_before)
    if world.promise is not None:
        promise = pool.books.reservation = to_reservation(world.promise)
        pool.promises.made(promise)
        pool.promises.note("Outage")
    return pool
