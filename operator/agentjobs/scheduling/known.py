"""Which teams a pool knows of: with a run that waits or holds, or whose last one ended within the window."""

from __future__ import annotations

import heapq

from agentjobs.scheduling.books import Books, Team
from agentjobs.scheduling.model import SECOND


class Known:
    """The known teams. While there is only one, it is alone, and shares do not bind it (rule 4).

    Attributes:
        alone: the only known team; None when there are none or several.
        look_again: when a team that has no runs left ceases to be known, if that may change anything.
    """

    def __init__(self) -> None:
        self.alone: str | None = None
        self._teams: set[str] = set()
        self._now = 0
        self._expiries: list[tuple[int, str]] = []

    @property
    def look_again(self) -> int | None:
        return self._expiries[0][0] if self._expiries and len(self._teams) > 1 else None

    def renew(self, books: Books, changed: set[str], now: int) -> set[str]:
        """Take in changed books and the time; return the teams that became alone, or ceased to be."""
        # A clock that went back may bring back teams that were forgotten.
        for name in books.teams if now < self._now else changed:
            self._judge(books, books.teams[name], now)
        self._now = now
        while self._expiries and self._expiries[0][0] <= now:
            self._judge(books, books.teams[heapq.heappop(self._expiries)[1]], now)
        alone = next(iter(self._teams)) if len(self._teams) == 1 else None
        if alone == self.alone:
            return set()
        affected = {team for team in (alone, self.alone) if team is not None}
        self.alone = alone
        return affected

    def _judge(self, books: Books, team: Team, now: int) -> None:
        until = team.last_end + books.settings.share_window_seconds * SECOND
        if team.busy:
            self._teams.add(team.id)
        elif team.last_end and until > now:
            self._teams.add(team.id)
            heapq.heappush(self._expiries, (until, team.id))
        else:
            self._teams.discard(team.id)
