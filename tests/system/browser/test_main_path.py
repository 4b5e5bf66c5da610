"""The main path by clicks: sign in, add the bot, write a rule; prove a wallet; the role is given and taken."""

from collections.abc import Awaitable, Callable

from playwright.async_api import expect

from tests.system.browser.conftest import Product, Visitor, eventually
from tests.system.browser.village import Village, village
from tests.system.whole.people import collection

ROLE, CHAIN = "Collector", "base"


async def test_a_role_comes_with_the_proof_and_goes_with_the_nft(
    product: Product, visit: Callable[..., Awaitable[Visitor]]
) -> None:
    here = village(product, "ada", "carol", bot=False)
    wallet = product.wallet(here["carol"])
    nft = {"contract": collection(product, f"Main-{here.guild.split()[-1]}"), "token_id": "70001"}
    product.control(f"chains/{CHAIN}/mint", {**nft, "to": wallet})

    ada = await visit(reduced_motion="no-preference")
    await ada.sign_in(here["ada"])
    await _add_bot(ada, here)
    await _write_rule(ada, nft["contract"])

    carol = await visit(reduced_motion="no-preference")
    await carol.sign_in(here["carol"])
    await _prove_wallet(carol, wallet)
    await eventually(lambda: ROLE in product.roles_of(here.guild, here["carol"]), f"carol has {ROLE}")

    product.control(f"chains/{CHAIN}/transfer", {**nft, "from": wallet, "to": "0x" + "5e" * 20})
    await eventually(lambda: ROLE not in product.roles_of(here.guild, here["carol"]), f"{ROLE} is gone")


async def _add_bot(ada: Visitor, here: Village) -> None:
    await ada.page.get_by_role("link", name="Add a server").first.click()
    await expect(ada.page.get_by_role("heading", name="Invite HoldfastBot to Your Servers")).to_be_visible()
    club = ada.page.get_by_role("listitem").filter(has_text=here.guild)
    async with ada.context.expect_page() as opened:
        await club.get_by_role("button", name="Add HoldfastBot").click()
    discord = await opened.value
    await discord.get_by_text(f"Add to {here.guild} as {here['ada']}").click()
    await discord.get_by_text("The bot was added").wait_for()
    await discord.close()
    await expect(club.get_by_text("HoldfastBot Added")).to_be_visible()
    await club.get_by_role("link", name="Configure").click()
    card = ada.page.get_by_role("listitem").filter(has_text=here.guild)
    await expect(card.get_by_text("Active", exact=True)).to_be_visible()
    await card.get_by_role("link", name="Configure").click()
    await expect(ada.page.get_by_role("heading", name=here.guild)).to_be_visible()


async def _write_rule(ada: Visitor, contract: str) -> None:
    page = ada.page
    await page.get_by_role("link", name="Add Rule").first.click()
    await page.get_by_label("Blockchain").select_option(CHAIN)
    await page.get_by_label("Contract Address").fill(contract)
    await expect(page.get_by_label("Rule Name", exact=True)).not_to_have_value("")
    await page.get_by_label("Role", exact=True).select_option(ROLE)
    await page.get_by_role("button", name="Create Rule").click()
    await expect(page.get_by_text("Verification rule created successfully!")).to_be_visible()
    await expect(page.get_by_role("listitem").filter(has_text=ROLE)).to_be_visible()


async def _prove_wallet(carol: Visitor, address: str) -> None:
    page = carol.page
    await page.get_by_role("link", name="Verify Wallets").first.click()
    # Arriving empties a form that is left from an earlier visit.
    await expect(page.get_by_role("heading", name="No verified wallets yet")).to_be_visible()
    await page.get_by_label("Wallet Address").fill(address)
    code = page.locator("code").filter(has_text="holdfast-").first
    await expect(code).to_be_visible()
    async with carol.context.expect_page() as opened:
        await page.get_by_role("button", name="Open OpenSea Profile").click()
    profile = await opened.value
    await profile.get_by_label("Bio").fill(f"Collector of tides. {await code.inner_text()}")
    await profile.get_by_role("button", name="Save").click()
    await profile.get_by_text("Your bio is saved.").wait_for()
    await profile.close()
    await page.get_by_role("button", name="Verify Wallet").click()
    await expect(page.get_by_text("Your wallet has been successfully verified!")).to_be_visible()
    await expect(page.get_by_text(f"{address[:6]}...{address[-4:]}", exact=False)).to_be_visible()
