"""Forgets what a process remembers from one test to the next: settings, and what it found out about nodes and tokens.

A later test of the process would get it: settings that a test read in an environment of its own, and the limits of a
node whose port the system has given to another node since.
"""

import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from settings import Settings, settings
from tests.support.plugins.types_of_settings import examine_once

REMEMBERED = {
    "gateways.evm.rpc.node_limits": ("_known", "_news"),
    "gateways.transport.corrected_clock": ("_offsets",),
    "services.holdings.fetch": ("_sorted_until",),
    "services.holdings.trait_choice": ("_failed",),
}
"""The collections in which modules keep what they found out, by module."""

ROOT = Path(__file__).resolve().parents[3]
if gone := [name for name in REMEMBERED if not ROOT.joinpath(*name.split(".")).with_suffix(".py").exists()]:
    raise pytest.UsageError(f"REMEMBERED names what is not there: {gone}")
examine_once()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Empty the settings' cache after a test that filled it while it could change the environment, and the rest."""
    before = _cached()
    done = yield
    if "monkeypatch" in getattr(item, "fixturenames", ()) and _cached() is not before:
        settings.cache_clear()
    for name, kept in REMEMBERED.items():
        if (module := sys.modules.get(name)) is not None:
            for one in kept:
                vars(module)[one].clear()
    return done


def _cached() -> Settings | None:
    return settings() if settings.cache_info().currsize else None
