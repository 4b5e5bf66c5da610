"""All that a member can do inside Discord, against the whole product; every answer is visible to them alone."""

import uuid

from bot.commands import try_address
from services.guilds.panel import SAFETY
from tests.bot.conftest import Club, Said, http_status
from tests.system.whole.people import until


def test_a_member_proves_a_wallet_by_the_panel_gets_the_role_asks_why_sells_and_learns_it(club: Club):
    club.make_rule()
    token = club.buys("carol")
    made = club.ask("ada", "setup")
    assert made.title == "The verification channel is ready"
    channel = next(one for one in club.product.guild(club.name)["channels"] if one["name"] == "verify")
    (panel,) = channel["messages"]
    buttons = {one["label"]: one["custom_id"] for one in panel["components"][0]["components"]}
    form = club.act("carol", "button", custom_id=buttons["Verify"], message_id=panel["id"])["modal"]
    assert [one["custom_id"] for one in form["fields"]] == ["address", "method"]
    fields = {"address": club.wallet("carol"), "method": "opensea_bio"}
    asked = club.act("carol", "modal", custom_id=form["custom_id"], fields=fields)
    said = Said(asked)
    assert f"only if **you** are @{club.people['carol']['username']}" in said.text
    assert club.press("carol", said, "Check now").title == "Not there yet"
    club.bio("carol", f"my code: {said.code}")
    proved = club.press("carol", said, "Check now")
    assert proved.title == "Wallet verified"
    assert "Holder" in proved.field("Added")
    assert club.has("carol", "Holder")

    why = Said(club.act("carol", "button", custom_id=buttons["My roles"], message_id=panel["id"]))
    assert "✅ Holder: you have it" in why.text
    assert "needed 1, held 1" in why.text
    assert club.ask("ada", "setup").text.count("Everything was right already.") == 1

    club.sells(token)
    until(lambda: club.logged("role.taken"))
    told = club.ask("carol", "why")
    assert "Since we last met" in told.text
    assert "Holder was taken from you" in told.text
    assert "❌ Holder: you do not have it" in told.text
    assert "needed 1, held 0" in told.text
    assert "Since we last met" not in club.ask("carol", "why").text


def test_a_mistyped_address_is_refused_with_a_button_to_enter_it_again(club: Club):
    refused = club.claim("carol", "0x1234")
    assert refused.title == "That did not work"
    assert "40 of 0-9 and a-f" in refused.text
    form = club.act("carol", "button", custom_id=refused.button("Try Again"))["modal"]
    assert form["custom_id"] == "holdfast:claim"


def test_it_checks_without_a_press_and_shows_the_result(club: Club):
    asked = club.claim("carol", club.wallet("carol"))
    club.bio("carol", asked.code)
    path = f"interactions/{asked.answer['id']}"
    until(lambda: "Wallet verified" in str(club.product.control(path)["messages"]))


def test_a_linked_wallet_is_never_proved_and_leads_to_the_one_that_its_profile_names(club: Club):
    main = club.wallet("carol").lower()
    linked = "0x" + uuid.uuid4().hex + "0" * 8
    club.product.control(f"opensea/accounts/{linked}", {"linked_to": main}, "PUT")
    asked = club.claim("carol", linked)
    club.bio("carol", asked.code)
    refused = club.press("carol", asked, "Check now")
    assert refused.title == "Not verified"
    assert "OpenSea has linked" in refused.text
    other = club.press("carol", refused, f"Verify {main[:6]}...{main[-4:]}")
    club.bio("carol", other.code)
    assert club.press("carol", other, "Check now").title == "Wallet verified"


def test_a_plain_member_cannot_set_up_and_somebody_with_manage_server_can(club: Club):
    carol = club.people["carol"]["id"]
    status, text = http_status(
        club.product, {"guild": club.name, "user": carol, "kind": "command", "name": "setup"}
    )  # fmt: skip
    assert (status, "does not offer /setup" in text) == (403, True)
    keeper = club.product.control(
        "guilds", {"guild": club.name, "action": "add_role", "name": "Keeper", "permissions": str(1 << 5)}
    )
    club.product.control("members", {"guild": club.name, "user": carol, "action": "add_role", "role": keeper["id"]})
    assert club.ask("carol", "setup").title == "The verification channel is ready"


def test_wallets_are_listed_kept_out_shared_and_removed_after_a_question(club: Club):
    club.make_rule()
    club.buys("carol")
    assert "You have verified no wallet yet." in club.ask("carol", "wallets").text
    club.prove("carol")
    until(lambda: club.logged("role.given"))
    listed = club.ask("carol", "wallets")
    short = f"{club.wallet('carol')[:6]}...{club.wallet('carol')[-4:]}".lower()
    assert short in listed.text.lower()
    assert "do not see" in listed.text
    shared = club.press("carol", listed, "Share with admins")
    assert "**see**" in shared.text
    assert [one["id"] for one in shared.messages] == [one["id"] for one in listed.messages], "it is a switch"
    unused = club.press("carol", listed, "Don't use them here")
    assert "Holder" in unused.field("Removed")
    assert not club.has("carol", "Holder")
    again = club.ask("carol", "wallets")
    assert "Since we last met" not in unused.text + again.text, "the answer itself says which role was removed"
    used = club.press("carol", again, "Use them here")
    assert "Holder" in used.field("Added")

    typed = {"remove": club.wallet("carol")[:6]}
    (choice,) = club.act("carol", "autocomplete", name="wallets", options=typed)["choices"]
    asked = club.ask("carol", "wallets", remove=choice["value"])
    assert asked.title.startswith("Remove 0x")
    kept = club.press("carol", asked, "Keep it")
    assert kept.title == "Your wallets"
    assert [one["id"] for one in kept.messages] == [one["id"] for one in asked.messages], "no question is left"
    menu = next(one["custom_id"] for one in listed.components() if one["type"] == 3)
    chosen = club.act("carol", "select", custom_id=menu, values=[choice["value"]], message_id=listed.messages[0]["id"])
    assert chosen["messages"][0]["embeds"][0]["title"].startswith("Remove 0x")
    removed = club.press("carol", asked, "Remove wallet")
    assert "Holder" in removed.field("Removed")
    assert club.press("carol", asked, "Remove wallet").title == "Your wallets", "a second click finds nothing to do"
    assert "not yours, or was removed" in club.ask("dave", "wallets", remove=choice["value"]).text


def test_a_recheck_says_what_is_unknown_and_why_and_may_not_be_asked_again_at_once(club: Club):
    club.make_rule()
    first = club.ask("carol", "recheck")
    assert first.title == "Looked again"
    assert "counts here" not in first.field("Unknown")
    assert "Holder" in first.field("Not yours")
    second = club.ask("carol", "recheck")
    assert second.title == "Not so fast"
    assert "You can ask again in " in second.text
    assert club.ask("dave", "recheck").title == "Looked again"


def test_a_member_whose_wallets_do_not_count_is_told_so_and_can_change_it_there(club: Club):
    club.make_rule()
    none = "You have verified no wallet yet."
    for answer in (club.ask("carol", "why"), club.ask("carol", "recheck")):
        assert none in answer.text
        form = club.act("carol", "button", custom_id=answer.button("Add a wallet"))["modal"]
        assert form["custom_id"] == "holdfast:claim"
    club.prove("carol")
    assert none not in club.ask("carol", "why").text
    club.press("carol", club.ask("carol", "wallets"), "Don't use them here")
    unused = club.ask("carol", "why")
    assert "In this server your wallets **do not count**." in unused.text
    assert club.press("carol", unused, "Use them here").title == "Changed"
    assert "do not count" not in club.ask("carol", "why").text


def test_rules_and_help_say_what_there_is_to_earn_and_how_to_know_us(club: Club):
    assert "no rules yet" in club.ask("carol", "rules").text
    club.make_rule("Whale")
    rules = club.ask("carol", "rules")
    assert "Whale" in rules.text
    assert "At least 1 token of" in rules.text
    (choice,) = club.act("carol", "autocomplete", name="why", options={"role": "wha"})["choices"]
    assert choice["name"] == "Whale"
    assert "❌ Whale" in club.ask("carol", "why", role=choice["value"]).text
    helped = club.ask("carol", "help")
    order = ("verify", "why", "recheck", "rules", "wallets", "forget", "setup")
    places = [helped.text.index(f"/{name}*") for name in order]
    assert places == sorted(places)
    assert SAFETY in helped.text
    assert "This bot's id is " in helped.text


def test_admins_try_an_address_on_a_rule_and_others_do_not(club: Club):
    rule_id = club.make_rule()
    club.buys("carol")
    (choice,) = club.act("ada", "autocomplete", name="try", options={"rule": ""})["choices"]
    assert choice["value"] == str(rule_id)
    assert club.act("ada", "autocomplete", name="try", options={"rule": "no such rule"})["choices"] == []
    yes = club.ask("ada", "try", rule=choice["value"], address=club.wallet("carol"))
    assert yes.title == "Yes"
    assert "needed 1, held 1" in yes.field("✅ Condition 1")
    assert club.ask("ada", "try", rule=choice["name"], address=club.wallet("dave")).title == "No"
    assert "not a wallet address" in club.ask("ada", "try", rule=choice["value"], address="nothing").text
    assert try_address.NOT_YOURS in club.ask("ada", "try", rule=str(rule_id + 1), address=club.wallet("dave")).text

    body = {"guild": club.name, "user": club.people["carol"]["id"], "kind": "command", "name": "try"}
    status, told = http_status(club.product, body)
    assert (status, "does not offer /try" in told) == (403, True)


def test_somebody_who_asks_to_be_forgotten_confirms_loses_their_roles_and_starts_from_nothing(club: Club):
    club.make_rule()
    club.buys("carol")
    club.prove("carol")
    until(lambda: club.logged("role.given"))
    asked = club.ask("carol", "forget")
    assert f"**Holder** in {club.name} is taken" in asked.text
    assert club.press("carol", asked, "Keep everything").title == "Nothing was deleted"
    assert club.has("carol", "Holder")
    other = club.ask("carol", "forget")
    gone = club.press("carol", club.ask("carol", "forget"), "Forget me")
    assert gone.title == "You are forgotten"
    assert not gone.components(), "the question is answered"
    assert club.press("carol", other, "Keep everything").title == "Nothing to keep", "it would be too late"
    until(lambda: not club.has("carol", "Holder"))
    assert "You have verified no wallet yet." in club.ask("carol", "wallets").text


def test_a_verified_wallet_is_asked_for_no_other_code(club: Club):
    asked = club.claim("carol", club.wallet("carol"))
    club.bio("carol", asked.code)
    assert club.press("carol", asked, "Check now").title == "Wallet verified"
    club.bio("carol", "gm")
    assert club.claim("carol", club.wallet("carol")).title == "Wallet verified"
    assert club.claim("carol", club.wallet("carol"), "transaction").title.startswith("Verify 0x")
    assert club.press("carol", asked, "Check now").title == "Wallet verified"


def test_nonsense_is_refused_with_what_an_address_looks_like(club: Club):
    assert "not a wallet address" in club.claim("carol", "nonsense").text


def test_a_wallet_is_proved_by_a_transaction_that_is_named(club: Club):
    asked = club.claim("carol", club.wallet("carol"), "transaction")
    amount = asked.text.split("**exactly ")[1].split("**")[0]
    wei = int(amount.removeprefix("0.").ljust(18, "0"))
    sent = club.product.control(
        "chains/base/send", {"from": club.wallet("carol"), "to": club.wallet("carol"), "value_wei": str(wei)}
    )
    form = club.act("carol", "button", custom_id=asked.button("I have the hash"))["modal"]
    said = Said(club.act("carol", "modal", custom_id=form["custom_id"], fields={"hash": sent["hash"]}))
    assert said.title == "Wallet verified", said.text


def test_the_words_of_others_are_shown_not_interpreted(club: Club):
    assert club.owner is not None
    made = club.make_rule()
    evil = f"**@everyone** [x](https://evil.example) {uuid.uuid4().hex[:4]}"
    answer = club.owner.client.patch(f"/api/verification-rules/{made}", json={"ruleName": evil})
    assert answer.status_code == 200, answer.text
    text = club.ask("carol", "rules").text
    assert "\\\\*\\\\*\\\\@everyone" in text
    assert "https://" not in text
