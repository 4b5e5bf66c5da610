"""Here the run's sandbox is the strict one, whoever asks for it."""

import pytest

from tests.jobs.conftest import engine as engine
from tests.jobs.conftest import product as product
from tests.jobs.conftest import town as town
from tests.jobs.deciding.test_kinds_of_rules import contracts as contracts
from tests.jobs.deciding.test_kinds_of_rules import world as world


@pytest.fixture(scope="session")
def sandbox_url(strict_sandbox_url: str) -> str:
    """The address of the sandbox with the limits of real plans."""
    return strict_sandbox_url
