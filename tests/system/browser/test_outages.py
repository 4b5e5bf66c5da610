"""Every screen while something that it needs is away or silent: it shows its data, or says what could not be read.

A second web process reads the running product's database through a wire that can be cut, so that no other test is
disturbed. Outside services fail by the sandbox's faults, which last longer than any wait here. `make fuzz` opens every
screen in every outage; otherwise those that nothing distinguishes from another one are left out.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, expect
from playwright.async_api import Error as PlaywrightError

from sandbox.base.faults import TARGETS
from tests.conftest import free_port
from tests.support.product import Product
from tests.system.browser.conftest import LIGHT, shown_or_tried_again
from tests.system.browser.screens import GUILD, TABS, Screen, for_members, for_visitors
from tests.system.browser.test_every_screen import a_resting_rule
from tests.system.web.conftest import Web, running_web, sign_in

FAULT_SECONDS = 600
AT_ONCE = 8
"""The number of screens opened at the same time."""
LOOKED_EVERY_MS = 200
"""A check reads the whole page; one a frame would keep the processor from the awaited work."""
SHOWN_SECONDS = 40
"""After two seconds of waiting a screen offers a retry; the rest is for a busy machine."""
SAYS_SECONDS = 10
"""A page that is still loading has no text, and would be awaited endlessly."""
CLOSES_SECONDS = 10
"""A page that Chromium does not clear or close remains until its browser ends."""
FORM = "add-verification-rule"
SAID = {"discord": "Discord does not answer", "database": "The database does not answer"}
"""What a form says that cannot be saved without it."""
TARGETS_OF = {
    "discord": ("discord",),
    "marketplaces and nodes": tuple(target for target in TARGETS if target not in {"discord", "gateway"}),
}
OUTAGES = {
    "discord down, the rest slow": (("discord", "down"), ("marketplaces and nodes", "slow")),
    "discord slow, the rest down": (("discord", "slow"), ("marketplaces and nodes", "down")),
    "database down": (("database", "down"),),
    "database slow": (("database", "slow"),),
}
"""Each part is once down and once slow. Most screens need nothing from outside, or only one of these parts."""
FOR_ANYBODY = [one for one in for_visitors() if one.name in {"landing", "login", "oauth-error", "help-center"}]
STATUS = Screen("status", "/status", "Status")
WITHOUT_OUTSIDE = {"server-setup", "features-signed-in", "not-found", *(one.name for one in FOR_ANYBODY)}
"""Screens that read nothing from outside, at most their session from the database."""
OF_ONE_READ = {f"server-config-{tab}" for tab in TABS} - {"server-config-rules", "server-config-members"}
"""Tabs whose server cannot be read without the database, so that all of them show what the other two show."""
OF_NO_READ = {"not-found", "login", "help-center"}
"""Screens that read no more than another one of the same audience."""

# What a person sees: a retry button, or the screen's heading and no placeholders.
SAID_OR_SHOWN = """
heading => {
  const seen = one => one.checkVisibility({visibilityProperty: true, opacityProperty: true});
  const some = (places, text) => [...document.querySelectorAll(places)].some(
    one => seen(one) && one.innerText.toLowerCase().includes(text.toLowerCase()));
  const grey = [...document.querySelectorAll('.skeleton')].some(seen);
  return some('button, a', 'try again') || (some('h1', heading) && !grey);
}
"""
READS = "[...document.querySelectorAll('h1, [role=alert], [role=status]')].map(one => one.innerText).join(' | ')"


@dataclass
class Wire:
    """A wire to a database: open, cut (connections are refused and ended), or silent (no data passes)."""

    target: str
    port: int = 0
    is_cut: bool = False
    passing: asyncio.Event = field(default_factory=asyncio.Event)
    _open: set[asyncio.StreamWriter] = field(default_factory=set[asyncio.StreamWriter])
    _pumps: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Join a connection with one to the database."""
        if self.is_cut:
            writer.transport.abort()
            return
        there_reader, there = await asyncio.open_unix_connection(self.target)
        self._open |= {writer, there}
        for source, goal in ((reader, there), (there_reader, writer)):
            task = asyncio.create_task(self._pump(source, goal))
            self._pumps.add(task)
            task.add_done_callback(self._pumps.discard)

    async def _pump(self, source: asyncio.StreamReader, goal: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65_536):
                await self.passing.wait()
                goal.write(data)
                await goal.drain()
        except OSError:
            pass
        finally:
            goal.transport.abort()
            self._open.discard(goal)

    def fail(self, kind: str) -> None:
        """Cut the wire (`down`) or let it fall silent (`slow`)."""
        if kind == "down":
            self.is_cut = True
            for writer in list(self._open):
                writer.transport.abort()
        else:
            self.passing.clear()

    def mend(self) -> None:
        """Open the wire again."""
        self.is_cut = False
        self.passing.set()


@dataclass(frozen=True)
class Watched:
    """A web process behind a wire, and the screens of an admin on it."""

    product: Product
    web: Web
    wire: Wire
    screens: list[Screen]
    session: str

    def worsen(self, what: str, kind: str) -> None:
        """Start a fault that lasts until `clear`."""
        if what == "database":
            self.wire.fail(kind)
            return
        for target in TARGETS_OF[what]:
            self.product.control("faults", {"target": target, "kind": kind, "seconds": FAULT_SECONDS})

    def clear(self) -> None:
        """End every fault."""
        self.wire.mend()
        self.product.control("faults", method="DELETE")


def socket_of(product: Product) -> str:
    """Return the address of the running product's own database, as a socket."""
    asked = parse_qs(urlsplit(product.database_url).query)
    return str(Path(unquote(asked["host"][0])) / f".s.PGSQL.{asked['port'][0]}")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def watched(product: Product) -> AsyncIterator[Watched]:
    """The second web process, with ada signed in there and a rule in her server."""
    wire = Wire(socket_of(product), free_port())
    wire.mend()
    listening = await asyncio.start_server(wire.accept, "127.0.0.1", wire.port)
    database = f"postgresql+psycopg://holdfast@127.0.0.1:{wire.port}/holdfast"
    more = {"DATA_DIR": str(product.data_dir), **{f"LIMIT_{name}": "100000" for name in ("READS", "SOCKETS", "EVENTS")}}
    async with a_resting_rule(product) as server_id, listening:
        running = running_web(database, product.sandbox, more)
        web = await asyncio.to_thread(running.__enter__)
        try:
            # Discord sends people back only to the running product; both keep their sessions in one database.
            session = await asyncio.to_thread(sign_in, product.url, "ada")
            yield Watched(product, web, wire, [*for_members(product, server_id), STATUS], session)
        finally:
            wire.mend()
            await asyncio.to_thread(running.__exit__, None, None, None)


@asynccontextmanager
async def browser_of(chromium: Browser, watched: Watched, session: str | None) -> AsyncIterator[BrowserContext]:
    """A fresh browser, signed in or not."""
    context = await chromium.new_context(reduced_motion="reduce")
    if session is not None:
        cookie = {"name": "hf_session", "value": session, "url": watched.web.url, "httpOnly": True}
        await context.add_cookies([cookie])  # pyright: ignore[reportArgumentType]
    try:
        yield context
    finally:
        await context.close()


@dataclass
class Tabs:
    """A browser and those of its pages that can be used again: a page costs more than loading a screen in it."""

    context: BrowserContext
    light: str
    """An address of the product without scripts: what is loaded after it is loaded by the same process, for half."""
    free: list[Page] = field(default_factory=list[Page])

    async def take(self) -> Page:
        """Return a page that nobody uses; the next screen is loaded in it as in a new tab."""
        return self.free.pop() if self.free else await self.context.new_page()

    async def give_back(self, page: Page, *, usable: bool) -> None:
        """Keep a page whose screen was shown, but neither its tab's token nor the screen; close any other."""
        if usable:
            with suppress(TimeoutError, PlaywrightError):
                async with asyncio.timeout(CLOSES_SECONDS):
                    # A screen that is still there may load itself again, which would end the loading of the next one.
                    await page.goto(self.light)
                    # By its tab's token the server would find the state of the screen before.
                    await page.evaluate("sessionStorage.clear()")
                    self.free.append(page)
                    return
        # Chromium once did not report that two pages had closed, while all other pages worked.
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSES_SECONDS):
                await page.close()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def tabs(chromium: Browser, watched: Watched) -> AsyncIterator[tuple[Tabs, Tabs]]:
    """The tabs of ada and those of somebody who is not signed in."""
    async with browser_of(chromium, watched, watched.session) as hers, browser_of(chromium, watched, None) as anybodys:
        light = watched.web.url + LIGHT
        yield Tabs(hers, light), Tabs(anybodys, light)


@pytest_asyncio.fixture(loop_scope="session")
async def page(watched: Watched, tabs: tuple[Tabs, Tabs]) -> AsyncIterator[Page]:
    """A tab of ada's; faults are cleared before and after."""
    hers, _ = tabs
    watched.clear()
    page = await hers.take()
    yield page
    watched.clear()
    await hers.give_back(page, usable=True)


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=OUTAGES)
async def lacking(request: pytest.FixtureRequest, watched: Watched, tabs: tuple[Tabs, Tabs]) -> dict[str, str]:
    """Return by name what each screen shows that neither loads nor says what it lacks, in one outage."""
    hers, anybodys = tabs
    visits = [(hers, screen) for screen in watched.screens] + [(anybodys, screen) for screen in FOR_ANYBODY]
    if "EVERY_OUTAGE" not in os.environ:
        alike = OF_ONE_READ | OF_NO_READ if request.param.startswith("database") else WITHOUT_OUTSIDE
        visits = [one for one in visits if one[1].name not in alike]
    watched.clear()
    for what, kind in OUTAGES[request.param]:
        watched.worsen(what, kind)
    try:
        found = await all_of([lambda one=one: grey(one[0], watched, one[1]) for one in visits])
    finally:
        watched.clear()
    return {screen.name: said for (_, screen), said in zip(visits, found, strict=True) if said is not None}


async def grey(tabs: Tabs, watched: Watched, screen: Screen) -> str | None:
    """Open a screen and return None if it loads or says what it lacks, and otherwise what it shows."""
    page, shown = await tabs.take(), False
    try:
        # A screen counts as shown even if a picture comes late.
        await page.goto(watched.web.url + screen.path, wait_until="commit")
        await page.wait_for_function(
            SAID_OR_SHOWN, arg=screen.shows, polling=LOOKED_EVERY_MS, timeout=SHOWN_SECONDS * 1000
        )
        shown = True
    except PlaywrightError as fault:
        return f"{screen.name}: {fault}, {await says(page)}"
    finally:
        await tabs.give_back(page, usable=shown)
    return None


async def says(page: Page) -> str:
    """Return the present text of the page."""
    try:
        async with asyncio.timeout(SAYS_SECONDS):
            return str(await page.evaluate(READS))
    except (TimeoutError, PlaywrightError) as fault:
        return f"nothing ({fault!r})"


async def all_of(made: list[Callable[[], Awaitable[str | None]]]) -> list[str | None]:
    """Return the result of each task, running a few at a time."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(make: Callable[[], Awaitable[str | None]]) -> str | None:
        async with turns:
            return await make()

    return await asyncio.gather(*map(one, made))


async def test_each_screen_shows_what_is_known_or_says_what_could_not_be_read(lacking: dict[str, str]) -> None:
    assert lacking == {}


@pytest.mark.parametrize("kind", ["down", "slow"])
async def test_an_open_server_is_read_on_by_discords_last_answer(page: Page, watched: Watched, kind: str) -> None:
    server = next(screen for screen in watched.screens if screen.name == "server-config-rules")
    await page.goto(watched.web.url + server.path)
    await page.get_by_role("heading", name="Collector by calls").wait_for()
    watched.worsen("discord", kind)
    shown = {
        "Members": page.get_by_label("Search members"),
        "Activity": page.get_by_text("Ada created the rule “Collector by calls”").first,
        "Rules": page.get_by_role("heading", name="Collector by calls"),
    }
    for tab, content in shown.items():
        await page.get_by_role("link", name=tab, exact=True).click()
        await expect(content).to_be_visible()
        await expect(page.locator(".skeleton")).to_have_count(0)


async def test_once_the_database_is_back_try_again_shows_the_screen(page: Page, watched: Watched) -> None:
    server = next(screen for screen in watched.screens if screen.name == "server-config-members")
    watched.worsen("database", "down")
    await page.goto(watched.web.url + server.path)
    again = page.get_by_role("button", name="Try again").or_(page.get_by_role("link", name="Try again")).first
    await expect(again).to_be_visible()
    watched.clear()
    await shown_or_tried_again(page, page.get_by_role("heading", name=GUILD, level=1))
    await expect(page.get_by_label("Search members")).to_be_visible()


async def test_a_form_that_cannot_be_saved_keeps_what_was_filled_in(page: Page, watched: Watched) -> None:
    form = next(screen for screen in watched.screens if screen.name == "server-setup")
    await page.goto(watched.web.url + form.path)
    fields = {"Discord Server ID": "123456789012345678", "Server Name": "A name of mine", "Description": "About it"}
    for name, value in fields.items():
        await page.get_by_label(name).fill(value)
    for what, said in SAID.items():
        watched.worsen(what, "down")
        await page.get_by_role("button", name="Create Server").click()
        await expect(page.get_by_text(said).first).to_be_visible()
        for name, value in fields.items():
            await expect(page.get_by_label(name)).to_have_value(value)
        watched.clear()


async def test_a_rule_that_cannot_be_saved_stays_in_its_form(page: Page, watched: Watched) -> None:
    form = next(screen for screen in watched.screens if screen.name == FORM)
    contract: str = watched.product.world()["chains"]["ethereum"]["collections"][0]["contract"]
    await page.goto(watched.web.url + form.path)
    role = page.get_by_label("Role", exact=True)
    await expect(role.locator("option", has_text="Whale")).to_be_attached()
    await page.get_by_label("Contract Address").fill(contract)
    await expect(page.get_by_label("Rule Name", exact=True)).not_to_have_value("")
    await page.get_by_label("Minimum Tokens").fill("7")
    await role.select_option("Whale")
    await expect(page.get_by_role("heading", name="Members affected")).to_be_visible()
    for what, said in SAID.items():
        watched.worsen(what, "down")
        await page.get_by_role("button", name="Create Rule").click()
        await expect(page.get_by_text(said).first).to_be_visible()
        await expect(page.get_by_role("button", name="Create Rule")).to_be_enabled()
        await expect(page.get_by_label("Contract Address")).to_have_value(contract.lower())
        await expect(page.get_by_label("Minimum Tokens")).to_have_value("7")
        await expect(role.locator("option:checked")).to_have_text("Whale")
        watched.clear()


async def test_documents_come_without_the_database(watched: Watched) -> None:
    cookies = {"hf_session": watched.session}
    for kind in ("down", "slow"):
        watched.worsen("database", kind)
        try:
            async with httpx.AsyncClient(base_url=watched.web.url, cookies=cookies, timeout=60) as visitor:
                paths = ("/", "/features", "/dashboard", "/status")
                *documents, status = await asyncio.gather(*map(visitor.get, (*paths, "/api/status")))
                for path, answer in zip(paths, documents, strict=True):
                    assert (answer.status_code, 'data-audience="member"' in answer.text) == (200, True), (kind, path)
                assert status.status_code == 503
        finally:
            watched.clear()
