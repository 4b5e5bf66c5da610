"""Members who never open the dashboard: everything in the sandbox's console, as in Discord's own client."""

import re
import uuid
from collections.abc import Awaitable, Callable

from playwright.async_api import Locator, Page, expect

from tests.system.browser.barriers import THEMES, grave_faults
from tests.system.browser.conftest import Product, Visitor, eventually
from tests.system.browser.village import Village, village
from tests.system.whole.people import Person, collection, rule

NewVisitor = Callable[..., Awaitable[Visitor]]
STRANGER = "0x" + "5e" * 20
CUT = """
[...document.querySelectorAll('aside, #middle .cards, .card')]
  .filter(box => box.scrollWidth > box.clientWidth)
  .map(box => `${box.tagName} ${box.className}: ${box.scrollWidth - box.clientWidth} px`)
"""
"""The boxes whose contents are wider than they are, which cuts them."""


def address(product: Product, home: Village, who: str, **more: str) -> str:
    """Return the address of a person's view in the console."""
    query = {"as": home[who], "guild": home.guild, **more}
    return f"{product.sandbox}/console?" + "&".join(f"{name}={value}" for name, value in query.items())


async def says(page: Page, command: str) -> None:
    """Type a command and choose the first suggestion."""
    await page.get_by_label("Write a message, or use a command").fill(command)
    await page.keyboard.press("Enter")


def newest(page: Page) -> Locator:
    """Return the last message in the channel."""
    return page.get_by_role("log").get_by_role("listitem").last


def roles(page: Page, username: str) -> Locator:
    """Return the roles that the list of members shows for a person."""
    return page.locator(f"[data-member={username}] .chips")


async def test_a_member_proves_a_wallet_by_the_panel_asks_why_sells_and_learns_it(
    product: Product, visit: NewVisitor
) -> None:
    home = village(product, "ada", "carol")
    contract = collection(product, f"Window-{uuid.uuid4().hex[:6]}")
    wallet = product.wallet(home["carol"])
    product.control("chains/base/mint", {"contract": contract, "token_id": "7", "to": wallet})
    owner = Person(product, home["ada"])
    owner.post(
        "/api/verification-rules",
        **rule(product, contract, home.guild, "Holder", owner.server(home.guild)["internalId"]),
    )
    owner.close()
    ada, carol = (await visit()).page, (await visit()).page
    await carol.goto(address(product, home, "carol"))
    await ada.goto(address(product, home, "ada"))
    await ada.keyboard.press("/")
    await ada.keyboard.type("setup")
    await ada.keyboard.press("Enter")
    await expect(newest(ada)).to_contain_text("The verification channel is ready")
    await expect(newest(ada)).to_contain_text("Only you can see this")

    await says(carol, "/setup")
    await expect(carol.get_by_text("No command begins with that.")).to_be_visible()
    # An admin may show the command to anybody, as in Discord's settings; its effect is still refused.
    await ada.goto(address(product, home, "ada", panel="servers"))
    offer = ada.locator("section", has=ada.get_by_role("heading", name="Who is offered a command"))
    await offer.get_by_label("Command").select_option("setup")
    await offer.get_by_label("To").select_option(label=home["carol"])
    await offer.get_by_role("button", name="Set").click()
    await expect(ada.get_by_role("status")).to_have_text("Done.")
    await carol.reload()
    await says(carol, "/setup")
    refused = "Only members with the permission Manage Server can set up the verification channel."
    await expect(newest(carol)).to_contain_text(refused)
    await carol.get_by_role("link", name="verify").click()
    await carol.get_by_role("button", name="Verify", exact=True).click()
    form = carol.get_by_role("dialog", name="Verify a wallet")
    await form.get_by_label("Wallet address").fill(wallet)
    await form.get_by_role("button", name="Submit").click()
    answer = newest(carol)
    await expect(answer).to_contain_text(f"for you, @{home['carol']}")
    code = re.search(r"holdfast-[a-z0-9]{10}", await answer.inner_text())
    assert code
    await answer.get_by_role("button", name="Check now").click()
    await expect(newest(carol)).to_contain_text("Not there yet")

    tool = await carol.context.new_page()
    await tool.goto(address(product, home, "carol", panel="profiles"))
    await tool.get_by_label(f"OpenSea bio of {home['carol']}").fill(f"Collector of tides. {code[0]}")
    await tool.get_by_role("button", name=f"Save OpenSea profile of {home['carol']}").click()
    await expect(tool.get_by_role("status")).to_have_text("Done.")
    await newest(carol).get_by_role("button", name="Check now").click()
    await expect(carol.get_by_role("log")).to_contain_text("Wallet verified")
    await expect(roles(carol, home["carol"])).to_have_text("Holder")
    await says(carol, "/why")
    await carol.keyboard.press("Enter")
    await expect(newest(carol)).to_contain_text("✅ Holder: you have it")

    await tool.goto(address(product, home, "carol", panel="chains", at="base"))
    sale = tool.locator("section", has=tool.get_by_role("heading", name="Transfer", exact=True))
    await sale.get_by_label("Collection").select_option(contract)
    await sale.get_by_label("Token id").fill("7")
    await sale.get_by_label("To", exact=True).fill(STRANGER)
    await sale.get_by_role("button", name="Transfer").click()
    await expect(tool.get_by_role("status")).to_have_text("Done.")
    await expect(roles(carol, home["carol"])).to_have_count(0)
    await says(carol, "/why")
    await carol.keyboard.press("Enter")
    await expect(newest(carol)).to_contain_text("Since we last met")
    await expect(newest(carol)).to_contain_text("❌ Holder: you do not have it")


async def test_an_answered_question_is_replaced_by_its_answer(product: Product, visit: NewVisitor) -> None:
    home = village(product, "ada", "carol")
    page = (await visit()).page
    await page.goto(address(product, home, "carol"))
    await says(page, "/forget")
    await newest(page).get_by_role("button", name="Keep everything").click()
    # She is unknown to us: nobody has stored anything about her.
    await expect(page.get_by_role("log").get_by_text("Nothing to keep", exact=True)).to_have_count(1)
    await expect(page.get_by_text("Delete everything about you?")).to_have_count(0)
    await expect(page.get_by_role("button", name="Forget me")).to_have_count(0)


async def test_what_happens_elsewhere_is_shown_without_reloading(product: Product, visit: NewVisitor) -> None:
    home = village(product, "ada", "dave")
    page = (await visit()).page
    await page.goto(address(product, home, "ada"))
    colour = "el => getComputedStyle(el).color"
    name = page.locator(f"[data-member={home['dave']}] .name")
    plain = await name.evaluate(colour)
    dave = (await visit()).page
    await dave.goto(address(product, home, "dave"))
    await says(dave, f"Hello @{home['ada']}")
    await expect(newest(page)).to_contain_text(f"Hello @{home['ada'].capitalize()}")
    product.control("members", {"guild": home.guild, "user": home["dave"], "action": "add_role", "role": "Whale"})
    await expect(roles(page, home["dave"])).to_have_text("Whale")
    assert await name.evaluate(colour) != plain
    product.control("guilds", {"guild": home.guild, "action": "kick_bot"})
    await expect(page.get_by_label("Members", exact=True)).not_to_contain_text("HoldfastBot")
    await page.goto(address(product, home, "ada", panel="servers"))
    await page.get_by_role("button", name="Add the bot").click()
    await expect(page.get_by_role("button", name="Kick the bot")).to_be_visible()
    await page.get_by_role("button", name=f"Take Whale from {home['dave']}").click()
    await expect(page.get_by_role("button", name=f"Take Whale from {home['dave']}")).to_have_count(0)
    await expect(page.get_by_role("table")).to_contain_text("took the role Whale")


async def test_it_has_no_barriers_in_either_theme_and_never_scrolls_sideways(
    product: Product, visit: NewVisitor
) -> None:
    home = village(product, "ada", "carol")
    page = (await visit()).page
    command = {"guild": home.guild, "user": home["ada"], "kind": "command"}

    def is_set_up() -> bool:
        # The bot may still be reading the guild that it has just joined, and create the channel after its answer.
        product.control("interactions", {**command, "name": "setup"})
        return any(channel["name"] == "verify" for channel in product.guild(home.guild)["channels"])

    await eventually(is_set_up, "the channel is there")
    # The longest nickname and the longest role that Discord allows, without a space.
    long = {"guild": home.guild, "user": home["carol"], "name": "W" * 32}
    product.control("members", {**long, "action": "rename_nick"})
    product.control("guilds", {"guild": home.guild, "action": "add_role", "name": "R" * 100})
    product.control("members", {**long, "action": "add_role", "role": "R" * 100})
    product.control("interactions", {**command, "name": "rules", "channel": "verify"})
    found: dict[str, list[str]] = {}
    for panel in ("", "servers", "chains", "profiles", "faults"):
        where = {"panel": panel} if panel else {"channel": "verify", "typed": "/"}
        await page.set_viewport_size({"width": 1280, "height": 900})
        await page.goto(address(product, home, "ada", **where))
        for theme, only in THEMES[: 2 if panel in ("", "servers") else 1]:
            await page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            if grave := await grave_faults(page, only=only):
                found[f"{theme} {panel}"] = grave
        for width in (360, 1024):
            await page.set_viewport_size({"width": width, "height": 900})
            wide = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
            if wide > 0:
                found[f"{panel} at {width}"] = [f"{wide} px too wide"]
            if cut := await page.evaluate(CUT):
                found[f"{panel} at {width}, cut"] = cut
    assert found == {}
