"""The whole product as an operator starts it, and real browsers in front of it."""

import asyncio
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, async_playwright

from tests.conftest import ROOT, free_port, temporary_dir, wait_for

SWEEP_SECONDS = 5
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
    "--disable-component-update", "--no-first-run", "--no-default-browser-check",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One browser for all tests here, and so one event loop."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@dataclass(frozen=True)
class Product:
    """Where the product and the sandbox beside it answer."""

    url: str
    sandbox: str

    def control(self, path: str, body: dict[str, Any] | None = None, method: str | None = None) -> Any:
        """Ask or tell the sandbox something as its `/control` has it."""
        request = urllib.request.Request(
            f"{self.sandbox}/control/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or b"null")

    def world(self) -> dict[str, Any]:
        """Everything in the sandbox."""
        return self.control("world")

    def wallet(self, username: str) -> str:
        """A person's EVM address."""
        return next(user["wallets"]["evm"] for user in self.world()["users"] if user["username"] == username)

    def roles_of(self, guild: str, username: str) -> set[str]:
        """The names of the roles that a member has."""
        found = next(one for one in self.world()["guilds"] if one["name"] == guild)
        names = {role["id"]: role["name"] for role in found["roles"]}
        user = next(one["id"] for one in self.world()["users"] if one["username"] == username)
        member = next(one for one in found["members"] if one["user_id"] == user)
        return {names[role] for role in member["roles"]}


@pytest.fixture(scope="session")
def product(chromium_path: str) -> Iterator[Product]:
    """The product under its own supervisor: database, sandbox, web, bot and jobs, on ports of its own."""
    port, sandbox_port = free_port(), free_port()
    with temporary_dir() as directory:
        environment = os.environ | {
            "PORT": str(port),
            "SANDBOX_PORT": str(sandbox_port),
            "DATA_DIR": str(directory / "data"),
            "SWEEP_SECONDS": str(SWEEP_SECONDS),
        }
        for name in ("PUBLIC_URL", "DATABASE_URL", "REDIS_URL"):
            environment.pop(name, None)
        log = directory / "product.log"
        subprocess.run([sys.executable, "-m", "app.build"], cwd=ROOT, env=environment, check=True, capture_output=True)
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "app"], cwd=ROOT, env=environment, stdout=output, stderr=output
            )
        try:
            wait_for(f"http://localhost:{port}/health", process, log, 180)
            yield Product(f"http://localhost:{port}", f"http://localhost:{sandbox_port}")
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium(chromium_path: str) -> AsyncIterator[Browser]:
    """One Chromium for all tests here."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium_path, args=list(ARGUMENTS))
        yield browser
        await browser.close()


@dataclass
class Visitor:
    """A browser of somebody's own, with what went wrong in its pages."""

    context: BrowserContext
    page: Page
    product: Product
    faults: list[str]

    async def open(self, path: str) -> None:
        """Go to a path of the product."""
        await self.page.goto(self.product.url + path)

    async def sign_in(self, username: str) -> None:
        """Log in from the landing page by clicks, as a person of the sandbox."""
        await self.open("/")
        await self.page.get_by_role("link", name="Login with Discord").first.click()
        await self.page.get_by_text(f"Authorize as {username}").click()
        await self.page.get_by_role("heading", name=f"Welcome back, {username}").wait_for()


@pytest_asyncio.fixture(loop_scope="session")
async def visit(chromium: Browser, product: Product) -> AsyncIterator[Callable[..., Awaitable[Visitor]]]:
    """Makes a fresh browser; faults in any of its pages fail the test."""
    made: list[Visitor] = []

    async def new(**options: Any) -> Visitor:
        context = await chromium.new_context(**options)
        visitor = Visitor(context, await context.new_page(), product, [])
        context.on("weberror", lambda error: visitor.faults.append(f"{error.error}"))
        context.on(
            "console",
            lambda message: visitor.faults.append(message.text)
            if message.type == "error" and "status of 404" not in message.text
            else None,
        )
        made.append(visitor)
        return visitor

    yield new
    for visitor in made:
        await visitor.context.close()
    assert [fault for visitor in made for fault in visitor.faults] == []


async def eventually(true: Callable[[], bool], seconds: float, what: str) -> float:
    """Wait until something holds and say how long that took; fail with `what` when time is up."""
    began = time.monotonic()
    while not await asyncio.to_thread(true):
        if time.monotonic() - began > seconds:
            pytest.fail(f"Not within {seconds:g} seconds: {what}")
        await asyncio.sleep(0.1)
    return time.monotonic() - began
