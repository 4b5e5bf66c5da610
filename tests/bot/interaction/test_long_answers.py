"""Answers in a server with many rules: nothing is out of a member's reach."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from nextcord import ui

from bot.commands import wallets
from bot.commands.roles import Roles
from bot.interaction.answering import InteractionContext
from bot.interaction.presses import Presses
from bot.messages import sentences
from bot.messages.reply import MOST_FIELDS, Button, Reply
from locales import LANGUAGES, speaking
from models import Rule, transaction
from services.core.actors import Actor
from services.guilds.members import MemberContext
from services.rules import views
from services.rules.views import RuleView
from services.servers import explain
from services.servers.explain import MemberWhy
from services.servers.recheck_report import compare
from services.wallets.wallets import WalletView
from tests.bot.test_sentences import role
from tests.services.conftest import database as database
from tests.support.builders import a_rule, a_server


async def test_every_role_of_many_can_be_reached_and_those_of_the_member_come_first() -> None:
    seen = MemberWhy("1", "carol", tuple(role(f"R{n}", held=n == 59) for n in range(60)), protected=False)
    rules = [
        cast("RuleView", SimpleNamespace(role_name=f"R{n}", state="active", summary="S" * 300, rule_name="Cats"))
        for n in range(60)
    ]
    for make, first in (
        (lambda start: sentences.why(seen, start=start), "R59"),
        (partial(sentences.rules, rules), "R0"),
        (lambda start: sentences.rules(rules[start : start + MOST_FIELDS], start, 60), "R0"),
    ):
        shown, start = list[str](), 0
        while True:
            reply = make(start)
            (embed,) = reply.embeds()
            shown += [re.search(r"R\d+", one.name or "")[0] for one in embed.fields]  # pyright: ignore[reportOptionalSubscript]
            assert embed.footer.text is None
            if (view := reply.view()) is None:
                break
            (button,) = cast("list[ui.Button[Any]]", view.children)
            assert button.label == f"Show more ({60 - len(shown)})"
            verb, _, place = str(button.custom_id).rpartition(":")
            assert verb in {"holdfast:roles", "holdfast:rules"}
            start = int(place)
        assert shown[0] == first
        assert sorted(shown) == sorted(f"R{n}" for n in range(60))
    assert sentences.rules(rules[:1], 25).fields == sentences.rules(rules[:1]).fields


@pytest.mark.usefixtures("database")
async def test_an_answer_reads_no_more_rules_than_it_can_show(monkeypatch: pytest.MonkeyPatch) -> None:
    async with transaction() as db:
        server = await a_server(db)
        for n in range(60):
            (await a_rule(db, server, str(7000 + n), state="shadow" if n == 5 else "active")).role_name = f"R{n}"
    read, view = list[str](), views._view

    def noted(rule: Rule, *rest: Any) -> RuleView:
        read.append(rule.role_name)
        return view(rule, *rest)

    async def found() -> MemberContext:
        return MemberContext(Actor(1, "1", "carol"), server.id or 0, server.discord_id, server.name)

    monkeypatch.setattr(views, "_view", noted)
    cog, context = Roles(Presses()), cast("InteractionContext", SimpleNamespace(find_member=found))
    for start, first, last in ((0, "R0", "R25"), (40, "R41", "R59"), (900, "R0", "R25")):
        read.clear()
        reply = await cog._rules(context, start)
        assert (read[0], read[-1], len(reply.fields)) == (first, last, 59)
        assert reply.embeds()[0].fields[0].name == first


def test_a_report_of_many_roles_says_how_many_it_leaves_out_and_where_they_are() -> None:
    seen = MemberWhy("1", "carol", tuple(role(f"R{n}", held=False) for n in range(60)), protected=False)
    reply = sentences.outcome(compare(seen, frozenset(), None, settled=True), "Looked again")
    ((_, value),) = reply.fields
    *told, rest = value.splitlines()
    assert rest == f"• {60 - len(told)} more"
    assert all(one.endswith("needed 1, held 0") for one in told)
    assert [(one.name, one.label) for one in reply.buttons] == [("holdfast:roles", "My roles")]
    whole = sentences.outcome(
        compare(replace(seen, roles=seen.roles[:3]), frozenset(), None, settled=True), "Looked again"
    )
    assert len(whole.fields[0][1].splitlines()) == 3
    assert not whole.buttons


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_happens_next_is_said_to_its_end_in_every_language(language: str) -> None:
    with speaking(language):
        following = explain._left_alone(datetime(2026, 9, 28, 10, tzinfo=UTC))  # pyright: ignore[reportPrivateUsage]
        one = replace(role("Gold", held=False), next=following, rules=())
        seen = MemberWhy("1", "carol", (one,), protected=False)
        told = sentences.why(seen).fields[0][1]
        reported = sentences.outcome(compare(seen, frozenset(), None, settled=True), "Looked again").fields[0][1]
    for value in (told, reported):
        assert following in value


@pytest.mark.parametrize(
    ("count", "hints"),
    [
        (0, []), (25, ["Remove a wallet"]), (26, ["Remove a wallet (1 to 25)", "Remove a wallet (26 to 26)"]),
        (120, [f"Remove a wallet ({n} to {n + 24})" for n in (1, 26, 51, 76)]),
    ],
)  # fmt: skip
async def test_each_of_a_hundred_wallets_can_be_chosen_for_removal(count: int, hints: list[str]) -> None:
    at = datetime(2026, 9, 28, 10, tzinfo=UTC)
    found = [WalletView(n, f"0x{n:040x}", "ethereum", "opensea_bio", at) for n in range(count)]
    menus = tuple(wallets.menus(found))
    assert [one.placeholder for one in menus] == hints
    assert [int(value) for one in menus for value, _ in one.options] == list(range(min(count, 100)))
    # An older bot takes the chosen value, which comes last, from each of these names too.
    assert {one.name.split(":")[1] for one in menus} <= {"drop"}
    assert len({one.name for one in menus}) == len(menus)
    buttons = tuple(Button(f"holdfast:{n}", "x") for n in range(3))
    view = Reply("Your wallets", buttons=buttons, choices=menus).view()
    assert view is not None
    assert len(view.to_components()) <= 5
