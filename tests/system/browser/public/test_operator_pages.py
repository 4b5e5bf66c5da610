"""The operator's help pages: callback URLs to copy, the deployment's health, and no secrets."""

from collections.abc import Awaitable, Callable

import httpx
import pytest
from playwright.async_api import Route, expect

from settings import settings
from tests.system.browser.conftest import Product, Visitor

NewVisitor = Callable[..., Awaitable[Visitor]]

CALLBACK = "/api/auth/discord/callback"
ENVIRONMENT = (
    "DISCORD_CLIENT_ID", "DISCORD_CLIENT_SECRET", "DISCORD_BOT_TOKEN", "SECRET_KEY", "DATABASE_URL", "PUBLIC_URL",
)  # fmt: skip
PAGES = {
    "/oauth-setup": ("Discord OAuth Setup", ("identify", "guilds", "Developer Portal", *ENVIRONMENT)),
    "/oauth-fix": ("Fix Discord OAuth", ("localhost refused to connect", "redirect URL mismatch", *ENVIRONMENT)),
    "/oauth-debug": ("OAuth Debug", ENVIRONMENT),
    "/test-auth": ("Test Authentication", ("Not logged in.", *ENVIRONMENT)),
    "/production-setup": ("Production Setup", ("identify", "guilds", "redirect URL mismatch", *ENVIRONMENT)),
    "/holdfast-setup": ("Holdfast Setup", (
        "Open the Developer Portal", "Select your application", "Go to OAuth2, General", "Clear old redirects",
        "Add both callback URLs", "Save", *ENVIRONMENT,
    )),
    "/deployment-status": ("Deployment Status", ENVIRONMENT),
    "/replit-deployment": ("Replit Deployment", ("/health", CALLBACK, "DNS", "marketing site", "api.example.com")),
}  # fmt: skip
WITH_CALLBACK = {"/oauth-setup", "/oauth-fix", "/oauth-debug", "/test-auth", "/production-setup", "/holdfast-setup"}


@pytest.mark.parametrize("path", PAGES)
async def test_an_operator_reads_a_help_page(reader: Visitor, path: str) -> None:
    heading, says = PAGES[path]
    await reader.open(path)
    page = reader.page
    await expect(page.get_by_role("heading", level=1, name=heading, exact=True)).to_be_visible()
    assert await page.title() == f"{heading} · Holdfast"
    if path in WITH_CALLBACK:
        await expect(page.get_by_text(reader.product.url + CALLBACK).first).to_be_visible()
        await expect(page.get_by_role("button", name="Copy").first).to_be_visible()
        await expect(page.get_by_text("Careful: login uses PUBLIC_URL")).to_have_count(0)
    text = await page.get_by_role("main").text_content() or ""
    assert [words for words in says if words not in text] == []


async def test_the_three_audiences_of_the_route_sets(product: Product, visit: NewVisitor) -> None:
    everybody = ("/features", "/help-center", "/contact", "/privacy-policy", "/terms-of-service", "/test-auth")
    visitors_only = tuple(path for path in PAGES if path != "/test-auth")
    dave = await visit()
    await dave.enter("dave", "/oauth-fix")
    cookies = {one.get("name", ""): one.get("value", "") for one in await dave.context.cookies()}
    async with (
        httpx.AsyncClient(base_url=product.url) as visitor,
        httpx.AsyncClient(base_url=product.url, cookies=cookies) as member,
    ):
        for path in everybody:
            assert ((await visitor.get(path)).status_code, (await member.get(path)).status_code) == (200, 200), path
        for path in (*visitors_only, "/nowhere", "/nowhere/at/all"):
            assert ((await visitor.get(path)).status_code, (await member.get(path)).status_code) == (200, 404), path
    await expect(dave.page.get_by_role("heading", name="404 Page Not Found")).to_be_visible()
    await expect(dave.page.get_by_text("The page you're looking for doesn't exist on Holdfast.")).to_be_visible()
    await expect(dave.page).to_have_title("Page not found · Holdfast")
    await dave.open("/test-auth")
    await expect(dave.page.get_by_text("Logged in as dave.")).to_be_visible()
    stranger = await visit()
    await stranger.open("/nowhere/at/all")
    await expect(stranger.page.get_by_role("link", name="Get Started")).to_be_visible()


async def test_only_the_presence_of_settings_is_told(visit: NewVisitor) -> None:
    visitor = await visit()
    seen: list[str | bytes] = []
    visitor.page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: seen.append(frame)))
    await visitor.open("/oauth-debug")
    rows = visitor.page.get_by_role("main").get_by_role("listitem")
    await expect(rows).to_have_count(len(ENVIRONMENT))
    for name in ENVIRONMENT:
        # The sandbox sets its own key, so none is set here.
        told = "missing" if name == "SECRET_KEY" else "present"
        await expect(rows.filter(has=visitor.page.get_by_text(name, exact=True))).to_contain_text(told)
    told = await visitor.page.content() + "".join(map(str, seen))
    assert "DATABASE_URL" in "".join(map(str, seen))
    for value in ("postgresql", visitor.product.sandbox):
        assert value not in told


async def test_both_callback_urls_are_copied(visit: NewVisitor) -> None:
    visitor = await visit(permissions=["clipboard-read", "clipboard-write"])
    await visitor.open("/holdfast-setup")
    page = visitor.page
    for number, url in enumerate((visitor.product.url + CALLBACK, f"https://staging.holdfast.example{CALLBACK}")):
        await expect(page.get_by_text(url, exact=True)).to_be_visible()
        await page.get_by_role("button", name="Copy", exact=True).nth(number).click()
        await expect(page.get_by_role("button", name="Copied!")).to_be_visible()
        assert await page.evaluate("navigator.clipboard.readText()") == url
        await expect(page.get_by_role("button", name="Copied!")).to_have_count(0)
    login = page.get_by_role("main").get_by_role("link", name="Test Discord Login")
    await expect(login).to_have_attribute("href", "/api/auth/discord")
    home = page.get_by_role("main").get_by_role("link", name="Return to Home")
    await expect(home).to_have_attribute("href", "/")


async def test_the_deployment_page_polls_the_backends_health(visit: NewVisitor) -> None:
    visitor = await visit()
    page = visitor.page
    asked: list[Route] = []

    async def hold(route: Route) -> None:
        asked.append(route)

    await page.route("**/health", hold)
    async with page.expect_request("**/health"):
        await visitor.open("/deployment-status")
    status = page.get_by_role("main").get_by_role("status")
    await expect(status).to_have_text("Checking backend status...")
    await asked[0].fulfill(status=200, json={"status": "healthy"})
    await expect(status).to_have_text("Backend is healthy and running")
    await page.unroute("**/health")
    await page.route("**/health", lambda route: route.fulfill(status=200, json=None))
    async with page.expect_request("**/health"):
        pass
    await expect(status).to_have_text("Backend not accessible")
    items = page.get_by_role("main").get_by_role("list").first.get_by_role("listitem")
    assert [tuple(filter(None, (await item.inner_text()).split("\n")))[::2] for item in await items.all()] == [
        ("Backend API deployment", "in-progress"),
        ("Database configuration", "pending"),
        ("Custom domain setup", "pending"),
        ("Discord OAuth update", "pending"),
    ]
    for name, href in (("Setup Guide", "/holdfast-setup"), ("Return Home", "/")):
        link = page.get_by_role("main").get_by_role("link", name=name)
        await expect(link).to_have_attribute("href", href)
    await expect(page.get_by_role("link", name="Hosting dashboard")).to_have_attribute(
        "href", settings().hosting_dashboard
    )
    await expect(page.get_by_role("link", name="Discord Developer Portal")).to_have_attribute(
        "href", "https://discord.com/developers/applications"
    )


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("?error=auth_failed", "Discord authentication failed."),
        ("?error=anything", "Discord OAuth configuration needs to be updated."),
        ("", "Discord OAuth configuration needs to be updated."),
    ],
)
async def test_the_authentication_error_page_leads_on(reader: Visitor, query: str, sentence: str) -> None:
    await reader.open(f"/oauth-error{query}")
    page = reader.page
    await expect(page.get_by_text(sentence)).to_be_visible()
    main = page.get_by_role("main")
    await expect(main.get_by_role("link", name="Try Again")).to_have_attribute("href", "/api/auth/discord")
    await expect(main.get_by_role("link", name="Back to Home")).to_have_attribute("href", "/")
    await main.locator("a[href='/oauth-fix']").click()
    await expect(page.get_by_role("heading", name="Fix Discord OAuth")).to_be_visible()
