"""A server's rules by clicks: the choices, editing, pausing, resuming and deleting, each after a confirmation."""

import asyncio
import re
from collections.abc import Awaitable, Callable

from playwright.async_api import WebSocketRoute, expect

from state.server.rules import FEW
from tests.system.browser.conftest import Product, Visitor, eventually
from tests.system.browser.server.slow_answers import Slow
from tests.system.browser.village import base_builders, village
from tests.system.whole.people import Person, rule

NewVisitor = Callable[..., Awaitable[Visitor]]

# The text for the number of tokens at the moment its field appears.
FIRST_SEEN = """
() => new MutationObserver((_, observer) => {
  const field = document.querySelector('input[name="minTokens"]');
  if (field) { window.firstSeen = field.value; observer.disconnect(); }
}).observe(document.body, {childList: true, subtree: true})
"""


async def test_a_rule_is_written_paused_resumed_and_deleted(product: Product, visit: NewVisitor) -> None:
    contract = product.world()["chains"]["polygon"]["collections"][0]["contract"]
    here = village(product, "bob")
    bob = await visit()
    page = bob.page
    await bob.enter(here["bob"])
    await page.get_by_role("listitem").filter(has_text=here.guild).get_by_role("link", name="Configure").click()
    await page.get_by_role("link", name="Add Rule").first.click()

    roles = page.get_by_label("Role", exact=True)
    await expect(roles.locator("option", has_text="Whale")).to_be_attached()
    for name in ("Admin", "Moderator", "Founder"):
        await expect(roles.locator("option", has_text=name)).to_be_disabled()

    await page.get_by_role("button", name="Create Rule").click()
    await expect(page.get_by_role("alert").filter(has_text="Contract address is required").first).to_be_visible()

    await page.get_by_label("Blockchain").select_option("polygon")
    await page.get_by_label("Contract Address").fill(contract)
    await expect(page.get_by_role("main").get_by_role("alert")).to_have_count(0)
    await page.get_by_label("Minimum Tokens").fill("9")
    name = page.get_by_label("Rule Name", exact=True)
    await page.get_by_label("Maximum Tokens").fill("12")
    await expect(name).to_have_value(re.compile(r"9 to 12"))
    # Emptied again, it means that there is no maximum; a maximum of 0 would be another rule.
    await page.get_by_label("Maximum Tokens").fill("")
    await expect(name).not_to_have_value(re.compile(r"12|none"))
    await roles.select_option("Whale")
    suggested = await name.input_value()
    await page.get_by_role("button", name="Create Rule").click()
    rule = page.get_by_role("listitem").filter(has_text="At least 9")
    await expect(rule.get_by_text("Active", exact=True)).to_be_visible()

    question = page.get_by_role("dialog")
    # Many rules have the same buttons, so these are in a group with the rule's name.
    await rule.get_by_role("group", name=suggested).get_by_role("button", name="Pause").click()
    await question.get_by_role("button", name="Pause rule").click()
    await expect(rule.get_by_text("Paused", exact=True)).to_be_visible()
    # The button was disabled when the dialog gave the focus back, and then became another one.
    await expect(rule.get_by_role("button", name="Resume")).to_be_focused()
    await rule.get_by_role("button", name="Resume").click()
    await question.get_by_role("button", name="Resume rule").click()
    await expect(rule.get_by_text("Active", exact=True)).to_be_visible()

    await page.get_by_label("Protect a role").select_option("Whale")
    await page.get_by_role("button", name="Protect", exact=True).click()
    await expect(page.get_by_text(f"Protected by {here['bob'].capitalize()}, just now")).to_be_visible()
    await page.get_by_role("button", name="End the protection of Whale").click()
    await question.get_by_role("button", name="End protection").click()
    await expect(page.get_by_text("No role is protected.")).to_be_visible()

    await rule.get_by_role("link", name="Edit").click()
    await expect(page.get_by_role("heading", name="Edit Verification Rule")).to_be_visible()
    await expect(page.get_by_label("Contract Address")).to_have_value(contract.lower())
    await page.get_by_label("Minimum Tokens").fill("8")
    await page.get_by_label("When somebody no longer qualifies").select_option("Wait for a grace time")
    # The field for the hours pushes down the controls below it, even between press and release of a click.
    await expect(page.get_by_label("Grace time in hours")).to_be_visible()
    # The server decides what is checked: the box may show it shortly after the click.
    await page.get_by_label("Shadow: only watch").click()
    await expect(page.get_by_label("Shadow: only watch")).to_be_checked()
    await page.get_by_role("button", name="Save Changes").click()
    await question.get_by_role("button", name="Save", exact=True).click()
    rule = page.get_by_role("listitem").filter(has_text="At least 8")
    await expect(rule.get_by_text("Shadow", exact=True)).to_be_visible()
    await expect(rule.get_by_text("Taken 24 hours after it is no longer earned")).to_be_visible()
    await rule.get_by_role("button", name="What it would do").click()
    await expect(question.get_by_text("No member known here gains or loses the role.")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(rule.get_by_role("button", name="What it would do")).to_be_focused()

    await rule.get_by_role("button", name="Delete").click()
    await expect(question.get_by_text("Nobody has Whale through this rule")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(question).to_be_hidden()
    await expect(rule).to_be_visible()
    await rule.get_by_role("button", name="Delete").click()
    await question.get_by_role("button", name="Delete rule").click()
    await expect(rule).to_be_hidden()
    await expect(page.get_by_text("Rule deleted")).to_be_visible()
    # The button that opened the dialog is gone with its row; the keyboard goes on from what is in its place.
    await expect(page.get_by_role("main").get_by_role("link", name="Add Rule").last).to_be_focused()


async def test_a_view_call_is_chosen_from_a_template_tried_and_saved(product: Product, visit: NewVisitor) -> None:
    listed = product.world()["chains"]["base"]["collections"]
    staking = next(one for one in listed if one["standard"] == "Staking:number")
    carol = next(user["wallets"]["evm"] for user in product.world()["users"] if user["username"] == "carol")
    here = village(product, "bob")
    bob = await visit()
    page = bob.page
    await bob.enter(here["bob"], here.form)
    await page.get_by_label("Rule Type").select_option("call")
    await page.get_by_label("Blockchain").select_option("base")
    # The field of collections, whose label is longer, may still be there.
    await page.get_by_label("Contract Address", exact=True).fill(staking["contract"])
    await page.get_by_label("Template").select_option("staked-list")
    await expect(page.get_by_label("Part of the answer")).to_have_value("length")
    await page.get_by_label("Function").fill(staking["view"])
    await page.get_by_label("Part of the answer").fill("")
    await page.get_by_label("Value").fill("2")
    await page.get_by_label("Wallet", exact=True).fill(carol)
    await page.get_by_label("Wallet", exact=True).press("Enter")  # which is not to save the rule
    await expect(page.get_by_text("The answer is 2 (block")).to_be_visible()
    await expect(page.get_by_label("Rule Name", exact=True)).to_have_value("staked ≥ 2 on Base")
    await page.get_by_label("Role", exact=True).select_option("Whale")
    await page.get_by_role("button", name="Create Rule").click()
    rule = page.get_by_role("listitem").filter(has_text="is at least 2")
    await expect(rule.get_by_text("Active", exact=True)).to_be_visible()
    await rule.get_by_role("link", name="Edit").click()
    await expect(page.get_by_label("Function")).to_have_value(staking["view"])
    await expect(page.get_by_label("Arguments")).to_have_value("{wallet}")


async def test_one_rule_is_found_among_many(product: Product, visit: NewVisitor) -> None:
    here = village(product, "bob")
    calls = await asyncio.to_thread(Person, product, here["bob"])
    server_id = int((await asyncio.to_thread(calls.server, here.guild))["internalId"])
    contract = product.world()["chains"]["base"]["collections"][0]["contract"]

    async def made(*numbers: int) -> list[int]:
        payload = rule(product, contract, here.guild, "Holder", server_id) | {"shadow": True}
        named = [payload | {"ruleName": f"Rule {number:02}"} for number in numbers]
        return [(await asyncio.to_thread(calls.post, "/api/verification-rules", **one))["id"] for one in named]

    await made(*range(1, FEW + 1))
    bob = await visit()
    page = bob.page
    await bob.enter(here["bob"], f"/server-config?serverId={server_id}")
    shown = page.get_by_role("heading", level=2, name=re.compile(r"^Rule \d\d"))
    entry = page.get_by_label("Filter the rules")
    await expect(shown).to_have_count(FEW)
    await expect(entry).to_have_count(0)
    (number, _) = await made(11, 12)
    await expect(shown).to_have_count(12)
    await expect(page.get_by_text("12 rules", exact=True)).to_be_visible()

    await entry.press_sequentially("rule 11")
    await expect(shown).to_have_text(["Rule 11"])
    await expect(page.get_by_text("1 of 12 rules")).to_be_visible()
    await asyncio.to_thread(calls.client.patch, f"/api/verification-rules/{number}", json={"ruleName": "Rule 11 again"})
    await expect(shown).to_have_text(["Rule 11 again"])
    await expect(entry).to_have_value("rule 11")
    await page.get_by_role("button", name="Delete").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete rule").click()
    await expect(page.get_by_role("heading", name="No rule found")).to_be_visible()
    await page.get_by_role("button", name="Show all rules").click()
    await expect(shown).to_have_count(11)
    await expect(entry).to_be_focused()
    await expect(entry).to_have_value("")
    await asyncio.to_thread(calls.close)


async def test_somebody_elses_server_is_not_found(visit: NewVisitor) -> None:
    mallory = await visit()
    await mallory.enter("mallory", "/server-config?serverId=1&discordServerId=1&serverName=Base+Builders")
    await expect(mallory.page.get_by_role("heading", level=1, name="Server not found")).to_be_visible()


async def test_the_form_is_not_shown_before_its_fields_are_those_of_this_visit(visit: NewVisitor) -> None:
    """Text typed at once would be lost when the fields are emptied a moment later."""
    ada = await visit()
    page, told = ada.page, asyncio.Event()

    def hear(frame: str | bytes) -> None:
        if "visit_rx_state_" in str(frame):
            told.set()

    page.on("websocket", lambda line: line.on("framereceived", hear))
    await ada.enter("ada", base_builders(ada.product).rules)
    await page.get_by_role("link", name="Add Rule").first.click()
    await page.get_by_label("Contract Address").fill("left behind")
    await page.get_by_label("Minimum Tokens").fill("7")
    await expect(page.get_by_text("At least 7", exact=False).first).to_be_visible()
    told.clear()
    await page.get_by_role("link", name="Cancel").click()
    await page.get_by_role("link", name="Add Rule").first.wait_for()
    # The server's page may be shown before the product has counted this visit to it.
    async with asyncio.timeout(30):
        await told.wait()
    await page.evaluate(FIRST_SEEN)
    await page.get_by_role("link", name="Add Rule").first.click()
    await expect(page.get_by_label("Minimum Tokens")).to_have_value("1")
    assert await page.evaluate("window.firstSeen") == "1"


async def open_form_through(ada: Visitor, through: Callable[[WebSocketRoute], None]) -> None:
    """Open the form of a new rule as ada, with the sockets of its page through this handler."""
    await ada.page.route_web_socket("**/_event/**", through)
    await ada.enter("ada", base_builders(ada.product).form)


async def test_what_is_typed_while_the_server_has_not_answered_stays_as_typed(visit: NewVisitor) -> None:
    ada, server = await visit(), Slow()
    page = ada.page
    await open_form_through(ada, server.through)
    await page.get_by_label("Rule Type").select_option("trait")
    trait = page.get_by_label("Trait Type")
    await expect(trait).to_be_visible()
    server.holds = True
    await page.get_by_label("Blockchain").select_option("polygon")
    await expect(page.get_by_label("Blockchain")).to_have_value("polygon")
    await trait.press_sequentially("Background colour")
    await expect(trait).to_have_value("Background colour")
    # Each answer has the text as it was a few keys ago.
    server.answers()
    await trait.press_sequentially(" at night")
    await expect(trait).to_have_value("Background colour at night")
    # The server has it too: it fills in the field that is shown again.
    await page.get_by_label("Rule Type").select_option("basic")
    await expect(trait).to_have_count(0)
    await page.get_by_label("Rule Type").select_option("trait")
    await expect(trait).to_have_value("Background colour at night")
    # Another condition has a text of its own.
    await page.get_by_role("button", name="Add another condition").click()
    # Until then the fields are those of the first condition.
    await expect(page.get_by_role("heading", name="Condition 2")).to_be_visible()
    await page.get_by_label("Rule Type").select_option("trait")
    await expect(trait).to_have_value("")


async def test_token_ids_are_typed_one_after_another_however_slow_the_server_is(visit: NewVisitor) -> None:
    ada, server = await visit(), Slow()
    page = ada.page
    await open_form_through(ada, server.through)
    await page.get_by_label("Rule Type").select_option("token_id")
    entry = page.get_by_role("textbox", name="Token IDs")
    await expect(entry).to_be_visible()
    server.holds = True
    for number in ("9", "12"):
        await entry.press_sequentially(number)
        await entry.press("Enter")
    await entry.press_sequentially("7")
    server.answers()
    for number in ("9", "12"):
        await expect(page.get_by_role("button", name=f"Remove {number}", exact=True)).to_be_visible()
    await expect(entry).to_have_value("7")
    # What is refused is there again, to be corrected.
    await entry.fill("12")
    await entry.press("Enter")
    await expect(page.get_by_text("12 is already in the list.")).to_be_visible()
    await expect(entry).to_have_value("12")
    await entry.press_sequentially("3")
    await page.get_by_label("Blockchain").focus()
    await expect(page.get_by_role("button", name="Remove 123", exact=True)).to_be_visible()
    await expect(entry).to_have_value("")


async def test_what_was_filled_in_outlives_a_lost_connection_but_not_the_visit(visit: NewVisitor) -> None:
    ada = await visit()
    page, lines = ada.page, list[WebSocketRoute]()

    def through(line: WebSocketRoute) -> None:
        line.connect_to_server()
        lines.append(line)

    await open_form_through(ada, through)
    await page.get_by_label("Blockchain").select_option("polygon")
    await page.get_by_label("Minimum Tokens").fill("7")
    await page.get_by_label("Role", exact=True).select_option("Whale")
    await page.get_by_label("Contract Address").fill("half an addre")
    await expect(page.get_by_text("At least 7", exact=False).first).to_be_visible()

    (first,) = lines
    await first.close()
    await eventually(lambda: len(lines) == 2, "the browser connects again")
    await page.get_by_label("Minimum Tokens").fill("8")
    await expect(page.get_by_text("At least 8", exact=False).first).to_be_visible()
    await expect(page.get_by_label("Contract Address")).to_have_value("half an addre")
    await expect(page.get_by_label("Blockchain")).to_have_value("polygon")
    await expect(page.get_by_label("Role", exact=True).locator("option:checked")).to_have_text("Whale")

    await page.reload()
    await expect(page.get_by_label("Minimum Tokens")).to_have_value("1")
    await expect(page.get_by_label("Blockchain")).to_have_value("ethereum")
