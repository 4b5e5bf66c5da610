"""Real browsers in front of the whole product."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, WebError, async_playwright, expect

from tests.support.product import Product
from tests.system.browser.contexts import ONE_PROCESS, Contexts, Lent

ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
    "--disable-component-update", "--no-first-run", "--no-default-browser-check", ONE_PROCESS,
)  # fmt: skip

DASHBOARD = "/dashboard"
# No test is about how long things take: on a busy machine what is expected comes late, and it still counts.
expect.set_options(timeout=20_000)
EVENTUALLY_SECONDS = 60


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One browser for all tests here, and so one event loop."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium(chromium_path: str) -> AsyncIterator[Browser]:
    """One Chromium for all tests here."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium_path, args=list(ARGUMENTS))
        yield browser
        await browser.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def contexts(chromium: Browser, product: Product) -> AsyncIterator[Contexts]:
    """The contexts of the product's visitors."""
    contexts = Contexts(chromium, product.url, product.sandbox)
    yield contexts
    await contexts.close()


@dataclass
class Visitor:
    """A browser of somebody's own, with what went wrong in its pages."""

    lent: Lent
    product: Product
    faults: list[str]
    opened: set[str]

    @property
    def context(self) -> BrowserContext:
        """The browser itself; nobody else gets one that a test may have given scripts or permissions."""
        self.lent.is_altered = True
        return self.lent.context

    @property
    def page(self) -> Page:
        """The first page."""
        return self.lent.page

    async def new_page(self) -> Page:
        """Open another page of the same browser."""
        return await self.lent.context.new_page()

    async def cookies(self) -> dict[str, str]:
        """Return the values of all cookies by name."""
        return {one.get("name", ""): one.get("value", "") for one in await self.lent.context.cookies()}

    async def open(self, path: str) -> None:
        """Go to a path of the product."""
        self.opened.add(self.product.url + path)
        await self.page.goto(self.product.url + path)

    def note(self, error: WebError) -> None:
        """Note what a page's script raised."""
        self.faults.append(f"{error.error}")

    def hear(self, message: ConsoleMessage) -> None:
        """Note what a page's console calls an error, but for documents that are not there and say so: the 404 page."""
        missing = "status of 404" in message.text and message.location["url"] in self.opened
        if message.type == "error" and not missing:
            self.faults.append(f"{message.text} {message.location['url']}")

    async def sign_in(self, username: str) -> None:
        """Log in from the landing page by clicks, as a person of the sandbox."""
        await self.open("/")
        await self.page.get_by_role("link", name="Login with Discord").first.click()
        await self.page.get_by_text(f"Authorize as {username}", exact=True).click()
        await self._welcomed(username)

    async def enter(self, username: str, path: str = DASHBOARD) -> None:
        """Come signed in to a path: the calls of a sign-in without its pages, where signing in is not what is shown."""
        browser = {"user-agent": await self.page.evaluate("navigator.userAgent")}
        async with httpx.AsyncClient(base_url=self.product.url, headers=browser, timeout=60) as calls:
            leaves = await calls.get("/api/auth/discord")
            agreed = await calls.get(f"{leaves.headers['location']}&as={username}")
            await calls.get(agreed.headers["location"])
            session = calls.cookies["hf_session"]
        await self.lent.context.add_cookies(
            [{"name": "hf_session", "value": session, "url": self.product.url, "httpOnly": True, "sameSite": "Lax"}]
        )
        await self.open(path)
        if path == DASHBOARD:
            await self._welcomed(username)

    async def _welcomed(self, username: str) -> None:
        await self.page.get_by_role("heading", name=f"Welcome back, {username}").wait_for()


NewVisitor = Callable[..., Awaitable[Visitor]]


@asynccontextmanager
async def visitors(contexts: Contexts, product: Product) -> AsyncIterator[NewVisitor]:
    """Makes empty browsers; faults in any of their pages fail whoever asked for them."""
    made: list[Visitor] = []

    async def new(**options: Any) -> Visitor:
        visitor = Visitor(await contexts.lend(**options), product, [], set())
        visitor.lent.context.on("weberror", visitor.note)
        visitor.lent.context.on("console", visitor.hear)
        made.append(visitor)
        return visitor

    yield new
    for visitor in made:
        await contexts.take_back(visitor.lent)
        visitor.lent.context.remove_listener("weberror", visitor.note)
        visitor.lent.context.remove_listener("console", visitor.hear)
    assert [fault for visitor in made for fault in visitor.faults] == []


@pytest_asyncio.fixture(loop_scope="session")
async def visit(contexts: Contexts, product: Product) -> AsyncIterator[NewVisitor]:
    """Makes an empty browser, which has never been anywhere if `is_new`; faults in any of its pages fail the test."""
    async with visitors(contexts, product) as new:
        yield new


async def eventually(true: Callable[[], bool], what: str) -> None:
    """Wait until something holds; fail with `what` when it does not in a time that is long on a busy machine too."""
    began = time.monotonic()
    while not await asyncio.to_thread(true):
        if time.monotonic() - began > EVENTUALLY_SECONDS:
            pytest.fail(f"Not within {EVENTUALLY_SECONDS} seconds: {what}")
        await asyncio.sleep(0.1)
