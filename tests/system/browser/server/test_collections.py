"""The rule form finds collections by address and by URL, names the rule after them, and reports what it cannot find."""

from collections.abc import Awaitable, Callable

from playwright.async_api import expect

from tests.system.browser.conftest import Product, Visitor
from tests.system.browser.village import village

NewVisitor = Callable[..., Awaitable[Visitor]]


async def test_a_rule_is_named_after_the_collection_that_a_url_means(product: Product, visit: NewVisitor) -> None:
    collection = product.world()["chains"]["arbitrum"]["collections"][0]
    name, url = collection["name"], f"https://opensea.io/collection/{collection['slug']}"
    here = village(product, "bob")
    bob = await visit()
    page = bob.page
    await bob.enter(here["bob"], here.form)
    toast = page.get_by_role("region", name="Notifications")
    contract, rule_name = page.get_by_label("Contract Address"), page.get_by_label("Rule Name", exact=True)

    async def told(title: str, text: str) -> None:
        await expect(toast.get_by_text(title, exact=True)).to_be_visible()
        if text:
            await expect(toast.get_by_text(text)).to_be_visible()

    await page.get_by_role("button", name="Refresh collection").click()
    await told("No input", "Enter a contract address or collection URL first")
    await page.get_by_role("button", name="Refresh rule name").click()
    await told("No contract address", "")
    await contract.fill("0x" + "77" * 20)
    await told("Collection not found", "There is no contract at 0x7777...7777 on Ethereum.")
    await expect(rule_name).to_have_value("")

    await contract.fill(url)
    await told("Collection found", f"Successfully loaded: {name}")
    await expect(contract).to_have_value(collection["contract"].lower())
    await expect(page.get_by_label("Blockchain")).to_have_value("arbitrum")
    await expect(rule_name).to_have_value(name)

    await contract.fill("")
    await expect(rule_name).to_have_value("")
    product.control("faults", {"target": "opensea", "kind": "500", "seconds": 60})
    try:
        await contract.fill(url)
        await told("Connection error", "Failed to fetch collection data. Please try again.")
    finally:
        product.control("faults", {"target": "opensea", "kind": "500", "seconds": 0.000_001})
    refresh = page.get_by_role("button", name="Refresh collection")
    await refresh.click()
    await expect(rule_name).to_have_value(name)
    await expect(contract).to_have_value(collection["contract"].lower())

    # The answer to the first text does not write over the second.
    await page.get_by_label("Role", exact=True).select_option("Whale")
    product.control("faults", {"target": "opensea", "kind": "latency", "ms": 3_000, "seconds": 60})
    try:
        await contract.fill(f"{url}/overview")
        await expect(refresh).to_have_attribute("aria-busy", "true")
        await contract.fill("https://opensea.io/item/arbitrum/")
        await expect(refresh).to_have_attribute("aria-busy", "false")
    finally:
        product.control("faults", {"target": "opensea", "kind": "latency", "ms": 0, "seconds": 0.000_001})
    await page.get_by_role("button", name="Create Rule").click()
    await expect(page.get_by_role("alert")).to_contain_text("That URL is not a collection's page")
    await expect(contract).to_have_value("https://opensea.io/item/arbitrum/")

    # Faster than the pause after typing.
    await page.get_by_label("Minimum Tokens").fill("7")
    await contract.fill(f"https://opensea.io/item/arbitrum/{collection['contract']}/1")
    await page.get_by_role("button", name="Create Rule").click()
    await told("Success", "Verification rule created successfully!")
    await expect(page.get_by_text(f"At least 7 tokens of {name} on Arbitrum")).to_be_visible()
