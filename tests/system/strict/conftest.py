"""Fixtures of the jobs' tests for the tests of products in a strict world."""

from tests.jobs.conftest import engine as engine
from tests.jobs.conftest import product as product
from tests.jobs.conftest import town as town
