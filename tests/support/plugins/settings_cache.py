"""Forgets settings that a test has read in an environment of its own: a later test of the process would get them."""

from collections.abc import Generator

import pytest

from settings import Settings, settings


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Empty the cache after a test that filled it while it could change the environment."""
    before = _cached()
    done = yield
    if "monkeypatch" in getattr(item, "fixturenames", ()) and _cached() is not before:
        settings.cache_clear()
    return done


def _cached() -> Settings | None:
    return settings() if settings.cache_info().currsize else None
