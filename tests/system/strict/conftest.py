"""What tests of products in a strict world share with those of the jobs."""

from tests.jobs.conftest import engine as engine
from tests.jobs.conftest import product as product
from tests.jobs.conftest import town as town
