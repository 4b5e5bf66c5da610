"""Sessions in a browser: a cookie, with a copy of the id in local storage that follows it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import httpx
from playwright.async_api import TimeoutError as PlaywrightTimeoutError
from playwright.async_api import expect

from tests.system.browser.conftest import LIGHT, PRESSED_WITHIN_MS, Product, Visitor
from tests.system.browser.village import base_builders
from tests.system.web.conftest import sign_in

STORED = "localStorage.getItem('session-id')"
NewVisitor = Callable[..., Awaitable[Visitor]]


async def cookie_of(visitor: Visitor) -> str:
    return next(one.get("value", "") for one in await visitor.context.cookies() if one.get("name") == "hf_session")


async def stored_in(visitor: Visitor, value: str | None) -> None:
    await visitor.page.wait_for_function(f"value => {STORED} === value", arg=value)


async def test_a_foreign_link_signs_nobody_in(product: Product, visit: NewVisitor) -> None:
    stranger, adas = await visit(), await asyncio.to_thread(sign_in, product.url, "ada")
    await stranger.open(f"/dashboard?session={adas}&server=1")
    await stranger.page.wait_for_url("**/dashboard?server=1")
    await expect(stranger.page.get_by_role("link", name="Get Started")).to_be_visible()
    await stored_in(stranger, None)


async def test_a_foreign_link_changes_nothing_for_somebody_signed_in(product: Product, visit: NewVisitor) -> None:
    bob, adas = await visit(), await asyncio.to_thread(sign_in, product.url, "ada")
    await bob.enter("bob")
    await bob.open(f"/dashboard?session={adas}")
    await bob.page.wait_for_url("**/dashboard")
    await expect(bob.page.get_by_role("heading", name="Welcome back, bob")).to_be_visible()
    await stored_in(bob, await cookie_of(bob))


async def test_the_stored_id_follows_the_cookie(visit: NewVisitor) -> None:
    ada = await visit()
    await ada.enter("ada")
    await stored_in(ada, await cookie_of(ada))
    for damage in ("localStorage.removeItem('session-id')", "localStorage.setItem('session-id', 'foreign')"):
        await ada.page.evaluate(damage)
        await ada.page.reload()
        await stored_in(ada, await cookie_of(ada))
    await ada.context.clear_cookies()
    await ada.page.reload()
    await expect(ada.page.get_by_role("link", name="Get Started")).to_be_visible()
    await stored_in(ada, None)


async def test_logging_out_in_one_tab_ends_the_other(visit: NewVisitor) -> None:
    ada = await visit()
    await ada.enter("ada")
    await stored_in(ada, await cookie_of(ada))
    other = await ada.context.new_page()
    await other.goto(ada.product.url + "/wallet-verification")
    await other.get_by_role("heading", name="Wallet Verification").wait_for()
    await ada.page.get_by_role("button", name="Logout").click()
    await ada.page.get_by_role("link", name="Get Started").wait_for()
    await other.get_by_role("link", name="Get Started").wait_for()
    await stored_in(ada, None)


async def test_signing_in_keeps_the_id_cleans_the_address_and_leads_an_open_landing_page_to_the_dashboard(
    visit: NewVisitor,
) -> None:
    ada = await visit()
    await ada.open("/")
    await ada.page.get_by_role("link", name="Get Started").wait_for()
    # Whether the status text is visible between the session's message and the reload.
    await ada.page.evaluate(
        "addEventListener('pagehide', () => "
        "localStorage.setItem('said', document.querySelector('main [role=status]').checkVisibility()))"
    )
    other = await ada.context.new_page()
    await other.goto(ada.product.url + "/")
    await other.get_by_role("link", name="Login with Discord").first.click()
    await other.get_by_text("Authorize as ada", exact=True).click()
    await other.get_by_role("heading", name="Welcome back, ada").wait_for()
    await stored_in(ada, await cookie_of(ada))
    assert "session" not in other.url
    await ada.page.get_by_role("heading", name="Welcome back, ada").wait_for()
    assert await ada.page.evaluate("localStorage.getItem('said')") == "true"


async def test_a_session_that_ended_elsewhere_shows_the_screens_own_signed_out_view(visit: NewVisitor) -> None:
    dave = await visit()
    await dave.enter("dave", "/wallet-verification")
    await dave.page.get_by_text("No verified wallets yet").wait_for()
    headers = {"x-session-id": await cookie_of(dave)}
    async with httpx.AsyncClient() as program:
        answer = await program.post(dave.product.url + "/api/auth/logout", headers=headers)
    assert answer.status_code == 200
    await dave.page.get_by_label("Wallet Address").fill("0x" + "12" * 20)
    await expect(dave.page.get_by_role("heading", name="Please log in")).to_be_visible()
    await dave.page.get_by_role("link", name="Go to Login").click()
    await expect(dave.page.get_by_role("heading", name="Welcome to Holdfast")).to_be_visible()


async def test_a_screen_loaded_after_the_session_ended_says_so_and_one_after_the_accounts_logout_does_not(
    visit: NewVisitor,
) -> None:
    ada = await visit()
    said = ada.page.get_by_text("Your session has ended. Log in again to continue.")
    for path in ("/dashboard", "/server-config?serverId=1"):
        await ada.enter("ada", "/features")
        await stored_in(ada, await cookie_of(ada))
        # An open screen that reads itself again would notice the end, and load itself a moment before the test does.
        await ada.open(LIGHT)
        async with httpx.AsyncClient() as program:
            await program.post(ada.product.url + "/api/auth/logout", headers={"x-session-id": await cookie_of(ada)})
        await ada.open(path)
        await expect(ada.page.get_by_role("link", name="Get Started")).to_be_visible()
        await expect(said).to_be_visible()
    await ada.enter("ada", "/account")
    await ada.page.get_by_role("link", name="Logout").click()
    await expect(ada.page.get_by_role("link", name="Get Started")).to_be_visible()
    await stored_in(ada, None)
    await expect(said).to_have_count(0)


async def test_a_session_that_ends_in_the_rule_form_says_that_the_rule_is_not_saved(visit: NewVisitor) -> None:
    ada = await visit()
    await ada.enter("ada", base_builders(ada.product).form)
    await expect(ada.page).to_have_title("Add verification rule · Holdfast")
    await ada.page.get_by_label("Minimum Tokens").wait_for()
    async with httpx.AsyncClient() as program:
        await program.post(ada.product.url + "/api/auth/logout", headers={"x-session-id": await cookie_of(ada)})
    await ada.page.get_by_label("Minimum Tokens").fill("7")
    await expect(ada.page.get_by_text("Your session has ended, and this rule is not saved.")).to_be_visible()


async def test_a_rule_that_was_filled_in_is_there_again_for_the_same_person(visit: NewVisitor) -> None:
    ada = await visit()
    page = ada.page
    await ada.enter("ada", base_builders(ada.product).form)
    for again, person in ((False, "ada"), (True, "mallory")):
        if not again:
            await page.get_by_label("Blockchain").select_option("polygon")
            await page.get_by_label("Minimum Tokens").fill("7")
            await page.get_by_label("Contract Address").fill("half an addre")
            await expect(page.get_by_text("At least 7", exact=False).first).to_be_visible()
        await expect(page.get_by_label("Blockchain")).to_have_value("polygon")
        async with httpx.AsyncClient() as program:
            await program.post(ada.product.url + "/api/auth/logout", headers={"x-session-id": await cookie_of(ada)})
        # The form may learn it from another answer while it is pressed, and be gone.
        with suppress(PlaywrightTimeoutError):
            await page.get_by_role("button", name="Create Rule").click(timeout=PRESSED_WITHIN_MS)
        await expect(page.get_by_text("Your session has ended, and this rule is not saved.")).to_be_visible()
        # The button above the page leads back to the form as well as the one on it.
        again_by = "Login with Discord" if person == "ada" else "Go to Login"
        await page.get_by_role("link", name=again_by).click()
        await page.get_by_text(f"Authorize as {person}", exact=True).click()
        await expect(page).to_have_title("Add verification rule · Holdfast")
        if person == "ada":
            await expect(page.get_by_label("Minimum Tokens")).to_have_value("7")
            await expect(page.get_by_label("Blockchain")).to_have_value("polygon")
        else:
            await expect(page.get_by_role("heading", name="Server not found")).to_be_visible()
            await expect(page.get_by_label("Minimum Tokens")).to_have_count(0)


async def test_somebody_else_on_the_same_tab_finds_nothing_of_the_one_before(visit: NewVisitor) -> None:
    visitor = await visit()
    await visitor.enter("ada")
    # The heading of its card: the charts below also name the server, once it has a rule.
    await visitor.page.get_by_role("heading", name="Base Builders").wait_for()
    await visitor.page.get_by_role("button", name="Logout").click()
    await visitor.page.get_by_role("link", name="Get Started").wait_for()
    await visitor.sign_in("mallory")
    await expect(visitor.page.get_by_text("No servers configured")).to_be_visible()
    assert "Base Builders" not in await visitor.page.content()


async def test_documents_are_told_for_whom_they_are(product: Product) -> None:
    cookies = {"hf_session": await asyncio.to_thread(sign_in, product.url, "ada")}
    async with (
        httpx.AsyncClient(base_url=product.url) as visitor,
        httpx.AsyncClient(base_url=product.url, cookies=cookies) as member,
    ):
        for path, as_visitor, as_member in (
            ("/", 200, 200), ("/dashboard", 200, 200), ("/nothing/here", 200, 404), ("/login", 200, 302),
            ("/dashboard/server/1", 200, 200), ("/oauth-error", 200, 200),
        ):  # fmt: skip
            seen, own = await visitor.get(path), await member.get(path)
            assert (seen.status_code, own.status_code) == (as_visitor, as_member), path
            assert 'data-audience="visitor"' in seen.text
            assert own.status_code == 302 or 'data-audience="member"' in own.text
            assert "no-store" in seen.headers["cache-control"]
            assert "unsafe-eval" not in seen.headers["content-security-policy"]
        slashed = await visitor.get("/login/?a=1")
        assert (slashed.status_code, slashed.headers["location"]) == (308, "/login?a=1")
        evil = await visitor.get("//evil.example/")
        assert not evil.headers.get("location", "").startswith("//")


async def test_hashed_files_are_immutable(product: Product) -> None:
    async with httpx.AsyncClient(base_url=product.url) as visitor:
        page = (await visitor.get("/")).text
        chunks = {part.split('"')[0] for part in page.split('href="')[1:] if part.startswith("/assets/")}
        assert chunks
        for chunk in chunks:
            assert "immutable" in (await visitor.get(chunk)).headers["cache-control"], chunk
        assert (await visitor.get("/assets/none-0000.js")).status_code == 404
