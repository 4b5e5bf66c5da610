"""The card about a collection with a new contract: the form, each rule's new form, the dialogs, and the undo."""

import uuid
from collections.abc import AsyncIterator

import pytest

from state.core.toasts import ToastState
from state.rule_form.preview import RulePreviewState
from state.server.new_contract import APPLY, END, MigrationState
from tests.jobs.town import Town, a_town
from tests.state.conftest import SignIn
from tests.state.towns import opened


@pytest.fixture
async def town(discord: None, sandbox_url: str) -> AsyncIterator[Town]:
    async with a_town(sandbox_url, "ada") as made:
        await made.rule("Holder", least=2)
        yield made


async def test_a_migration_is_previewed_applied_and_ended_from_its_card(sign_in: SignIn, town: Town) -> None:
    made = await town.call(f"chains/{town.chain}/deploy", standard="ERC721", name="New Cats", slug=uuid.uuid4().hex)
    tab, _ = await sign_in(town.people["ada"]["username"])
    card = await opened(tab, MigrationState, town.server_id, "rules")
    (old,) = card.contracts
    assert (card.old, old.label.endswith("on Base, 1 rule"), card.running) == (old.key, True, [])

    await tab.run(card.look())
    assert (card.fault_field, card.fault_text, card.looked) == ("newContract", "Enter the contract's address.", False)
    card.set_new(str(made["contract"]))
    card.set_until("31.12.2999")
    await tab.run(card.look())
    assert (card.fault_field, card.fault_text) == ("until", "This is not a date.")
    card.set_until("")
    await tab.run(card.ask_apply())
    assert card.asked == "", "nothing was looked at"

    await tab.run(card.look())
    (rule,) = card.rules
    assert (card.fault_text, rule.name, rule.notes, card.left) == (
        "", "A rule", ("Tokens of both contracts add up.",), [],
    )  # fmt: skip
    assert [line.depth for line in rule.lines] == [0, 1, 1, 2, 2, 1]
    card.set_both(False)
    assert (card.looked, card.rules) == (False, [])
    card.set_both(True)
    await tab.run(card.look())
    await tab.run(card.ask_apply())
    impact = await tab.state(RulePreviewState)
    assert (card.asked, card.asked_title, impact.busy) == (APPLY, "Replace the contract in 1 rule?", True)
    card.set_both(True)
    assert card.asked == "", "the dialog is about the form as it was"
    await tab.run(card.look())
    await tab.run(card.ask_apply())
    await tab.run(card.confirm())
    (running,) = card.running
    assert (running.text, card.looked, card.new) == ("Both count in 1 rule until you end this.", False, "")

    card.set_new("0x12")
    card.set_until("2999-12-31")
    await tab.run(card.ask_end(running.id))
    assert (card.asked, card.asked_title) == (END, running.title)
    await tab.run(card.confirm())
    assert (card.new, card.until) == ("0x12", "2999-12-31"), "what is typed is about another migration"
    assert (card.running, [one.label.startswith("New Cats on Base") for one in card.contracts]) == ([], [True])
    toast = await tab.state(ToastState)
    assert toast.title == "1 rule changed"


async def test_what_is_typed_for_one_server_is_not_proposed_for_the_next_one(sign_in: SignIn, town: Town) -> None:
    tab, _ = await sign_in(town.people["ada"]["username"])
    card = await opened(tab, MigrationState, town.server_id, "rules")
    typed = [(card.set_new, "0x12"), (card.set_new_chain, "polygon"), (card.set_until, "2999-12-31")]
    for enter, value in typed:
        enter(value)
    card.set_same_ids(True)
    card.set_both(False)
    await tab.run(card.load())
    filled = card.new, card.new_chain, card.until, card.same_ids, card.both
    assert filled == ("0x12", "polygon", "2999-12-31", True, False), "a reconnect keeps it"
    card.shown_for = town.server_id + 1
    await tab.run(card.load())
    assert (card.new, card.new_chain, card.until, card.same_ids, card.both) == ("", "", "", False, True)
    assert card.old == card.contracts[0].key
