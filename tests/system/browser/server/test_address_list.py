"""A rule on a list of addresses by clicks: errors by line, a trial, the role, and the list kept during an edit."""

from collections.abc import Awaitable, Callable
from contextlib import closing

from playwright.async_api import WebSocketRoute, expect

from tests.system.browser.conftest import Product, Visitor, eventually
from tests.system.browser.server.test_composed_rules import STRANGER, VAULT, open_form
from tests.system.browser.village import village
from tests.system.whole.people import Person

NewVisitor = Callable[..., Awaitable[Visitor]]


async def test_a_pasted_list_is_checked_line_by_line_tried_and_gives_the_role(
    product: Product, visit: NewVisitor
) -> None:
    here = village(product, "ada", "erin")
    erin = here["erin"]
    with closing(Person(product, erin)) as person:
        person.prove()
    ada = await visit()
    page = await open_form(ada, here)
    await page.get_by_label("Rule Type").select_option("address_list")
    await expect(page.get_by_label("Blockchain")).not_to_be_visible()
    entry, use = page.get_by_label("Addresses", exact=True), page.get_by_role("button", name="Use these addresses")
    await entry.fill(f"{STRANGER}\n0x12\n{STRANGER}")
    await use.click()
    await expect(page.get_by_text("Line 2: An address that starts with 0x has 42 characters")).to_be_visible()
    await expect(page.get_by_text("Line 3: This address is in line 1 already.")).to_be_visible()
    # Another condition is opened in between; the list and its mistakes are still there afterwards.
    await page.get_by_role("button", name="Add another condition").click()
    await expect(entry).to_be_hidden()
    await page.get_by_role("button", name="Remove Condition 2").click()
    await expect(page.get_by_text("Line 3: This address is in line 1 already.")).to_be_visible()
    await expect(entry).to_have_value(f"{STRANGER}\n0x12\n{STRANGER}")
    # No rule is saved without the list that was refused.
    await page.get_by_label("Role", exact=True).select_option("Collector")
    await page.get_by_role("button", name="Create Rule").click()
    await expect(entry).to_be_focused()
    # The browser itself logs the refused calls.
    assert {"400" in fault for fault in ada.faults} == {True}
    ada.faults.clear()
    await entry.fill(f"wallet,amount\n{product.wallet(erin)},5\n{STRANGER},7\n")
    await entry.press("Tab")  # leaving the field is enough
    await expect(page.get_by_text("2 addresses are on the list.")).to_be_visible()
    await expect(page.get_by_label("Rule Name", exact=True)).to_have_value("List of 2 addresses")
    await expect(page.get_by_text("A wallet on a list of 2 addresses", exact=True)).to_be_visible()

    await page.get_by_label("Address", exact=True).fill(product.wallet(erin))
    await page.get_by_role("button", name="Try", exact=True).click()
    await expect(page.get_by_text("Holds 1, needs 1")).to_be_visible()
    await expect(page.get_by_text("Yes", exact=True)).to_be_visible()
    await page.get_by_role("button", name="Create Rule").click()
    await expect(page.get_by_text("Verification rule created successfully!")).to_be_visible()
    await eventually(lambda: "Collector" in product.roles_of(here.guild, erin), "erin gets the role")

    await page.get_by_role("link", name="Edit").first.click()
    await expect(page.get_by_text("2 addresses are on the list.")).to_be_visible()
    async with page.expect_download() as started:
        await page.get_by_role("link", name="Download").click()
    path = await (await started.value).path()
    assert sorted(path.read_text().split()) == sorted(["address", product.wallet(erin).lower(), STRANGER])

    # The list that was pasted last is saved, not the one before it.
    await entry.fill(f"{product.wallet(erin)}\n{STRANGER}\n{VAULT}")
    await page.get_by_role("button", name="Save Changes").click()
    await page.get_by_role("dialog").get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_text("A wallet on a list of 3 addresses", exact=True)).to_be_visible()


async def test_a_list_that_the_page_did_not_hear_of_is_saved_by_the_second_press(
    product: Product, visit: NewVisitor
) -> None:
    here, dropping, lost = village(product, "ada"), list[bool](), list[str | bytes]()

    def through(line: WebSocketRoute) -> None:
        server = line.connect_to_server()

        def ask(said: str | bytes) -> None:
            loses = dropping and not lost and "take_list" in str(said)
            if loses:
                lost.append(said)
            else:
                server.send(said)

        line.on_message(ask)

    ada = await visit()
    await ada.page.route_web_socket("**/_event/**", through)
    page = await open_form(ada, here)
    await page.get_by_label("Rule Type").select_option("address_list")
    entry = page.get_by_label("Addresses", exact=True)
    await entry.fill(STRANGER)
    await page.get_by_role("button", name="Use these addresses").click()
    await expect(page.get_by_text("1 address is on the list.")).to_be_visible()
    await page.get_by_label("Role", exact=True).select_option("Collector")

    dropping.append(True)
    await entry.fill(f"{STRANGER}\n{VAULT}")
    await page.get_by_role("button", name="Create Rule").click()
    await eventually(lambda: len(lost) == 1, "the message about the list is lost")
    await page.get_by_role("button", name="Create Rule").click()
    await expect(page.get_by_text("A wallet on a list of 2 addresses", exact=True)).to_be_visible()
    await expect(page.get_by_text("Verification rule created successfully!")).to_be_visible()
