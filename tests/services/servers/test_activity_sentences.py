"""Events in words: every kind that the code records, and the sentences of the kinds with more data."""

import ast
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from locales import speaking
from services.core.audit import EventView
from services.core.event_kinds import EVENT_KINDS
from services.servers.activity_sentences import KnownNames, sentence
from settings import ROOT

CATS = "0x" + "c0" * 20
KNOWN = KnownNames(
    people={"1": "Ada", "2": "Carol", "3": "dave"},
    roles={"9": "Holder"},
    rules={7: "Cats", 8: "Dogs"},
    collections={("base", CATS): "Mellow Cats"},
)
RULE = {
    "name": "Cats", "roleId": "9", "roleName": "Holder", "roleColor": "#5865F2", "state": "active",
    "removal": {"mode": "now", "hours": 0}, "takesOver": False,
    "expression": {"type": "basic", "chain": "base", "contract": CATS, "minTokens": 1},
}  # fmt: skip
NO = {"answer": "no", "chain": "base", "contract": CATS, "needed": 2, "held": "1", "reason": None}


def told(kind: str, *, actor: str | None = "1", subject: str | None = "2", **data: Any) -> str:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    return sentence(EventView(1, at, kind, actor, subject, "9", 7, None, data), KNOWN)


def changed(**fields: Any) -> dict[str, Any]:
    return {"before": RULE, "after": RULE | fields}


@pytest.mark.parametrize(
    ("kind", "data", "words"),
    [
        ("role.given", {"ruleIds": [7, 8]}, "Carol got Holder by “Cats” and “Dogs”."),
        ("role.given", {"ruleIds": [], "gift": True}, "Carol got Holder back, because an admin undid its removal."),
        ("role.taken", {"readings": [NO]}, "Carol lost Holder: holds 1, needs 2 of Mellow Cats on Base."),
        ("role.taken", {"readings": [NO | {"reason": "no wallet on this chain counts here"}]},
         "Carol lost Holder: no wallet on this chain counts here (Base)."),
        ("role.taken", {"readings": [NO | {"answer": "unknown"}, NO | {"type": "any_nft"}]},
         "Carol lost Holder: holds no NFT on Base."),
        ("role.taken", {"readings": [NO | {"type": "token_id", "contract": "0x" + "d0" * 20}]},
         "Carol lost Holder: holds none of the tokens asked for of 0xd0d0...d0d0 on Base."),
        ("role.taken", {"readings": [NO | {"type": "any_nft", "needed": 0, "most": 0}]},
         "Carol lost Holder: holds an NFT on Base, where none is allowed."),
        ("role.taken", {"readings": [NO | {"type": "token_id", "needed": 1, "most": 2, "held": 3}]},
         "Carol lost Holder: holds 3, may hold 1 to 2 of Mellow Cats on Base."),
        ("role.taken", {"readings": [NO | {"excluded": True, "type": "any_nft"}, NO]},
         "Carol lost Holder: holds 1, needs 2 of Mellow Cats on Base."),
        ("role.taken", {"readings": [NO | {"excluded": True, "answer": "yes"}]},
         "Carol lost Holder: meets a condition that must not be met."),
        ("role.taken", {"readings": [NO | {"excluded": True, "reason": "no wallet on this chain counts here"}]},
         "Carol lost Holder: no wallet on this chain counts here (Base)."),
        ("role.taken", {"readings": [NO | {"type": "call"}]},
         "Carol lost Holder: the answer of Mellow Cats on Base is not what the rule asks for."),
        ("role.taken", {"readings": []}, "Carol lost Holder: no rule entitles them to it any more."),
        ("rule.created", {"rule": RULE},
         "Ada created the rule “Cats” for Holder: at least 1 token of Mellow Cats on Base."),
        ("rule.previewed", {"rule": RULE},
         "Ada previewed the rule “Cats”: at least 1 token of Mellow Cats on Base."),
        ("rule.previewed", {"rule": RULE, "deletes": True},
         "Ada previewed deleting the rule “Cats”."),
        ("rule.changed", changed(state="paused"), "Ada changed the rule “Cats”: it is paused now."),
        ("rule.changed", changed(name="Kittens"), "Ada changed the rule “Kittens”: its name was “Cats”."),
        ("rule.changed", changed(removal={"mode": "grace", "hours": 24}),
         "Ada changed the rule “Cats”: roles are taken after 24 hours of grace instead of at once."),
        ("rule.changed", changed(expression=RULE["expression"] | {"minTokens": 3}),
         "Ada changed the rule “Cats”: it asks for at least 3 tokens of Mellow Cats on Base instead of at least 1 "
         "token of Mellow Cats on Base."),
        ("rule.changed", changed(roleId="10", roleName="Whale"),
         "Ada changed the rule “Cats”: it gives Whale instead of Holder."),
        ("rule.changed", changed(roleColor="#2ECC71"),
            "Ada changed the rule “Cats”: its colour is #2ECC71 instead of #5865F2."),
        ("rule.changed", changed(delegated=True),
         "Ada changed the rule “Cats”: it counts what vaults delegated to members' wallets."),
        ("rule.deleted", {"rule": RULE, "holders": 1}, "Ada deleted the rule “Cats”; 1 member had Holder by it."),
        ("breaker.tripped", {"wouldLose": 6, "holders": 10},
         "Removals of Holder are held back: 6 of 10 holders would lose it within a day."),
        ("batch.undone", {"of": "rule.deleted", "rule": RULE}, "Ada brought the rule “Cats” back."),
        ("batch.undone", {"of": "role.taken", "members": 2}, "Ada undid a removal of Holder: 2 members get it back."),
        ("batch.undone", {"of": "rule.migrated", "members": 0},
         "Ada undid the replacement of a contract in the rules."),
        ("batch.undone", {"of": "rule.migration_ended", "members": 0},
         "Ada undid the end of a migration: both contracts count again."),
        ("batch.undone", {"of": "rule.role_replaced", "members": 0},
         "Ada undid the replacement of a role with Holder in the rules."),
        ("recheck.asked", {}, "Ada had Carol checked again."),
        ("member.protected", {"protected": True}, "Ada protected Carol: nothing is taken from them."),
        ("member.protected", {"protected": False}, "Ada no longer protects Carol."),
        ("role.protected", {"protected": True}, "Ada protected Holder: it is taken from nobody."),
        ("role.protected", {"protected": False}, "Ada no longer protects Holder."),
        ("server.exported", {}, "Ada downloaded the rules and the list of members."),
        ("rule.imported", {"source": "guild", "rules": 12, "skipped": 1},
         "Ada imported 12 rules from Guild in shadow; 1 entry was skipped."),
        ("bot.left", {"removalsLeftUndone": 0}, "HoldfastBot left the server."),
        ("bot.left", {"removalsLeftUndone": 1}, "HoldfastBot left the server; 1 removal was not finished."),
        ("rule.imported", {"source": "holdfast", "rules": 1, "skipped": 0}, "Ada imported 1 rule in shadow."),
        ("rule.exported", {"rules": 3}, "Ada downloaded 3 rules as a document."),
        ("channel.repaired", {"done": ["Created the channel #verify.", "Posted the panel."]},
         "Ada set up the verification channel: created the channel #verify, posted the panel."),
        ("channel.repaired", {}, "Ada set up the verification channel."),
        ("something.new", {}, "Something new."),
    ],
)  # fmt: skip
def test_a_line_is_told_in_a_sentence(kind: str, data: dict[str, Any], words: str) -> None:
    assert told(kind, **data) == words


@pytest.mark.parametrize("kind", [kind for kind, one in EVENT_KINDS.items() if one.undoable])
def test_the_undo_of_each_kind_has_a_sentence_of_its_own(kind: str) -> None:
    other = told("batch.undone", of="something.new", members=0)
    assert kind == "role.taken" or told("batch.undone", of=kind, members=0) != other


@pytest.mark.parametrize("kind", EVENT_KINDS)
def test_a_reader_of_another_language_finds_no_english_sentence(kind: str) -> None:
    english = told(kind, readings=[NO], reason="The role was deleted in Discord. Choose another role for this rule.")
    with speaking("ja"):
        line = told(kind, readings=[NO], reason="The role was deleted in Discord. Choose another role for this rule.")
    assert line != english
    names = "Ada|Carol|Holder|Cats|Mellow|Base|Discord|HoldfastBot|Holdfast|ID|API|Webhook"
    assert re.findall(r"[A-Za-z]{2,}", re.sub(names, "", line)) == []


def test_who_is_not_known_is_told_by_id_and_who_was_forgotten_by_no_name() -> None:
    assert told("recheck.asked", actor="77") == "Somebody (ID 77) had Carol checked again."
    assert (
        told("role.lost", subject="forgotten-abc") == "Somebody else took Holder from a member who deleted their data."
    )
    assert (
        told("rule.paused", actor=None, reason="The role is gone.") == "The rule “Cats” was paused: The role is gone."
    )


def kinds(call: ast.Call) -> set[str]:
    """Return the kinds that a call of `line` or `role_line` may record: its first argument, or each of its branches."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if name not in {"line", "_line", "role_line"} or not call.args:
        return set()
    texts = (one.value for one in ast.walk(call.args[0]) if isinstance(one, ast.Constant))
    return {text for text in texts if isinstance(text, str) and "." in text}


def test_every_kind_that_the_code_records_is_declared_with_a_sentence() -> None:
    texts = (path.read_text() for room in ("services", "bot", "jobs") for path in (ROOT / room).rglob("*.py"))
    recorded = {
        kind
        for text in texts
        if "line(" in text  # parsing the others, which are most, would take longer than the rest of this test
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        for kind in kinds(node)
    }
    assert {"role.given", "role.taken", "rule.deleted"} <= recorded
    assert recorded - EVENT_KINDS.keys() == set()
    for kind in EVENT_KINDS:
        assert told(kind).endswith((".", ": "))
