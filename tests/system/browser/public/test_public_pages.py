"""The public pages: their texts, titles, audiences and links, without a fault."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import httpx
import pytest
from playwright.async_api import expect

from settings import settings, version
from tests.system.browser.conftest import Product, Visitor
from tests.system.web.conftest import sign_in

NewVisitor = Callable[..., Awaitable[Visitor]]


@dataclass(frozen=True)
class Read:
    """A page, its heading, its title without the product's name, and words that must be on it."""

    path: str
    heading: str
    title: str
    says: tuple[str, ...]


PUBLIC = (
    Read("/features", "Features", "Features", (
        "Automatic role assignment", "checked daily", "Real-time updates", "buy, sell or transfer", "Unlimited rules",
        "Combine several conditions", "Analytics", "Multiple wallets", "Ethereum", "Polygon", "Arbitrum", "Optimism",
        "Base", "ApeChain", "Abstract", "without connecting one", "1. Log in with Discord", "2. Add your server",
        "3. Invite the bot", "4. Configure NFT rules",
    )),
    Read("/help-center", "Help Center", "Help Center", ("Set up your server", "Write your first rule",
        "Verify your wallet", "Manage Server")),
    Read("/contact", "Contact", "Contact", ("Support chat", "What to tell us")),
    Read("/status", "Status", "Status", ("Discord", "OpenSea", "Base", "Daily sweep", f"version {version()}")),
    Read("/privacy-policy", "Privacy Policy", "Privacy Policy", ("8 July 2025", "at least 13 years old")),
    Read("/terms-of-service", "Terms of Service", "Terms of Service", ("8 July 2025", "at least 13 years old")),
)  # fmt: skip


@pytest.mark.parametrize("read", PUBLIC, ids=lambda read: read.path)
async def test_a_visitor_reads_a_public_page(reader: Visitor, read: Read) -> None:
    await reader.open(read.path)
    page = reader.page
    await expect(page.get_by_role("heading", level=1, name=read.heading, exact=True)).to_be_visible()
    await expect(page.get_by_role("banner").get_by_role("link", name="Login with Discord")).to_be_visible()
    assert await page.title() == f"{read.title} · Holdfast"
    for words in read.says:
        await expect(page.get_by_role("main")).to_contain_text(words)


@pytest.mark.parametrize("path", ["/dashboard", "/no-such-page"])
async def test_a_visitor_of_a_members_page_sees_the_landing_page_under_its_own_title(
    visit: NewVisitor, path: str
) -> None:
    visitor = await visit()
    await visitor.open(path)
    await expect(visitor.page).to_have_title("Roles that hold as long as the NFT does · Holdfast")
    await visitor.page.get_by_role("banner").get_by_role("link", name="Features").click()
    await expect(visitor.page).to_have_title("Features · Holdfast")
    await visitor.enter("dave", path)
    await expect(visitor.page).to_have_title(
        "Dashboard · Holdfast" if path == "/dashboard" else "Page not found · Holdfast"
    )


async def test_a_member_reads_the_same_pages_within_their_own_navigation(visit: NewVisitor) -> None:
    dave = await visit()
    first, *_ = PUBLIC
    await dave.enter("dave", first.path)
    for read in PUBLIC:
        if read is not first:
            await dave.follow(read.path)
        await expect(dave.page.get_by_role("heading", level=1, name=read.heading, exact=True)).to_be_visible()
        await expect(dave.page.get_by_role("banner").get_by_role("button", name="Logout")).to_be_visible()


async def test_the_help_center_has_ten_questions_and_three_guides(reader: Visitor) -> None:
    await reader.open("/help-center")
    page = reader.page
    await expect(page.locator(".question")).to_have_count(10)
    await expect(page.locator(".guide")).to_have_count(3)
    answer = page.get_by_text("No. You put a code into your OpenSea profile's bio")
    await expect(answer).to_be_hidden()
    await page.get_by_text("Do I have to connect my wallet?").click()
    await expect(answer).to_be_visible()


@pytest.mark.parametrize("audience", ["visitor", "member"])
async def test_the_support_path_leads_to_the_invite_at_once(product: Product, audience: str) -> None:
    cookies: dict[str, str] = {}
    if audience == "member":
        cookies["hf_session"] = await asyncio.to_thread(sign_in, product.url, "dave")
    async with httpx.AsyncClient(base_url=product.url, cookies=cookies) as browser:
        answer = await browser.get("/discord")
    assert (answer.status_code, answer.headers["location"]) == (302, settings().support_invite)


async def test_the_navigation_leads_everywhere(reader: Visitor) -> None:
    await reader.open("/")
    hrefs = set(await reader.page.locator("a[href]").evaluate_all("all => all.map(a => a.getAttribute('href'))"))
    assert hrefs >= {"/features", "/help-center", "/discord", "/contact", "/privacy-policy", "/terms-of-service"}
    get_started = reader.page.get_by_role("link", name="Get Started")
    await expect(get_started).to_have_attribute("href", "/api/auth/discord")
    await reader.page.get_by_role("navigation", name="Footer").get_by_role("link", name="Privacy Policy").click()
    await expect(reader.page.get_by_role("heading", level=1, name="Privacy Policy")).to_be_visible()
    await reader.page.get_by_role("navigation", name="Main").get_by_role("link", name="Docs").click()
    await expect(reader.page.get_by_role("heading", name="Set up in four steps")).to_be_in_viewport()


async def test_a_members_small_menu_has_verify_wallets(visit: NewVisitor) -> None:
    dave = await visit(viewport={"width": 360, "height": 800})
    await dave.enter("dave")
    page = dave.page
    await expect(page.get_by_role("link", name="Verify Wallets")).to_have_count(0)
    await page.get_by_label("Menu").click()
    await page.get_by_role("link", name="Verify Wallets").focus()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("link", name="Verify Wallets")).to_have_count(0)
    await expect(page.get_by_label("Menu")).to_be_focused()
    await page.keyboard.press("Enter")
    await page.get_by_role("link", name="Verify Wallets").click()
    await expect(page.get_by_role("heading", name="Wallet Verification")).to_be_visible()
    await expect(page.get_by_role("link", name="Verify Wallets")).to_have_count(0)
    for width in (1440, 360):
        await page.set_viewport_size({"width": width, "height": 900})
        assert await page.evaluate("document.documentElement.scrollWidth") <= width, width


async def test_verification_is_the_wallet_screen_too(visit: NewVisitor) -> None:
    dave = await visit()
    for path in ("/verification", "/wallet-verification"):
        await dave.enter("dave", path)
        await expect(dave.page.get_by_role("heading", name="Wallet Verification")).to_be_visible()
        await expect(dave.page.get_by_role("heading", name="Verify New Wallet")).to_be_visible()
