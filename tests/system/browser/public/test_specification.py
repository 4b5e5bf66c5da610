"""The specification's texts on the members' screens (sections 2, 3, 5, 6 and 8), each where a person reads it."""

import re
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qs, urlsplit

from playwright.async_api import Page, expect

from tests.system.browser.conftest import Product, Visitor

NewVisitor = Callable[..., Awaitable[Visitor]]

CHAINS = ["ethereum", "apechain", "polygon", "base", "abstract", "arbitrum", "optimism", "solana"]


def toast(page: Page, title: str, text: str) -> Callable[[], Awaitable[None]]:
    """Wait for a toast with exactly this title and text, and dismiss it."""

    async def seen() -> None:
        region = page.get_by_role("region", name="Notifications")
        await expect(region.get_by_text(title, exact=True)).to_be_visible()
        await expect(region.get_by_text(text, exact=True)).to_be_visible()
        await page.keyboard.press("F8")
        await page.keyboard.press("Escape")
        await expect(region.get_by_text(title, exact=True)).to_be_hidden()

    return seen


async def test_section_2_landing_and_login(reader: Visitor) -> None:
    visitor, page = reader, reader.page
    await visitor.open("/")
    main = page.get_by_role("main")
    start = main.get_by_role("link", name="Login with Discord").first
    await expect(start).to_have_attribute("href", "/api/auth/discord")
    await expect(page.locator("#features .surface")).to_have_count(6)
    await expect(page.get_by_role("contentinfo").get_by_text("Holdfast Labs")).to_contain_text("2025")
    await visitor.open("/login")
    await expect(page.get_by_role("heading", name="Welcome to Holdfast", exact=True)).to_be_visible()
    await expect(main.get_by_role("link", name="Login with Discord")).to_have_attribute("href", "/api/auth/discord")


async def test_section_2_dashboard(product: Product, reader: Visitor) -> None:
    bob = reader
    page = bob.page
    await bob.enter("bob")
    await expect(page.get_by_role("heading", name="Welcome back, bob", exact=True)).to_be_visible()
    main = page.get_by_role("main")
    for name in ("Refresh", "Logout"):
        await expect(main.get_by_role("button", name=name)).to_be_visible()
    for name in ("Total Verifications", "Active Rules", "Connected Servers"):
        await expect(main.get_by_text(name, exact=True)).to_be_visible()
    guild = product.guild("Base Builders")
    card = main.get_by_role("listitem").filter(has_text="Base Builders").filter(has_text="Verification Rules")
    await expect(card.get_by_text(guild["id"])).to_be_visible()
    await expect(card.get_by_text("Active", exact=True)).to_be_visible()
    await expect(card.get_by_text("Verified Members")).to_be_visible()
    await expect(card.get_by_role("button", name="Bot Active")).to_be_disabled()
    href = await card.get_by_role("link", name="Configure").get_attribute("href")
    asked = parse_qs(urlsplit(href or "").query)
    assert urlsplit(href or "").path == "/server-config"
    assert asked["serverId"][0].isdigit()
    assert (asked["discordServerId"], asked["serverName"]) == ([guild["id"]], ["Base Builders"])


async def test_section_2_an_admin_of_nothing_is_told_what_to_do(reader: Visitor) -> None:
    mallory = reader
    page = mallory.page
    await mallory.enter("mallory")
    await expect(page.get_by_text("No servers configured", exact=True)).to_be_visible()
    await expect(page.get_by_role("main").get_by_role("link", name="Invite")).to_be_visible()
    await expect(page.get_by_text("appear", exact=False).filter(has_text="automatically")).to_be_visible()
    await mallory.open("/invite")
    await expect(page.get_by_role("heading", name="No Servers Found", exact=True)).to_be_visible()
    await expect(page.get_by_role("main").get_by_role("button", name="Refresh")).to_be_visible()


async def test_sections_2_and_6_invite(product: Product, reader: Visitor) -> None:
    ada = reader
    page = ada.page
    await ada.enter("ada", "/invite")
    await expect(page.get_by_role("heading", name="Invite HoldfastBot to Your Servers", exact=True)).to_be_visible()
    with_bot = page.get_by_role("listitem").filter(has_text="Base Builders")
    for words in ("Owner", "Admin Access", "HoldfastBot Added"):
        await expect(with_bot.get_by_text(words, exact=True)).to_be_visible()
    icon = page.get_by_role("listitem").filter(has_text="Cool Holders Club").locator("img")
    await expect(icon).to_have_attribute("src", re.compile(r"/icons/\d+/\w+\.png"))
    guild = product.guild("Base Builders")["id"]
    await expect(with_bot.get_by_role("link", name="Configure")).to_have_attribute("href", f"/dashboard?server={guild}")


async def test_sections_2_5_and_8_server_form(reader: Visitor) -> None:
    ada = reader
    page = ada.page
    await ada.enter("ada", "/server-setup")
    number = page.get_by_label("Discord Server ID *")
    assert len(await number.get_attribute("placeholder") or "") == 18
    for name in ("Server Name *", "Server Icon URL", "Description"):
        await expect(page.get_by_label(name)).to_be_visible()
    await expect(page.get_by_role("heading", name="Next Steps")).to_be_visible()
    await expect(page.get_by_role("link", name="Cancel")).to_have_attribute("href", "/dashboard")
    await number.fill("1")
    await page.get_by_role("button", name="Create Server").click()
    await toast(page, "Missing required fields", "Please fill in Discord Server ID and Server Name")()
    await number.fill("123456789012345678")
    await page.get_by_label("Server Name *").fill("Nobody's")
    await page.get_by_role("button", name="Create Server").click()
    await expect(
        page.get_by_role("region", name="Notifications").get_by_text("Failed to create server")
    ).to_be_visible()


async def test_sections_2_4_5_and_8_rule_form(reader: Visitor) -> None:
    bob = reader
    page = bob.page
    await bob.enter("bob")
    await page.get_by_role("link", name="Configure").click()
    await page.get_by_role("link", name="Add Rule").first.click()
    kind, chain = page.get_by_label("Rule Type"), page.get_by_label("Blockchain")
    await expect(kind).to_be_visible()
    values = "all => all.map(one => one.value)"
    # Our own further types come after the four.
    assert (await kind.locator("option").evaluate_all(values))[:4] == ["basic", "trait", "token_id", "any_nft"]
    assert await chain.locator("option").evaluate_all(values) == CHAINS
    await expect(kind).to_have_value("basic")
    await expect(chain).to_have_value("ethereum")
    await expect(page.get_by_label("Minimum Tokens")).to_have_value("1")
    await expect(page.get_by_label("Rule Name", exact=True)).not_to_be_editable()

    await page.get_by_role("button", name="Refresh rule name").click()
    region = page.get_by_role("region", name="Notifications")
    await expect(region.get_by_text("No contract address", exact=True)).to_be_visible()
    await page.get_by_role("button", name="Refresh collection").click()
    await toast(page, "No input", "Enter a contract address or collection URL first")()

    await kind.select_option("token_id")
    await expect(page.get_by_label("Minimum Tokens")).to_have_count(0)
    await kind.select_option("trait")
    await expect(page.get_by_label("Minimum Tokens")).to_be_visible()
    await kind.select_option("any_nft")
    await expect(page.get_by_label("Minimum Tokens")).to_have_count(0)
    await expect(page.get_by_label("Rule Name", exact=True)).to_have_value("Any NFT on Ethereum")
    await page.get_by_role("button", name="Create Rule").click()
    await expect(page.get_by_text("Role is required", exact=True).first).to_be_visible()
    await expect(page.get_by_role("link", name="Cancel")).to_have_attribute("href", await _config(page))


async def _config(page: Page) -> str:
    asked = parse_qs(urlsplit(page.url).query)
    names = ("serverId", "discordServerId", "serverName")
    return "/server-config?" + "&".join(f"{name}={asked[name][0].replace(' ', '+')}" for name in names)


async def test_sections_2_5_and_8_wallets(reader: Visitor) -> None:
    dave = reader
    page = dave.page
    await dave.enter("dave", "/wallet-verification")
    await expect(page.get_by_role("link", name="Back to Dashboard")).to_have_attribute("href", "/dashboard")
    address, method = page.get_by_label("Wallet Address"), page.get_by_label("Verification Method")
    await expect(address).to_have_attribute("placeholder", "0x... or wallet.eth")
    await expect(method).to_have_value("opensea_bio")
    assert await method.locator("option").all_inner_texts() == ["OpenSea Profile Bio", "Transaction Proof"]
    verify, profile = page.get_by_role("button", name="Verify Wallet"), page.get_by_text("Open OpenSea Profile")
    await expect(verify).to_be_disabled()
    await expect(profile).to_be_disabled()
    await expect(page.get_by_text("No verified wallets yet", exact=True)).to_be_visible()
    hint = "Verify your first wallet to start using NFT verification rules"
    await expect(page.get_by_text(hint, exact=True)).to_be_visible()
    await address.fill("nonsense")
    await expect(verify).to_be_enabled()
    await verify.click()
    await expect(page.get_by_role("region", name="Notifications").get_by_text("Verification Failed")).to_be_visible()


async def test_section_2_not_found(reader: Visitor) -> None:
    dave = reader
    await dave.enter("dave", "/nowhere")
    await expect(dave.page.get_by_role("heading", name="404 Page Not Found", exact=True)).to_be_visible()
    told = "The page you're looking for doesn't exist on Holdfast."
    await expect(dave.page.get_by_text(told, exact=True)).to_be_visible()
