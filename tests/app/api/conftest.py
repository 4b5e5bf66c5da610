"""What the API's tests share: the product beside the sandbox, and browsers that talk to it."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

import models
from gateways import close_gateways
from gateways.discord import rate_limiter
from services.guilds import permission_cache
from services.runtime import rate_limits
from settings import settings
from tests.app.api.browsers import PUBLIC_URL, Browser


@pytest.fixture(autouse=True)
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product in which one person may ask Discord any number of times, and slow answers are awaited."""
    monkeypatch.setattr(rate_limiter, "PERSON_PER_SECOND", 1000.0)
    monkeypatch.setattr(permission_cache, "FIRST_SECONDS", 60.0)


@pytest.fixture
async def product(database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[None]:
    """The product on this test's own database, for calls without outside requests."""
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    for name in ("PORT", "PUBLIC_URL"):
        monkeypatch.delenv(name, raising=False)
    settings.cache_clear()
    await models.use(database_url)
    yield
    await rate_limits.forget()
    await close_gateways()
    await models.use(None)
    settings.cache_clear()


@pytest.fixture
async def discord(product: None, sandbox_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sandbox's Discord and marketplaces, as the product's outside world."""
    monkeypatch.setenv("SANDBOX_PORT", str(urlsplit(sandbox_url).port))
    settings.cache_clear()
    await close_gateways()


@pytest.fixture
async def new_browser(product: None) -> AsyncIterator[Callable[[], Browser]]:
    """A function that makes browsers without cookies."""
    from app.api import api
    from app.http.hosts import HostGate

    async with AsyncExitStack() as stack:

        def made() -> Browser:
            transport = httpx.ASGITransport(app=HostGate(api))
            client = httpx.AsyncClient(transport=transport, base_url=PUBLIC_URL)
            stack.push_async_callback(client.aclose)
            return Browser(client)

        yield made


@pytest.fixture
def browser(new_browser: Callable[[], Browser]) -> Browser:
    """A browser without cookies."""
    return new_browser()
