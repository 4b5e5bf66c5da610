"""Real browsers in front of the whole product."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, async_playwright, expect
from playwright.async_api import TimeoutError as PlaywrightTimeoutError

from tests.support.product import Product

OF_PLAYWRIGHT = (
    "AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable", "LensOverlay", "MediaRouter", "PaintHolding", "ThirdPartyStoragePartitioning",
    "AvoidCorsURLLoaderRestartOnRedirect", "OptimizationHints", "NetworkTimeServiceQuerying", "AimEnabled",
    "PreconnectToSearch",
)  # fmt: skip
"""Features that Playwright turns off, repeated here because only the last list counts."""
OF_A_WINDOW = ("WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup", "SpareRendererForSitePerProcess")
"""Pages that Chromium loads for each new window's address bar, and a process that it keeps ready for the next window.

They use as much processor time as the page that a test opens.
"""
# To wake the collector's own threads costs more than they do in pages that live for seconds.
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
    "--disable-component-update", "--no-first-run", "--no-default-browser-check", "--js-flags=--single-threaded-gc",
    f"--disable-features={','.join((*OF_PLAYWRIGHT, *OF_A_WINDOW))}",
)  # fmt: skip

DASHBOARD, LIGHT = "/dashboard", "/robots.txt"
"""A screen, and a file without scripts, after which a screen is loaded by the same process and for half the price."""
# No test here is about durations: on a busy machine an expected event comes late and still counts.
EVENTUALLY_SECONDS = 60
expect.set_options(timeout=EVENTUALLY_SECONDS * 1_000)
PRESSED_WITHIN_MS = 2_000
"""A press of a button that may disappear is given up after this time, to look again."""

# React has taken over the whole page: it compares each text with its own before it marks the element around all.
# A document counts as loaded before its scripts have run.
TAKEN_OVER = """
() => window.__reactRouterDataRouter
  && Object.keys(document.querySelector('main').parentElement).some(name => name.startsWith('__reactFiber'))
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run all tests here in one event loop, with one browser."""
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


@dataclass
class Visitor:
    """A person's own browser, and the faults in its pages."""

    context: BrowserContext
    page: Page
    product: Product
    faults: list[str]
    opened: set[str]

    async def open(self, path: str) -> None:
        """Go to a path of the product."""
        self.opened.add(self.product.url + path)
        await self.page.goto(self.product.url + path)

    async def follow(self, path: str) -> None:
        """Go to another path as by a link of the open page: no document is loaded, which costs four times as much."""
        await self.page.wait_for_function(TAKEN_OVER)
        await self.page.evaluate("path => window.__reactRouterDataRouter.navigate(path)", path)

    def hear(self, message: ConsoleMessage) -> None:
        """Record console errors of a page, except missing documents on the 404 page."""
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
        """Open a path while signed in: the sign-in is done by calls, for tests that are not about it."""
        browser = {"user-agent": await self.page.evaluate("navigator.userAgent")}
        async with httpx.AsyncClient(base_url=self.product.url, headers=browser, timeout=60) as calls:
            leaves = await calls.get("/api/auth/discord")
            agreed = await calls.get(f"{leaves.headers['location']}&as={username}")
            await calls.get(agreed.headers["location"])
            session = calls.cookies["hf_session"]
        await self.context.add_cookies(
            [{"name": "hf_session", "value": session, "url": self.product.url, "httpOnly": True, "sameSite": "Lax"}]
        )
        await self.open(path)
        if path == DASHBOARD:
            await self._welcomed(username)

    async def _welcomed(self, username: str) -> None:
        await self.page.get_by_role("heading", name=f"Welcome back, {username}").wait_for()


NewVisitor = Callable[..., Awaitable[Visitor]]


@asynccontextmanager
async def visitors(chromium: Browser, product: Product) -> AsyncIterator[NewVisitor]:
    """A function that makes fresh browsers; a fault in any of their pages fails the test that asked for them.

    They ask for reduced motion unless told otherwise, because animations are drawn sixty times a second.
    """
    made: list[Visitor] = []

    async def new(**options: Any) -> Visitor:
        context = await chromium.new_context(**{"reduced_motion": "reduce", **options})
        visitor = Visitor(context, await context.new_page(), product, [], set())
        context.on("weberror", lambda error: visitor.faults.append(f"{error.error}"))
        context.on("console", visitor.hear)
        made.append(visitor)
        return visitor

    yield new
    for visitor in made:
        await visitor.context.close()
    assert [fault for visitor in made for fault in visitor.faults] == []


@pytest_asyncio.fixture(loop_scope="session")
async def visit(chromium: Browser, product: Product) -> AsyncIterator[NewVisitor]:
    """A function that makes a fresh browser; a fault in any of its pages fails the test."""
    async with visitors(chromium, product) as new:
        yield new


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def reader(chromium: Browser, product: Product) -> AsyncIterator[Visitor]:
    """A visitor for those tests of a module that only read one page each; a fault in any of them fails the last."""
    async with visitors(chromium, product) as new:
        yield await new()


async def shown_or_tried_again(page: Page, wanted: Locator) -> None:
    """Wait until something shows, and press "Try again" whenever it is offered instead.

    The button disappears when an answer arrives late, even while it is about to be pressed.
    """
    again = page.get_by_role("button", name="Try again").or_(page.get_by_role("link", name="Try again")).first
    async with asyncio.timeout(EVENTUALLY_SECONDS):
        while not await wanted.is_visible():
            await expect(wanted.or_(again).first).to_be_visible()
            with suppress(PlaywrightTimeoutError):
                await again.click(timeout=PRESSED_WITHIN_MS)


async def eventually(true: Callable[[], bool], what: str) -> None:
    """Wait until something holds; fail with `what` after a time that is long even on a busy machine."""
    began = time.monotonic()
    while not await asyncio.to_thread(true):
        if time.monotonic() - began > EVENTUALLY_SECONDS:
            pytest.fail(f"Not within {EVENTUALLY_SECONDS} seconds: {what}")
        await asyncio.sleep(0.1)
