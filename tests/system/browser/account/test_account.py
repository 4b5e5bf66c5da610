"""The account screen by clicks: the person's account, their sessions, their data, and erasure.

It is part of docs/specification.md#section-2-screens-and-routes.
The same village's dashboard shows what happened, as charts and as tables.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from tests.system.browser.conftest import Product, Visitor, eventually
from tests.system.browser.village import Village, village
from tests.system.whole.people import Person, collection, rule, until

NewVisitor = Callable[..., Awaitable[Visitor]]
ROLE = "Holder"


@dataclass(frozen=True)
class Settled:
    """A village where mia proved her wallet and got a role by olga's rule; `mia` is a client signed in as mia."""

    village: Village
    mia: Person
    address: str

    def has_role(self) -> bool:
        """Return whether Discord shows the role on mia."""
        return ROLE in self.mia.product.roles_of(self.village.guild, self.village["mia"])

    def has_it_from_us(self) -> bool:
        """Return whether the product has also stored that Discord accepted the role: screens and files show that."""
        return any(ROLE in one["roles"] for one in self.mia.get("/api/me/servers"))


def settle(product: Product) -> Settled:
    here = village(product, "olga", "mia")
    address = product.wallet(here["mia"])
    contract = collection(product, here.guild.replace(" ", ""))
    product.control("chains/base/mint", {"contract": contract, "token_id": "1", "to": address})
    olga, mia = Person(product, here["olga"]), Person(product, here["mia"])
    server = olga.server(here.guild)["internalId"]
    olga.post("/api/verification-rules", **rule(product, contract, here.guild, ROLE, server))
    assert mia.prove()["success"]
    olga.close()
    settled = Settled(here, mia, address)
    until(settled.has_it_from_us)
    return settled


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def settled(product: Product) -> AsyncIterator[Settled]:
    """A village where mia has been given the role; at the end of the second test here she is deleted."""
    made = await asyncio.to_thread(settle, product)
    yield made
    made.mia.close()


def card(page: Page, title: str) -> Locator:
    """Return the part of the screen under a heading."""
    heading = page.get_by_role("heading", name=title, exact=True)
    return page.locator("section.surface").filter(has=heading)


async def test_the_dashboard_draws_what_happened_with_the_same_numbers_in_tables(
    settled: Settled, visit: NewVisitor
) -> None:
    olga = await visit()
    await olga.enter(settled.village["olga"])
    page = olga.page
    proved, moved = card(page, "Wallets verified"), card(page, "Roles given and taken")
    await expect(proved.get_by_role("img", name="1 wallet verified in the last 30 days.")).to_be_visible()
    await expect(moved.get_by_role("img", name="1 role given and 0 taken in the last 30 days.")).to_be_visible()
    holders = card(page, "Holders of each rule")
    await expect(holders.get_by_role("img", name=f"{ROLE} by calls: 1 holder now, 0 on")).to_be_visible()
    for days in (7, 90):
        await page.get_by_role("button", name=f"{days} days").click()
        await expect(proved.get_by_role("img", name=f"in the last {days} days")).to_be_visible()
        await expect(proved.locator("tbody tr")).to_have_count(days)
    await moved.get_by_text("Show as a table").click()
    await expect(moved.locator("tbody tr").first.get_by_role("cell")).to_have_text(["1", "0"])
    await holders.get_by_text("Show as a table").click()
    await expect(holders.locator("tbody tr").first.get_by_role("cell").last).to_have_text("1")


async def test_the_account_by_clicks_until_its_end(settled: Settled, visit: NewVisitor) -> None:
    mia = await visit()
    await mia.enter(settled.village["mia"])
    page, guild = mia.page, settled.village.guild
    await page.get_by_role("link", name=f"Account of {settled.village['mia']}").click()
    main = page.get_by_role("main")
    for words in ("Discord Connected", "User ID:", "Discord does not share it", f"Your roles: {ROLE}"):
        await expect(main.get_by_text(words).first).to_be_visible()
    await expect(card(page, "Verification Status").get_by_text("Verified", exact=True)).to_be_visible()

    counts = page.get_by_role("switch", name=f"Use my wallets in {guild}")
    await counts.click()
    await expect(page.get_by_text(f"Your wallets no longer count in {guild}.")).to_be_visible()
    await eventually(lambda: not settled.has_role(), "the role is gone")
    await counts.click()
    await eventually(settled.has_role, "the role is back")
    await eventually(settled.has_it_from_us, "that is stored")

    async with page.expect_download() as download:
        await page.get_by_role("link", name="Download my data").click()
    document = json.loads((await (await download.value).path()).read_text())
    assert [wallet["address"] for wallet in document["wallets"]] == [settled.address.lower()]
    assert [role["role"] for role in document["roles"]] == [ROLE]

    await card(page, "Sessions").get_by_text("1 other session").click()
    await page.get_by_role("button", name="Log out: python-httpx").click()
    await expect(page.get_by_text("That browser is logged out.")).to_be_visible()
    assert settled.mia.client.get("/api/auth/user").status_code == 401

    await page.get_by_role("button", name="Delete my data").click()
    question = page.get_by_role("dialog")
    await expect(question).to_contain_text(f"{ROLE} in {guild} is taken within the next minutes.")
    await page.get_by_role("button", name="Keep my data").click()
    await expect(question).to_have_count(0)
    await page.get_by_role("button", name="Delete my data").click()
    await expect(question.get_by_role("button", name="Delete everything")).to_be_disabled()
    await question.get_by_label("Type delete to confirm").fill("Delete")
    async with page.expect_response("**/api/auth/logout"):
        await question.get_by_role("button", name="Delete everything").click()
    await expect(page.get_by_role("heading", name="Everything about you is deleted")).to_be_visible()
    await expect(page.get_by_role("banner").get_by_role("link", name="Login with Discord")).to_be_visible()
    await expect(page.get_by_text(settled.village["mia"])).to_have_count(0)
    assert await page.evaluate("localStorage.getItem('session-id')") is None
    assert "hf_session" not in {one.get("name") for one in await page.context.cookies()}
    await eventually(lambda: not settled.has_role(), "the role is gone for good")
    await page.get_by_role("button", name="Return to Home").click()
    await expect(page.get_by_role("link", name="Get Started")).to_be_visible()
    assert await page.evaluate("localStorage.getItem('session-id')") is None
    await mia.enter(settled.village["mia"])
    await page.get_by_role("link", name=f"Account of {settled.village['mia']}").click()
    await expect(card(page, "Verification Status").get_by_text("Pending")).to_be_visible()


async def test_signing_out_everywhere_ends_every_tab_and_browser(product: Product, visit: NewVisitor) -> None:
    here = village(product, "sam", bot=False)
    one, other = await visit(), await visit()
    await one.enter(here["sam"])
    await other.enter(here["sam"])
    tab = await one.context.new_page()
    await tab.goto(product.url + "/invite")
    await tab.get_by_role("heading", name="Invite HoldfastBot to Your Servers").wait_for()
    await one.page.get_by_role("link", name=f"Account of {here['sam']}").click()
    await expect(one.page.get_by_text("This session")).to_be_visible()
    await one.page.get_by_text("1 other session").click()
    await expect(one.page.get_by_role("button", name="Log out: Chrome")).to_have_count(2)
    await one.page.get_by_role("button", name="Log out everywhere").click()
    for page in (one.page, tab):
        await expect(page.get_by_role("link", name="Get Started")).to_be_visible()
    await other.page.get_by_role("button", name="Refresh").click()
    await expect(other.page.get_by_role("link", name="Get Started")).to_be_visible()
