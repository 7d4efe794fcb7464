"""Users of the shared cluster."""

from collections.abc import Iterator

import pytest

from tests.compat.user import User
from tests.live.lab import Lab


@pytest.fixture
def user(lab: Lab) -> Iterator[User]:
    """A user with kubectl, a team that nobody else has, and a pool in which nothing starts."""
    yield User(lab)
    # What waits for ever would count for whoever comes next.
    lab.api.delete("/apis/agentjobs.dev/v1alpha1/namespaces/default/agentjobs")
