"""Rules of several conditions and of certain tokens by clicks, from the form to the member's role."""

import re
from collections.abc import Awaitable, Callable
from contextlib import closing

from playwright.async_api import Page, expect

from tests.system.browser.conftest import Product, Visitor, eventually
from tests.system.browser.village import Village, village
from tests.system.whole.people import Person

NewVisitor = Callable[..., Awaitable[Visitor]]
NOTE_THE_BAR = """
() => new MutationObserver((_, observer) => {
  if (!document.querySelector('progress[aria-label="Counting holders"]')) return;
  window.barSeen = true;
  observer.disconnect();
}).observe(document.body, {childList: true, subtree: true})
"""
VAULT, STRANGER = "0x" + "7a17" * 10, "0x" + "5e" * 20


def deployed(product: Product, chain: str, name: str, slug: str) -> str:
    return product.control(f"chains/{chain}/deploy", {"standard": "ERC721", "name": name, "slug": slug})["contract"]


def minted(product: Product, chain: str, contract: str, token: str, who: str) -> None:
    product.control(f"chains/{chain}/mint", {"contract": contract, "token_id": token, "to": product.wallet(who)})


async def open_form(visitor: Visitor, here: Village) -> Page:
    page = visitor.page
    await visitor.enter(here["ada"], here.form)
    await expect(page.get_by_label("Role", exact=True).locator("option", has_text="Collector")).to_be_attached()
    return page


async def condition(page: Page, chain: str, contract: str, name: str) -> None:
    """Fill in the open condition and wait until its collection is found."""
    await page.get_by_label("Blockchain").select_option(chain)
    await page.get_by_label("Contract Address").fill(contract)
    await expect(page.get_by_text(f"{name} on {chain.capitalize()}", exact=True)).to_be_visible()


async def count_holders(page: Page, said: re.Pattern[str]) -> None:
    """Have the rule's holders counted; the progress bar may disappear after a moment."""
    await page.evaluate(NOTE_THE_BAR)
    await page.get_by_role("button", name="Count Holders").click()
    await expect(page.get_by_text(said)).to_be_visible()
    assert await page.evaluate("window.barSeen")


async def test_three_conditions_over_two_chains_from_the_form_to_the_members_why(
    product: Product, visit: NewVisitor
) -> None:
    here = village(product, "ada", "erin", "dave")
    erin, dave = here["erin"], here["dave"]
    kelp = deployed(product, "base", "Kelp Keepers", "kelp-keepers")
    reef = deployed(product, "optimism", "Reef Riders", "reef-riders")
    tide = deployed(product, "optimism", "Tide Tellers", "tide-tellers")
    for chain, contract in (("base", kelp), ("optimism", reef)):
        minted(product, chain, contract, "1", erin)
    minted(product, "base", kelp, "2", dave)
    for who in (erin, dave):
        with closing(Person(product, who)) as person:
            person.prove()

    ada = await visit()
    page = await open_form(ada, here)
    await condition(page, "base", kelp, "Kelp Keepers")
    await count_holders(page, re.compile(r"^2 addresses meet this, \d verified here\.$"))
    await page.get_by_role("button", name="Add a tier").click()
    await expect(page.get_by_label("Tier 2: from")).to_be_visible()
    await page.get_by_role("button", name="Add another condition").click()
    await expect(page.get_by_role("heading", name="Condition 2")).to_be_visible()
    await expect(page.get_by_text("The further tiers are left out")).to_be_visible()
    # An address that is pasted just before the next press counts too.
    await page.get_by_label("Blockchain").select_option("optimism")
    await page.get_by_label("Contract Address").fill(reef)
    await page.get_by_role("button", name="Add another condition").click()
    await expect(page.get_by_role("heading", name="Condition 3")).to_be_visible()
    await condition(page, "optimism", tide, "Tide Tellers")
    # The server decides what is checked: the box may show it shortly after the click.
    await page.get_by_label("Must not hold").click()
    await expect(page.get_by_label("Must not hold")).to_be_checked()
    await page.get_by_label("Role", exact=True).select_option("Collector")
    words = [
        "All of:",
        "At least 1 token of Kelp Keepers on Base",
        "At least 1 token of Reef Riders on Optimism",
        "No token of Tide Tellers on Optimism",
    ]
    for text in words:
        await expect(page.get_by_text(text, exact=True).last).to_be_visible()
    await page.get_by_text("Who", exact=True).click()
    people = page.get_by_role("list", name="Members and what would change for them")
    await expect(people.get_by_role("listitem").filter(has_text=erin.capitalize())).to_contain_text("gains")
    await expect(people.get_by_role("listitem").filter(has_text=dave.capitalize())).to_be_hidden()

    await page.get_by_role("button", name="Create Rule").click()
    rule = page.get_by_role("listitem").filter(has_text="Kelp Keepers, Reef Riders and not Tide Tellers")
    for text in (*words, "Collector"):
        await expect(rule.get_by_text(text, exact=True)).to_be_visible()
    await eventually(lambda: "Collector" in product.roles_of(here.guild, erin), "erin gets the role")
    assert "Collector" not in product.roles_of(here.guild, dave)

    tabs = page.get_by_role("navigation", name="Server configuration")
    await tabs.get_by_role("link", name="Members", exact=True).click()
    await page.get_by_label("Search members").fill(erin)
    # The list moves when the results are drawn, and a click into it should not.
    await expect(page.get_by_role("status").filter(has_text="1 member")).to_have_text("1 member")
    await page.get_by_role("button", name=erin.capitalize(), expanded=False).click()
    why = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="Collector", exact=True)).last
    await expect(why.get_by_text("Has it, from Holdfast")).to_be_visible()
    told = why.get_by_role("listitem").filter(has=page.get_by_role("heading", name="Kelp Keepers, Reef Riders and"))
    for text in (*words[1:3], "Tide Tellers on Optimism"):
        await expect(told.get_by_text(text)).to_be_visible()
    await expect(told.get_by_text("Holds 1, needs 1")).to_have_count(2)
    await expect(told.get_by_text("Holds 0, needs 1")).to_have_count(1)
    await tabs.get_by_role("link", name="Rules", exact=True).click()

    await rule.get_by_role("button", name="Delete").click()
    question = page.get_by_role("dialog")
    await question.get_by_text("Who", exact=True).click()
    await expect(question.get_by_role("listitem").filter(has_text=erin.capitalize())).to_contain_text("loses")
    await question.get_by_role("button", name="Delete rule").click()
    await expect(rule).to_be_hidden()
    await eventually(lambda: "Collector" not in product.roles_of(here.guild, erin), "the role goes with its rule")


async def test_a_trait_then_certain_tokens_also_delegated_ones_are_asked_for_by_clicks(
    product: Product, visit: NewVisitor
) -> None:
    here = village(product, "ada", "erin", "dave")
    erin = here["erin"]
    choir = deployed(product, "arbitrum", "Coral Choir", "coral-choir")
    minted(product, "arbitrum", choir, "7", erin)
    product.control(
        "chains/arbitrum/traits", {"contract": choir, "token_id": "7", "traits": {"Voice": "Alto", "Range": "12"}}
    )
    with closing(Person(product, erin)) as person:
        person.prove()
    ada = await visit()
    page = await open_form(ada, here)
    # On the wrong chain the right one is suggested.
    await page.get_by_label("Blockchain").select_option("base")
    await page.get_by_label("Contract Address").fill(choir)
    await page.get_by_role("button", name="on Arbitrum").click()
    await expect(page.get_by_text("Coral Choir on Arbitrum", exact=True)).to_be_visible()

    name = page.get_by_label("Rule Name", exact=True)
    await page.get_by_label("Rule Type").select_option("trait")
    await expect(name).to_have_value("Coral Choir (Trait-Based)")
    await page.locator("select[name=traitType]").select_option("Voice")
    await expect(name).to_have_value("Coral Choir (Trait) - Voice")
    await page.locator("select[name=traitValue]").select_option("Alto")
    await expect(name).to_have_value("Coral Choir (Trait) - Voice: Alto")
    await page.get_by_label("Role", exact=True).select_option("Whale")
    await page.get_by_role("button", name="Create Rule").click()
    await expect(page.get_by_text("At least 1 token of Coral Choir on Arbitrum with Voice: Alto")).to_be_visible()
    await eventually(lambda: "Whale" in product.roles_of(here.guild, erin), "erin gets the role for her trait")

    await page.get_by_role("listitem").filter(has_text="Voice: Alto").get_by_role("link", name="Edit").click()
    await expect(page.get_by_role("heading", name="Edit Verification Rule")).to_be_visible()
    await page.get_by_label("Rule Type").select_option("token_id")
    await expect(name).to_have_value("Coral Choir (Token ID)")
    entry = page.get_by_role("textbox", name="Token IDs")
    for typed, left in (("9", ""), ("1-3, 12", ""), (" ", ""), ("9", "9")):
        await entry.fill(typed)
        await entry.press("Enter")
        await expect(entry).to_have_value(left)
    await expect(page.get_by_text("9 is already in the list.")).to_be_visible()
    await page.get_by_role("button", name="Remove 9").click()
    await expect(name).to_have_value("Coral Choir (Token ID) - #1-3, 12")
    # What is still in the entry would be saved with the rule.
    await entry.fill("")
    # Only one person meets it, and a name beside single tokens would show which wallet is theirs.
    nameless = "So few people meet this, or do not, that names would show which wallets are theirs."
    await expect(page.get_by_text(nameless)).to_be_visible()
    await expect(page.get_by_text("Who", exact=True)).to_be_hidden()
    # A vault has one of the tokens, and delegates to her wallet.
    product.control("chains/arbitrum/mint", {"contract": choir, "token_id": "12", "to": VAULT})
    product.control("chains/arbitrum/delegate", {"vault": VAULT, "to": product.wallet(erin), "contract": choir})
    # The server decides what is checked: the box may show it shortly after the click.
    await page.get_by_label("Count delegated tokens").click()
    await expect(page.get_by_label("Count delegated tokens")).to_be_checked()
    await page.get_by_role("button", name="Save Changes").click()
    question = page.get_by_role("dialog")
    await expect(question.get_by_text(nameless)).to_be_visible()
    await question.get_by_role("button", name="Save", exact=True).click()
    rule = page.get_by_role("listitem").filter(has_text="Any of the tokens 1 to 3 or 12 of Coral Choir on Arbitrum")
    await expect(rule.get_by_text("Counts delegated tokens")).to_be_visible()
    product.control("chains/arbitrum/transfer", {"contract": choir, "token_id": "12", "to": STRANGER})
    await eventually(lambda: "Whale" not in product.roles_of(here.guild, erin), "the role goes with the vault's token")
    await rule.get_by_role("button", name="Delete").click()
    await question.get_by_role("button", name="Delete rule").click()
    await expect(rule).to_be_hidden()
