"""An admin among many members, by clicks: looking up a member, reading and undoing the log, and a mass removal."""

import csv
import uuid
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from tests.system.browser.conftest import Product, Visitor, eventually
from tests.system.browser.village import Village, village
from tests.system.whole.people import Person, collection, rule, until

NewVisitor = Callable[..., Awaitable[Visitor]]
STRANGER = "0x" + "5e" * 20
HOLDERS = ("ana", "ben", "cyd", "dan", "eva", "fay")


@dataclass(frozen=True)
class Crew:
    """A village whose HOLDERS have proved wallets with a token of `contract` each; zed has proved an empty wallet.

    One rule gives Whale, two others of the same kind give Holder and Collector; each person's token id is
    their place in HOLDERS. `scarce` gives nothing yet: zed and ana can be given tokens of it for Whale.
    """

    product: Product
    here: Village
    server_id: int
    scarce: str
    changeable: dict[str, int]

    def has(self, who: str, role: str) -> bool:
        """Return whether Discord shows the role on the person."""
        return role in self.product.roles_of(self.here.guild, self.here[who])

    def moves(self, token: int, who: str | None) -> None:
        """Mint the scarce token to a person, or move it from ana or zed to a stranger."""
        body = {"contract": self.scarce, "token_id": str(token)}
        if who is not None:
            self.product.control("chains/base/mint", {**body, "to": self.product.wallet(self.here[who])})
        else:
            self.product.control("chains/base/transfer", {**body, "to": STRANGER})

    def name(self, who: str) -> str:
        """Return the name by which screens show a person."""
        return self.here[who].capitalize()


@pytest.fixture(scope="module")
def crew(product: Product) -> Crew:
    """The village with its rules; everybody has the roles that they have earned."""
    here = village(product, "ora", *HOLDERS, "zed")
    contract, scarce = (collection(product, f"{name}-{uuid.uuid4().hex[:6]}") for name in ("Crew", "Scarce"))
    for number, who in enumerate(HOLDERS):
        token = {"contract": contract, "token_id": str(number), "to": product.wallet(here[who])}
        product.control("chains/base/mint", token)
    for who in (*HOLDERS, "zed"):
        with closing(Person(product, here[who])) as person:
            person.prove()
    with closing(Person(product, here["ora"])) as ora:
        server_id = ora.server(here.guild)["internalId"]
        rules = {
            role: ora.post("/api/verification-rules", **rule(product, place, here.guild, role, server_id))["id"]
            for role, place in (("Holder", contract), ("Collector", contract), ("Whale", scarce))
        }
    crew = Crew(product, here, server_id, scarce, rules)
    until(lambda: all(crew.has(who, role) for who in HOLDERS for role in ("Holder", "Collector")))
    return crew


async def configuring(crew: Crew, visit: NewVisitor, tab: str) -> Page:
    """Open a tab of the village's configuration as the owner, and return the page."""
    ora = await visit()
    await ora.enter(crew.here["ora"], f"{crew.here.rules}&tab={tab.lower()}")
    return ora.page


def toast(page: Page, title: str) -> Locator:
    """Return the toast with this title."""
    return page.locator("[data-toast]").filter(has_text=title)


async def test_a_member_is_found_explained_and_checked_again(crew: Crew, visit: NewVisitor) -> None:
    page = await configuring(crew, visit, "Members")
    await expect(page.get_by_text("8 members", exact=True)).to_be_visible()
    search = page.get_by_label("Search members")
    await search.fill("nobody of that name")
    await expect(page.get_by_role("heading", name="Nobody found")).to_be_visible()
    await expect(page.get_by_text("Not every member of the server is in this list.")).to_be_visible()
    await search.fill(crew.here["zed"])
    await expect(page.get_by_text("1 member", exact=True)).to_be_visible()

    row = page.get_by_role("button", name=crew.name("zed"), expanded=False)
    await row.click()
    whale = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="Whale", exact=True)).last
    await expect(whale.get_by_text("Does not have it")).to_be_visible()
    await expect(whale.get_by_text("Holds 0, needs 1")).to_be_visible()
    crew.moves(1, "zed")
    await page.get_by_role("button", name=f"Check {crew.name('zed')} again").click()
    await expect(toast(page, "Checked again")).to_be_visible()
    await expect(whale.get_by_text("Has it, from Holdfast")).to_be_visible()
    await expect(whale.get_by_text("Holds 1, needs 1")).to_be_visible()

    await search.fill("")
    await expect(page.get_by_text("8 members", exact=True)).to_be_visible()
    await page.get_by_role("button", name="Check everybody again").click()
    await expect(page.get_by_role("progressbar", name="Members checked again")).to_be_visible()
    await expect(page.get_by_role("progressbar")).to_be_hidden()
    await expect(page.get_by_role("listitem").filter(has_text=crew.name("ana"))).to_contain_text("Collector")


async def test_the_log_is_filtered_downloaded_and_a_batch_of_removals_undone(
    crew: Crew, visit: NewVisitor, tmp_path: Path
) -> None:
    for token, who in ((11, "ben"), (12, "cyd")):
        crew.moves(token, who)
    await eventually(lambda: crew.has("ben", "Whale") and crew.has("cyd", "Whale"), "ben and cyd have Whale")
    for token in (11, 12):
        crew.moves(token, None)
    await eventually(lambda: not (crew.has("ben", "Whale") or crew.has("cyd", "Whale")), "both lost Whale")

    page = await configuring(crew, visit, "Activity")
    lost = page.get_by_role("listitem").filter(has_text="lost Whale").first
    await expect(lost).to_be_visible()
    await page.get_by_label("What", exact=True).select_option("Rules")
    await expect(page.get_by_role("main").get_by_role("listitem").filter(has_text="created the rule")).to_have_count(3)
    await expect(lost).to_be_hidden()
    await page.get_by_role("button", name="Clear filters").click()
    await page.get_by_label("Role or rule").select_option("Whale")
    await page.get_by_label("Member", exact=True).fill(crew.here["ben"])
    await expect(page.get_by_role("listitem").filter(has_text=f"{crew.name('ben')} lost Whale")).to_be_visible()
    await expect(page.get_by_role("listitem").filter(has_text=crew.name("cyd"))).to_have_count(0)

    link = page.get_by_role("link", name="Download CSV")
    await expect(link).to_have_attribute(
        "href",
        f"/api/servers/{crew.server_id}/events.csv?member={crew.here['ben']}"
        f"&roleId={crew.product.role(crew.here.guild, 'Whale')}",
    )
    async with page.expect_download() as coming:
        await link.click()
    download = await coming.value
    assert download.suggested_filename == f"activity-{crew.server_id}.csv"
    await download.save_as(tmp_path / "log.csv")
    rows = list(csv.DictReader((tmp_path / "log.csv").read_text().splitlines()))
    assert [row["kind"] for row in rows] == ["role.taken", "role.given"]
    assert {row["member"] for row in rows} == {crew.name("ben")}

    await page.get_by_role("button", name="Clear filters").click()
    await expect(lost.get_by_text("and 1 more like this")).to_be_visible()
    await lost.get_by_role("button", name="Undo").click()
    question = page.get_by_role("dialog")
    await expect(question.get_by_text("2 members get Whale back and keep it", exact=False)).to_be_visible()
    await question.get_by_role("button", name="Leave it").click()
    await expect(question).to_be_hidden()
    await lost.get_by_role("button", name="Undo").click()
    await question.get_by_role("button", name="Undo").click()
    await expect(toast(page, "Undone")).to_be_visible()
    await expect(page.get_by_text("undid a removal of Whale: 2 members get it back")).to_be_visible()
    await eventually(lambda: crew.has("ben", "Whale") and crew.has("cyd", "Whale"), "both have Whale again")


async def test_a_mass_removal_waits_for_an_admin_who_approves_one_and_dismisses_the_other(
    crew: Crew, visit: NewVisitor
) -> None:
    page = await configuring(crew, visit, "Rules")
    await page.get_by_role("listitem").filter(has_text="Holder by calls").get_by_role("link", name="Edit").click()
    await page.get_by_label("Minimum Tokens").fill("2")
    await page.get_by_role("button", name="Save Changes").click()
    question = page.get_by_role("dialog")
    await question.get_by_role("button", name="Save", exact=True).click()

    notice = page.get_by_role("region", name="Removals of Holder are held back")
    await expect(notice.get_by_role("heading")).to_have_text("6 of 6 holders would lose Holder within a day")
    await expect(notice.get_by_text("Shortly before: ", exact=False)).to_contain_text("at least 2 tokens")
    await notice.get_by_text("Who would lose Holder", exact=False).click()
    losers = notice.get_by_role("list", name="Members who would lose Holder").get_by_role("listitem")
    await expect(losers).to_have_count(len(HOLDERS))
    await expect(losers.filter(has_text=crew.name("ana"))).to_contain_text("holds 1, needs 2 of")
    assert all(crew.has(who, "Holder") for who in HOLDERS), "nothing is taken before the answer"

    await notice.get_by_role("button", name="Approve").click()
    await expect(question.get_by_text("Holder is taken from 6 members now", exact=False)).to_be_visible()
    await question.get_by_role("button", name="Not now").click()
    await expect(question).to_be_hidden()
    await notice.get_by_role("button", name="Approve").click()
    await question.get_by_role("button", name="Approve removals").click()
    await expect(toast(page, "Removals approved")).to_be_visible()
    await expect(notice).to_be_hidden()
    await eventually(lambda: not any(crew.has(who, "Holder") for who in HOLDERS), "all have lost Holder")

    with closing(Person(crew.product, crew.here["ora"])) as ora:
        changed = ora.client.patch(f"/api/verification-rules/{crew.changeable['Collector']}", json={"minTokens": 2})
        assert changed.is_success, changed.text
    await page.get_by_role("navigation", name="Server configuration").get_by_role("link", name="Health").click()
    notice = page.get_by_role("region", name="Removals of Collector are held back")
    await expect(notice).to_be_visible()
    await notice.get_by_role("button", name="Dismiss").click()
    await expect(question.get_by_text("6 members keep Collector", exact=False)).to_be_visible()
    await question.get_by_role("button", name="Dismiss removals").click()
    await expect(toast(page, "Removals dismissed")).to_be_visible()
    await expect(notice).to_be_hidden()
    assert all(crew.has(who, "Collector") for who in HOLDERS)
