"""Screen states that have no address of their own, for `make screenshots`.

They are questions, toasts, tooltips, and things that are opened, filled in or empty. Each moment says who sees it and
where it begins, and does what a person would do to get there.
"""

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import urlencode

from playwright.async_api import Page, expect

from tests.support.product import Product
from tests.system.browser.screens import GUILD
from tests.system.whole.people import Person, collection, rule, until

GARDEN, CORNER, ISLAND = "Night Garden", "Bare Rock", "Far Island"
"""The guilds of the moments: one with held-back removals, one with only the bot in it, and one without the bot."""
GARDENERS = ("iris", "jasmine", "linden", "marigold", "rowan", "sorrel")
REMOVALS = "Removals of Collector are held back"
Reach = Callable[[Page], Awaitable[None]]


@dataclass(frozen=True)
class Moment:
    """A moment: who sees it, the path where it begins, and how it is reached.

    `whole` means a picture of the whole page instead of the window.
    """

    name: str
    who: str
    path: str
    reach: Reach
    whole: bool = False


def stage(product: Product, ada: Person) -> dict[str, Person]:
    """Create the guilds, and return the people who see the moments, by the names that `Moment.who` uses."""
    server_id = ada.server(GUILD)["internalId"]
    protected = ada.client.put(
        f"/api/servers/{server_id}/protection/roles/{product.role(GUILD, 'Collector')}", json={"protected": True}
    )
    assert protected.is_success, protected.text
    people = [product.control("people", {"username": name}) for name in ("flora", *GARDENERS)]
    ids = [person["id"] for person in people]
    product.control("guilds", {"action": "create", "guild": GARDEN, "owner": ids[0], "members": ids[1:]})
    product.control("guilds", {"action": "add_bot", "guild": GARDEN})
    contract = collection(product, "Moonflowers")
    for number, name in enumerate(GARDENERS):
        token = {"contract": contract, "token_id": str(number), "to": product.wallet(name)}
        product.control("chains/base/mint", token)
        Person(product, name).prove()
    flora = Person(product, "flora")
    garden = flora.server(GARDEN)["internalId"]
    flora.post("/api/collection/parse", input=contract, blockchain="base")
    payload = rule(product, contract, GARDEN, "Collector", garden) | {"ruleName": "Moonflowers"}
    made = flora.post("/api/verification-rules", **payload)
    until(lambda: all("Collector" in product.roles_of(GARDEN, name) for name in GARDENERS))
    changed = flora.client.patch(f"/api/verification-rules/{made['id']}", json={"minTokens": 2})
    assert changed.is_success, changed.text
    until(lambda: bool(flora.get(f"/api/servers/{garden}/breaker")))

    owner = product.control("people", {"username": "reed"})["id"]
    for guild in (CORNER, ISLAND):
        product.control("guilds", {"action": "create", "guild": guild, "owner": owner, "members": []})
    product.control("guilds", {"action": "add_bot", "guild": CORNER})
    reed = Person(product, "reed")
    reed.post("/api/servers", discordServerId=product.guild(ISLAND)["id"], serverName=ISLAND)
    until(lambda: reed.server(CORNER)["botInvited"])
    newcomer = product.control("people", {"username": f"newcomer{uuid.uuid4().hex[:4]}"})["username"]
    return {"ada": ada, "flora": flora, "reed": reed, "newcomer": Person(product, newcomer)}


def moments(product: Product, cast: dict[str, Person]) -> list[Moment]:
    """Return all moments."""

    def config(who: str, guild: str, tab: str, screen: str = "server-config") -> str:
        server = cast[who].server(guild)
        query = {"serverId": server["internalId"], "discordServerId": server["id"], "serverName": guild, "tab": tab}
        return f"/{screen}?{urlencode(query)}"

    form = config("ada", GUILD, "rules", "add-verification-rule")
    contract = product.world()["chains"]["base"]["collections"][0]["contract"]
    return [
        Moment("dialog-delete-rule", "ada", config("ada", GUILD, "rules"), asks("Delete")),
        Moment("dialog-end-protection", "ada", config("ada", GUILD, "rules"), asks("End the protection of Collector")),
        Moment("dialog-save-rule", "ada", config("ada", GUILD, "rules"), _save_rule),
        Moment("dialog-remove-wallet", "ada", "/wallet-verification", asks("Remove 0x")),
        Moment("dialog-delete-me", "ada", "/account", asks("Delete my data")),
        Moment("dialog-approve", "flora", config("flora", GARDEN, "rules"), asks("Approve the removals of")),
        Moment("dialog-undo", "flora", config("flora", GARDEN, "activity"), asks("Undo")),
        Moment("held-back", "flora", config("flora", GARDEN, "rules"), _who_would_lose, whole=True),
        Moment("held-back-dashboard", "flora", "/dashboard", sees("wait for your decision"), whole=True),
        Moment("toast-error", "ada", "/server-setup", _incomplete),
        Moment("toast-done", "ada", config("ada", GUILD, "members"), _check_again),
        Moment("tooltip", "ada", "/dashboard", _rest_on_bot_active),
        Moment("menu", "ada", "/dashboard", _menu),
        Moment("member-opened", "ada", config("ada", GUILD, "members"), _open_carol, whole=True),
        Moment("rule-form-conditions", "ada", form, conditions(contract), whole=True),
        Moment("rule-form-refused", "ada", form, _refused, whole=True),
        Moment("wallet-transaction", "newcomer", "/wallet-verification", _by_transaction, whole=True),
        Moment("empty-dashboard", "newcomer", "/dashboard", sees("No servers configured"), whole=True),
        Moment("empty-invite", "newcomer", "/invite", sees("No Servers Found"), whole=True),
        Moment("empty-wallets", "newcomer", "/wallet-verification", sees("No verified wallets yet"), whole=True),
        Moment("empty-account", "newcomer", "/account", sees("You are not a member of any server"), whole=True),
        Moment("empty-analytics", "reed", "/dashboard", sees("Verification Rules"), whole=True),
        Moment("empty-rules", "reed", config("reed", CORNER, "rules"), sees("No rules yet"), whole=True),
        Moment("empty-members", "reed", config("reed", ISLAND, "members"), sees("No members known yet"), whole=True),
        Moment("empty-search", "ada", config("ada", GUILD, "members"), _nobody, whole=True),
        Moment("empty-activity", "reed", config("reed", ISLAND, "activity"), _no_activity, whole=True),
        Moment("empty-channel", "reed", config("reed", CORNER, "channel"), sees("No verification"), whole=True),
        Moment("bot-away", "reed", config("reed", ISLAND, "health"), sees("is not in this server, so"), whole=True),
        Moment("missing-server", "reed", "/server-config?serverId=999999", sees("Server not found"), whole=True),
        Moment("missing-rule", "ada", f"{form}&ruleId=999999", sees("Rule not found"), whole=True),
    ]


def sees(text: str) -> Reach:
    """Return how to reach a text that is visible as soon as the page is."""

    async def reach(page: Page) -> None:
        await expect(page.get_by_text(text, exact=False).first).to_be_visible()

    return reach


def asks(name: str) -> Reach:
    """Return how to reach the question that the first button of this name asks, once its lookups have ended."""

    async def reach(page: Page) -> None:
        await page.get_by_role("button", name=name).first.click()
        await _asked(page)

    return reach


async def _asked(page: Page) -> None:
    await expect(page.get_by_role("dialog")).to_be_visible()
    await expect(page.locator("[role=dialog] [aria-busy=true]")).to_have_count(0)


async def _save_rule(page: Page) -> None:
    await page.get_by_role("link", name="Edit").first.click()
    await page.get_by_label("Minimum Tokens").fill("2")
    await page.get_by_role("button", name="Save Changes").click()
    await _asked(page)


async def _who_would_lose(page: Page) -> None:
    await page.get_by_role("region", name=REMOVALS).locator("summary").click()


async def _incomplete(page: Page) -> None:
    await page.get_by_role("button", name="Create Server").click()
    await expect(page.get_by_text("Missing required fields")).to_be_visible()


async def _open_carol(page: Page) -> None:
    await page.get_by_role("button", name="carol", expanded=False).click()
    await expect(page.get_by_role("heading", name="Collector", exact=True).last).to_be_visible()


async def _check_again(page: Page) -> None:
    await _open_carol(page)
    await page.get_by_role("button", name="Check Carol again").click()
    await expect(page.get_by_text("Checked again")).to_be_visible()


async def _rest_on_bot_active(page: Page) -> None:
    await page.get_by_role("button", name="Bot Active").first.hover(force=True)
    await expect(page.get_by_role("tooltip")).to_be_visible()


async def _menu(page: Page) -> None:
    menu = page.get_by_label("Menu", exact=True)
    if await menu.is_visible():
        await menu.click()


def conditions(contract: str) -> Reach:
    """Return how to reach a form with one complete condition and one on token ids that is half filled in."""

    async def reach(page: Page) -> None:
        await page.get_by_label("Blockchain").select_option("base")
        await page.get_by_label("Contract Address").fill(contract)
        await page.get_by_label("Role", exact=True).select_option("Collector")
        await expect(page.get_by_label("Rule Name", exact=True)).not_to_have_value("")
        await page.get_by_role("button", name="Add another condition").click()
        # Until then the fields are those of the first condition.
        await expect(page.get_by_role("heading", name="Condition 2")).to_be_visible()
        await page.get_by_label("Rule Type").select_option("token_id")
        await page.get_by_label("Blockchain").select_option("base")
        await page.get_by_label("Contract Address").fill(contract)
        entry = page.get_by_role("textbox", name="Token IDs")
        for ids in ("7", "100-200", "31337"):
            await entry.fill(ids)
            await entry.press("Enter")
            await expect(page.get_by_role("button", name=f"Remove {ids}")).to_be_visible()
        await expect(page.get_by_text("Gain", exact=True)).to_be_visible()
        await expect(page.locator("main [aria-busy=true]")).to_have_count(0)

    return reach


async def _refused(page: Page) -> None:
    await page.get_by_role("button", name="Create Rule").click()
    await expect(page.get_by_role("alert").filter(has_text="required").first).to_be_visible()


async def _by_transaction(page: Page) -> None:
    await page.get_by_label("Wallet Address").fill("0x" + "5e" * 20)
    await page.get_by_label("Verification Method").select_option("transaction")
    await expect(page.get_by_text("Send", exact=False).first).to_be_visible()


async def _no_activity(page: Page) -> None:
    await page.get_by_label("Member").fill("nobody of that name")
    await expect(page.get_by_role("heading", name="Nothing found")).to_be_visible()


async def _nobody(page: Page) -> None:
    await page.get_by_label("Search members").fill("nobody of that name")
    await expect(page.get_by_role("heading", name="Nobody found")).to_be_visible()
