"""Adding a server by hand, and the bot to it, by clicks: the form, the invite list, the dashboard's cards.

See docs/specification.md#section-2-screens-and-routes.
"""

from collections.abc import Awaitable, Callable
from urllib.parse import parse_qs, urlsplit

from playwright.async_api import expect

from tests.system.browser.conftest import Product, Visitor
from tests.system.browser.village import village

NewVisitor = Callable[..., Awaitable[Visitor]]


async def test_a_server_is_added_by_hand_and_gets_the_bot(product: Product, visit: NewVisitor) -> None:
    here, foreign = village(product, "gil", bot=False), village(product, "else", bot=False)
    gil = await visit()
    await gil.enter(here["gil"])
    page = gil.page
    await expect(page.get_by_role("heading", name="No servers configured")).to_be_visible()
    await expect(page.get_by_text("Servers appear here automatically after invitation.")).to_be_visible()
    await expect(page.get_by_text("servers with HoldfastBot", exact=True)).to_be_visible()
    await page.get_by_role("link", name="Add a server by hand").click()
    await expect(page.get_by_role("heading", name="Next Steps")).to_be_visible()
    # As after loading a document: the title is said, and the keyboard goes on from the page's content.
    heard = page.locator("[aria-live=polite]").filter(has_text="Add a server by hand · Holdfast")
    await expect(heard).to_have_count(1)
    await expect(page.get_by_role("main")).to_be_focused()
    await page.get_by_role("link", name="Cancel").click()
    await expect(page).to_have_url(product.url + "/dashboard")
    await page.get_by_role("link", name="Add a server by hand").click()

    number = page.get_by_label("Discord Server ID *")
    await expect(number).to_have_attribute("placeholder", "123456789012345678")
    await number.fill(product.guild(foreign.guild)["id"])
    await page.get_by_label("Server Name *").fill(here.guild)
    await page.get_by_role("button", name="Create Server").click()
    toast = page.locator("[data-toast]")
    await expect(toast).to_contain_text("Failed to create server")
    await expect(toast).to_contain_text("You do not run a Discord server with that ID.")

    await number.fill(product.guild(here.guild)["id"])
    await page.get_by_label("Description").fill("Where gil is at home")
    await page.get_by_role("button", name="Create Server").click()
    await expect(toast).to_contain_text("Server created successfully")
    await expect(toast).to_contain_text(f"{here.guild} is now configured for NFT verification")
    await page.wait_for_url("**/server-config?serverId=*")

    await page.get_by_role("link", name="Dashboard").first.click()
    card = page.get_by_role("listitem").filter(has_text=here.guild)
    await expect(card.get_by_text("Inactive", exact=True)).to_be_visible()
    await expect(card.get_by_text(product.guild(here.guild)["id"])).to_be_visible()
    await expect(card.get_by_role("button", name="Configure")).to_be_disabled()
    await page.set_viewport_size({"width": 360, "height": 800})
    boxes = [await one.bounding_box() for one in (card, page.get_by_role("main").locator("dl").first)]
    assert len({box["width"] for box in boxes if box}) == 1, "the card is no wider than the rest of the page"
    await page.set_viewport_size({"width": 1280, "height": 720})
    async with gil.context.expect_page() as opened:
        await card.get_by_role("button", name="Invite Bot").click()
    discord = await opened.value
    await discord.wait_for_load_state()
    asked = parse_qs(urlsplit(discord.url).query)
    assert asked["permissions"] == ["2416004112"]
    assert set(asked["scope"][0].split()) == {"bot", "applications.commands"}
    await discord.get_by_text(f"Add to {here.guild} as {here['gil']}").click()
    await discord.get_by_text("The bot was added").wait_for()
    await discord.close()
    await expect(card.get_by_text("Active", exact=True)).to_be_visible()
    await expect(card.get_by_role("button", name="Bot Active")).to_be_disabled()
    leads = urlsplit(await card.get_by_role("link", name="Configure").get_attribute("href") or "")
    about = parse_qs(leads.query)
    assert leads.path == "/server-config"
    assert about["serverId"][0].isdigit()
    assert about["discordServerId"] == [product.guild(here.guild)["id"]]
    assert about["serverName"] == [here.guild]


async def test_the_invite_list_says_what_it_does_and_when_it_is_empty(product: Product, visit: NewVisitor) -> None:
    here = village(product, "ivy", "nobody", bot=False)
    ivy, nobody = await visit(), await visit()
    await ivy.enter(here["ivy"])
    await ivy.page.get_by_role("link", name="Add a server").first.click()
    row = ivy.page.get_by_role("listitem").filter(has_text=here.guild)
    await expect(row.get_by_text("Owner", exact=True)).to_be_visible()
    await expect(row.get_by_text("Admin Access", exact=True)).to_be_visible()
    toast = ivy.page.locator("[data-toast]")
    async with ivy.context.expect_page() as opened:
        await row.get_by_role("button", name="Add HoldfastBot").click()
        # The toast goes while a slow page of Discord is opened.
        await expect(toast).to_contain_text(f"Follow the instructions to add HoldfastBot to {here.guild}")
        await expect(toast).to_contain_text("Invite HoldfastBot")
    await (await opened.value).close()

    await nobody.enter(here["nobody"])
    await nobody.page.get_by_role("link", name="Add a server").first.click()
    await expect(nobody.page.get_by_role("heading", name="No Servers Found")).to_be_visible()
    await nobody.page.get_by_role("button", name="Refresh").click()
    await expect(nobody.page.get_by_role("heading", name="No Servers Found")).to_be_visible()
