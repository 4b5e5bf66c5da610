"""What `reflex run` becomes in this repository, and which commands it leaves alone."""

import pytest

from app.supervisor.reflex_run import replacement

REFLEX = "/srv/holdfast/.venv/bin/reflex"


@pytest.mark.parametrize(
    ("typed", "arguments", "added"),
    [
        ([REFLEX, "run"], "--dev", {}),
        ([REFLEX, "run", "--env", "dev"], "--dev", {}),
        ([REFLEX, "run", "--env", "preview"], "--dev", {}),
        ([REFLEX, "run", "--env", "prod"], "--build", {}),
        ([REFLEX, "run", "--env=PROD", "--frontend-port", "4000"], "--build", {"PORT": "4000"}),
        (["/lib/reflex/__main__.py", "run", "--backend-port", "4001"], "--dev", {"PORT": "4001"}),
        ([REFLEX, "run", "--loglevel", "debug"], "--dev", {"LOGLEVEL": "debug"}),
    ],
)
def test_a_reflex_run_becomes_the_supervisor(typed: list[str], arguments: str, added: dict[str, str]) -> None:
    assert replacement(typed, {}) == (["-m", "app", arguments], added)


@pytest.mark.parametrize(
    "typed",
    [
        [],
        [REFLEX, "export"],
        [REFLEX, "run", "--backend-only"],
        [REFLEX, "run", "--frontend-only"],
        [REFLEX, "run", "--frontend-port", "no number"],
        ["/srv/holdfast/.venv/bin/alembic", "run"],
    ],
)
def test_every_other_command_is_left_alone(typed: list[str]) -> None:
    assert replacement(typed, {}) is None


@pytest.mark.parametrize("name", ["HOLDFAST_SUPERVISED", "REFLEX_BACKEND_ONLY", "REFLEX_FRONTEND_ONLY"])
def test_the_supervisors_own_run_and_one_half_are_left_alone(name: str) -> None:
    assert replacement([REFLEX, "run"], {name: "1"}) is None
