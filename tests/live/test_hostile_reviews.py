"""Hostile reviews by one who knows the running operator's secret path: it leads on, and nothing sticks."""

import asyncio
import io
import itertools
import json
import ssl
import threading
from collections import Counter
from datetime import datetime, timedelta
from random import Random

import aiohttp

from tests.live.lab import HOOKS, Lab
from tests.live.support import eventually
from tests.unit.admission import hostile

LEASE = "/apis/coordination.k8s.io/v1/namespaces/agentjobs-system/leases/agentjobs-operator"
REVIEWS, AT_ONCE, SLOW = 1500, 500, 200
RENEWED = timedelta(seconds=3.5)  # after 4.5 the leader would give up


async def attack(url: str, covered: Counter[int]) -> None:
    """Hold connections on which nothing or too little comes, and send 500 reviews at a time beside them."""
    host, _, port = url.removeprefix("https://").partition("/")[0].partition(":")
    prefix = url.rpartition("/")[0]
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    slow = [await asyncio.open_connection(host, int(port)) for _ in range(SLOW // 2)]
    for _ in range(SLOW // 2):
        slow.append(await asyncio.open_connection(host, int(port), ssl=tls))
        slow[-1][1].write(b"POST /secret HTTP/1.1\r\nContent-Le")
    connector = aiohttp.TCPConnector(ssl=tls, limit=AT_ONCE)
    async with aiohttp.ClientSession(connector=connector) as http:

        async def send(seed: int) -> None:
            plural, body = hostile.body(Random(seed))
            async with http.post(f"{prefix}/{plural}", data=io.BytesIO(body)) as answer:
                assert json.loads(await answer.read())
                covered[answer.status] += 1

        await asyncio.gather(*(send(seed) for seed in range(REVIEWS)))
    for _, writer in slow:
        writer.transport.abort()
    await asyncio.gather(*(writer.wait_closed() for _, writer in slow), return_exceptions=True)


def test_hostile_reviews_at_the_running_operator(lab: Lab) -> None:
    pid, lease = lab.cluster.pid("operator"), lab.api.request("GET", LEASE)["spec"]
    hooks = lab.api.request("GET", HOOKS)["webhooks"]
    covered: Counter[int] = Counter()
    url = hooks[0]["clientConfig"]["url"]
    attacker = threading.Thread(target=lambda: asyncio.run(attack(url, covered)))
    attacker.start()
    renewals = {lease["renewTime"]}
    while attacker.is_alive():
        renewals.add(lab.api.request("GET", LEASE)["spec"]["renewTime"])
        attacker.join(0.2)
    assert covered.keys() <= {200, 400, 413}
    assert covered[200] > REVIEWS / 2
    assert lab.cluster.pid("operator") == pid
    after = lab.api.request("GET", LEASE)["spec"]
    assert (after["holderIdentity"], after["leaseTransitions"]) == (
        lease["holderIdentity"],
        lease["leaseTransitions"],
    )
    moments = sorted(map(datetime.fromisoformat, {*renewals, after["renewTime"]}))
    assert max(later - earlier for earlier, later in itertools.pairwise(moments)) < RENEWED
    # None of what was reserved is ever stored: it is looked for, and given up.
    assert eventually(lambda: lab.metric("agentjobs_admission_reservations") == 0)
    pool = lab.pool()
    lab.submit(pool).reaches("SUCCEEDED")
