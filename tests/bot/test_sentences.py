"""What the bot says, without a Discord: within its limits, with other people's words shown unchanged."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from nextcord import Embed

from bot.client import build
from bot.commands import cogs, try_address, verify, wallets
from bot.commands.help import HelpCommand
from bot.commands.verify import Verify
from bot.interaction.answering import InteractionContext, distinct
from bot.interaction.forms import filled_in
from bot.interaction.presses import Presses
from bot.messages import sentences, verify_sentences
from bot.messages.reply import Button, Reply
from models import now
from services.core.actors import Actor
from services.core.discord_text import plain
from services.guilds.members import MemberContext
from services.holdings.requirement_view import RequirementView
from services.rules.views import RuleName, RuleView
from services.servers.explain import MemberWhy, RoleWhy, RuleWhy
from services.servers.recheck_report import compare
from services.wallets import bio_schedule
from services.wallets.ownership import LinkedProfile, Verdict
from services.wallets.transaction_check import ask
from services.wallets.wallets import ChallengeView, WalletView
from settings import ROOT

ADDRESS = "0x" + "ab" * 20
ASKED = ChallengeView(
    code="holdfast-abcdefghjk", handle_marker="holdfast:carol", family="evm", address=ADDRESS, name=None,
    expires_at=now(), profile_url="https://opensea.example", chains=(ask("base", ADDRESS, 123, "holdfast-abcdefghjk"),),
    memo=None,
)  # fmt: skip


def role(name: str, *, held: bool, outcome: str = "no", state: str = "active", reason: str | None = None) -> RoleWhy:
    one = RequirementView("A cat", 1, 0, None, "base", None, None, None, outcome, reason, None, ("1", "0"))
    return RoleWhy(name, name, (RuleWhy(1, "Cats", state, outcome, (one,)),), held, held, "Something.")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("**bold** _it_", "\\*\\*bold\\*\\* \\_it\\_"),
        ("[x](https://evil.example)", "\\[x\\](https evil.example)"),
        ("@everyone <@&1>", "\\@everyone \\<\\@&1>"),
        ("a\n\n# b", "a # b"),
        ("# big", "\\# big"),
        ("holdfast-abc", "holdfast-abc"),
        ("\u202eelohW", "elohW"),
        ("👨\u200d👩\u200d👧 می\u200cخواهم", "👨\u200d👩\u200d👧 می\u200cخواهم"),
    ],
)
def test_sentences_of_others_are_shown_as_they_are(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_choices_of_one_name_can_each_be_chosen() -> None:
    roles = [("Holder", "1"), ("Holder", "2"), ("Holder", "1"), ("h" * 100, "3"), ("h" * 101, "4")]
    assert distinct(roles) == {"Holder": "1", "Holder (2)": "2", "h" * 100: "3", "h" * 94 + " (2)": "4"}
    assert len(distinct((str(number), str(number)) for number in range(30))) == 25


def test_a_rule_whose_name_is_the_number_of_another_one_is_not_tried_in_its_place() -> None:
    named = ((1, "2"), (2, "Gold"), (4, "gold"))
    rules = [cast("RuleName", SimpleNamespace(id=number, rule_name=name)) for number, name in named]
    wanted = {
        "1": 1, "2": 2, "Gold": 2, "gold": 4, "GOLD": 2, "2 (rule 1)": 1, "gOLD (rule 4)": 4, "3": None, "": None,
    }  # fmt: skip
    found = {typed: try_address.meant(rules, typed) for typed in wanted}
    assert {typed: rule and rule.id for typed, rule in found.items()} == wanted


def test_a_typed_address_can_mean_several_wallets_and_a_chosen_one_only_itself() -> None:
    address = "0x" + "ab" * 20
    base, polygon, other = (
        WalletView(number, one, chain, "transaction", now(), only_on=chain)
        for number, one, chain in ((1, address, "base"), (2, address, "polygon"), (3, "0x" + "cd" * 20, "base"))
    )
    short = base.short_address
    for typed in (address, address.upper(), base.short_address, f" {base.short_address} "):
        assert wallets.meant([base, polygon, other], typed) == [base, polygon], typed
    assert wallets.meant([base, polygon, other], "2") == [polygon]
    assert wallets.meant([base, polygon, other], other.short_address) == [other]
    assert wallets.meant([base, polygon, other], "4") == []
    assert (wallets.label(base), wallets.label(polygon)) == (f"{short} (Base)", f"{short} (Polygon)")


def test_what_changed_is_told_apart_from_what_stays_and_what_is_unknown() -> None:
    seen = MemberWhy("1", "carol", (
        role("New", held=True, outcome="yes"), role("Old", held=True, outcome="yes"), role("Gone", held=False),
        role("Never", held=False), role("Dark", held=True, outcome="unknown", reason="Base does not answer"),
        role("Resting", held=True, outcome="unknown", state="paused"),
    ), protected=False)  # fmt: skip
    found = compare(seen, frozenset({"Old", "Gone", "Dark", "Resting"}), None, settled=True)
    named = {
        name: [one.name for one in getattr(found, name)] for name in ("added", "removed", "stays", "missing", "unknown")
    }
    assert named == {
        "added": ["New"], "removed": ["Gone"], "stays": ["Old", "Dark", "Resting"], "missing": ["Never"],
        "unknown": ["Dark"],
    }  # fmt: skip
    assert found.unknown[0].text == "Base does not answer"
    assert [one.text for one in (*found.removed, *found.missing)] == ["A cat: needed 1, held 0"] * 2
    # What a composed rule lacks does not fit into a line: one of its parts may be something that must not be held.
    composed = replace(seen.roles[3], rules=(replace(seen.roles[3].rules[0], requirements=()),))
    (line,) = compare(replace(seen, roles=(composed,)), frozenset(), None, settled=True).missing
    assert line.text == "Cats is not fulfilled"
    shown = sentences.outcome(replace(found, settled=False), "Looked again")
    assert [name for name, _ in shown.fields] == [
        "Added", "Removed", "Stays", "Not yours", "Unknown", "Still under way",
    ]  # fmt: skip


def test_a_transaction_is_asked_for_with_its_exact_amount_and_whose_it_is() -> None:
    reply = verify_sentences.challenge(ASKED, "transaction", "carol")
    assert "**exactly 0.000000000000000123**" in reply.text
    assert "Base (ETH)" in reply.text
    assert "for **you, @carol**" in reply.text
    assert [one.label for one in reply.buttons] == ["Check now", "I have the hash"]
    memo = verify_sentences.challenge(
        replace(ASKED, chains=(), memo=ASKED.code, family="solana"), "transaction", "carol"
    )
    assert "**memo**" in memo.text
    assert all("http" not in one.text for one in (reply, memo))


def test_while_opensea_allows_no_look_the_other_way_is_a_button() -> None:
    verdict = Verdict(False, "OpenSea lets us look at no more profiles right now.", again=True, wait=290)
    reply = verify_sentences.not_yet(verdict, ADDRESS, "opensea_bio")
    assert "I check again automatically in 5 minutes." in reply.text
    assert [one.label for one in reply.buttons] == ["Check now", "Use Transaction Proof"]
    assert reply.buttons[-1].name == f"holdfast:address:transaction:{ADDRESS}"
    short = verify_sentences.challenge(replace(ASKED, shortage="No more profiles."), "opensea_bio", "carol")
    assert "No more profiles." in short.text
    assert [one.label for one in short.buttons] == ["Check now", "Use Transaction Proof"]
    by_transaction = verify_sentences.challenge(replace(ASKED, shortage="No more profiles."), "transaction", "carol")
    assert "No more profiles." not in by_transaction.text


async def test_a_wallet_that_no_bio_verifies_leads_to_the_other_way() -> None:
    refused = Verdict(False, "It is a contract: choose Transaction Proof.", by_transaction=True)
    (button,) = verify_sentences.not_yet(refused, ADDRESS, "opensea_bio").buttons
    assert (button.label, button.name) == ("Use Transaction Proof", f"holdfast:address:transaction:{ADDRESS}")
    assert not verify_sentences.not_yet(replace(refused, by_transaction=False), ADDRESS, "opensea_bio").buttons
    (_, methods) = verify.claim_form().to_dict()["components"]
    named = [option["label"] for option in methods["component"]["options"]]
    assert named == ["OpenSea Profile Bio", "Transaction Proof"], "as the sentences call them"


def test_a_linked_wallet_leads_to_the_one_that_its_profile_names() -> None:
    main = "0x" + "ab" * 20
    linked = LinkedProfile(main, "carols", "https://opensea.io/x")
    reply = verify_sentences.not_yet(Verdict(False, "OpenSea has linked it.", linked=linked), ADDRESS, "opensea_bio")
    assert [(one.label, one.name) for one in reply.buttons] == [
        ("Verify 0xabab...abab", f"holdfast:address:opensea_bio:{main}"),
        ("Use Transaction Proof", f"holdfast:address:transaction:{ADDRESS}"),
    ]
    assert all(len(one.name) <= 100 for one in reply.buttons)


def test_a_name_is_confirmed_by_the_address_it_stands_for() -> None:
    reply = verify_sentences.confirm(replace(ASKED, name="carol.eth"), "transaction")
    assert "carol.eth stands for" in reply.text
    (button,) = reply.buttons
    assert button.name == f"holdfast:address:transaction:{ADDRESS}"


async def test_no_answer_of_the_bots_calls_anybody() -> None:
    bot = build()
    try:
        assert bot.allowed_mentions is not None
        assert bot.allowed_mentions.to_dict() == {"parse": []}
    finally:
        await bot.close()


async def test_help_has_every_registered_command_with_its_description() -> None:
    bot = build()
    try:
        interaction: Any = SimpleNamespace(client=bot, application_id=77)
        (service,) = (one for one in bot.cogs.values() if isinstance(one, HelpCommand))
        said = await service._help(InteractionContext(interaction, "1", "2", "carol"))
        registered = {str(one.name): one.description for one in bot.get_all_application_commands()}
    finally:
        await bot.close()
    told = dict(line.removeprefix("**/").split("**: ", 1) for line in said.text.splitlines())
    del registered["help"]
    assert {name: text.lower() for name, text in told.items()} == {n: t.lower() for n, t in registered.items()}
    assert told["verify"] == "verify that a wallet is yours, without connecting it"
    # Commands for some people come after those for everybody.
    names = list(told)
    assert names.index("verify") < names.index("why") < names.index("setup")
    assert "This bot's id is 77." in said.fields[0][1]


def test_every_command_that_the_readme_names_is_there() -> None:
    (row,) = re.findall(r"^\| In Discord \| (.+) \|$", (ROOT / "README.md").read_text(), re.M)
    named = set(re.findall(r"`/(\w+)`", row))
    assert "help" in named
    assert named - {one.name for cog in cogs(Presses()) for one in cog.application_commands} == set()


async def test_a_reply_stays_within_discords_limits_and_its_view_is_finished() -> None:
    fields = tuple((f"Role {n}", "x" * 2000) for n in range(40))
    reply = Reply("Roles", "t" * 9000, fields=fields, buttons=(Button("holdfast:x", "X"),))
    (embed,) = reply.embeds()
    assert len(embed) <= 6000
    assert len(embed.fields) <= 25
    assert all(len(one.value or "") <= 1024 for one in embed.fields)
    assert embed.footer.text
    view = reply.view()
    assert view is not None
    assert view.is_finished()


@pytest.mark.parametrize(
    "rows",
    [
        [
            {"type": 18, "component": {"custom_id": "a", "value": "1"}},
            {"component": {"custom_id": "b", "values": ["2"]}},
        ],
        [{"type": 1, "components": [{"custom_id": "a", "value": "1"}, {"custom_id": "b", "value": "2"}]}],
    ],
)
def test_a_form_is_read_in_both_layouts(rows: object) -> None:
    assert filled_in({"components": rows}) == {"a": "1", "b": "2"}


@pytest.mark.parametrize("rows", [None, "x", [1], [{"component": 3}], [{"components": [None, {"custom_id": 5}]}]])
def test_a_form_of_another_shape_is_empty(rows: object) -> None:
    assert filled_in({"components": rows}) == {}


@dataclass
class Search:
    """carol's searches for proofs, with what each check finds, and what the bot shows: the address and the reply."""

    finds: dict[str, Verdict]
    shown: list[tuple[str, Reply]]
    cog: Verify
    user_id: int = 1
    """Her number in our database by now; the searches begin with 1."""

    def context(self, address: str) -> InteractionContext:
        """Return the context of one of her interactions, with the address in the interaction's place."""
        search = self

        class Context(InteractionContext):
            async def find_member(self, *, keep: bool = False) -> MemberContext:
                return MemberContext(Actor(search.user_id, "2", "carol"), 1, "1", "Cats")

        return Context(cast("Any", address), "1", "2", "carol")

    def begin(self, address: str, method: str = "opensea_bio", first: float = 0.0) -> None:
        """Begin a search whose first check comes after so many seconds, and is the only one."""
        member = MemberContext(Actor(1, "2", "carol"), 1, "1", "Cats")
        looks = bio_schedule.BioChecks(next_in=first)
        self.cog._look_on(verify.ProofSearch(self.context(address), member, address, method, looks))

    async def end(self) -> None:
        """Wait until all searches have ended."""
        await asyncio.gather(*self.cog.tasks())


@pytest.fixture
def search(monkeypatch: pytest.MonkeyPatch) -> Search:
    made = Search({}, [], Verify(Presses()))

    async def check_again(_db: object, _outside: object, _actor: Actor, address: str, _method: str) -> Verdict:
        return made.finds[address]

    async def show(interaction: Any, reply: Reply) -> bool:
        made.shown.append((interaction, reply))
        return True

    async def held(_member: MemberContext) -> frozenset[str]:
        return frozenset()

    async def result(_member: object, _before: object, title: str, text: str) -> Reply:
        return Reply(title, text, "good")

    @asynccontextmanager
    async def transaction() -> AsyncIterator[None]:
        yield

    monkeypatch.setattr(bio_schedule.BioChecks, "after", lambda _self, **_more: bio_schedule.BioChecks(next_in=None))
    monkeypatch.setattr(verify.wallets, "check_again", check_again)
    monkeypatch.setattr(verify.recheck_wait, "held", held)
    monkeypatch.setattr(verify.recheck_wait, "result", result)
    for name, value in (("transaction", transaction), ("gateways", lambda: None), ("show", show)):
        monkeypatch.setattr(verify, name, value)
    return made


async def test_a_search_that_is_refused_says_why(search: Search) -> None:
    search.finds[ADDRESS] = Verdict(False, "Somebody else has verified this wallet.")
    search.begin(ADDRESS)
    await search.end()
    assert [(reply.title, reply.text) for _, reply in search.shown] == [
        ("Not verified", "Somebody else has verified this wallet.")
    ]


async def test_a_solana_wallet_is_not_asked_for_a_bio(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = replace(ASKED, chains=(), memo=ASKED.code, family="solana", address="So1" * 12)

    async def challenge(*_: object) -> ChallengeView:
        return asked

    async def spend(*_: object) -> None: ...

    monkeypatch.setattr(verify.wallets, "challenge", challenge)
    monkeypatch.setattr(verify.rate_limits, "spend", spend)
    reply = await search.cog._claim(search.context(asked.address), asked.address, "opensea_bio")
    assert "choose Transaction Proof" in reply.text
    assert [one.name for one in reply.buttons] == [f"holdfast:address:transaction:{asked.address}"]
    assert not search.cog.tasks()


async def test_a_search_ends_for_somebody_who_is_forgotten_meanwhile(search: Search) -> None:
    search.finds[ADDRESS] = Verdict(False, "Your code was not found in the bio yet.", again=True)
    search.user_id = 0
    search.begin(ADDRESS)
    await search.end()
    ((_, reply),) = search.shown
    assert (reply.title, reply.buttons) == ("Not verified", ())
    assert reply.text == "Your code was deleted with everything about you. Ask for a new one."


async def test_a_proved_wallet_ends_no_search_for_another_one(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    async def verified(*_: object) -> Verdict:
        return Verdict(True, "Your wallet has been successfully verified!")

    async def spend(*_: object) -> None: ...

    monkeypatch.setattr(verify.wallets, "verify", verified)
    monkeypatch.setattr(verify.rate_limits, "spend", spend)
    other = "0x" + "cd" * 20
    search.finds[other] = Verdict(True, "Your wallet has been successfully verified!")
    search.begin(ADDRESS, first=60.0)
    search.begin(other, first=0.2)
    await search.cog._check(search.context(ADDRESS), ADDRESS, "opensea_bio")
    await search.end()
    assert [(address, reply.title) for address, reply in search.shown] == [(other, "Wallet verified")]


async def test_one_person_has_few_searches(search: Search) -> None:
    for number in range(verify.MOST_SEARCHES + 2):
        search.begin(f"0x{number:040x}", first=60.0)
    assert len(search.cog.tasks()) == verify.MOST_SEARCHES
    for task in search.cog.tasks():
        task.cancel()


def test_a_roles_next_step_is_never_cut_off() -> None:
    one = RequirementView("A cat " * 40, 1, 0, None, "base", None, None, None, "no", "r" * 120, None, ("1", "0"))
    rules = tuple(RuleWhy(number, "Cats", "active", "no", (one,) * 3) for number in range(3))
    seen = MemberWhy("1", "carol", (RoleWhy("1", "Holder", rules, True, True, "Taken on Monday."),), protected=False)
    (embed,) = sentences.why(seen).embeds()
    value = embed.fields[0].value or ""
    assert len(value) <= 1024
    assert value.endswith("\n*Taken on Monday.*")
    assert "…" in value


@pytest.mark.parametrize(
    ("wanted", "titles", "note"),
    [
        ("", ["Gold", "Blue"], False), ("Blue", ["Blue"], False), ("Silver **x**", ["Gold", "Blue"], True),
        ("bLUE", ["Blue"], False), ("<@&Gold>", ["Gold"], False),
    ],
)  # fmt: skip
def test_a_role_that_no_rule_is_about_is_said_before_all_the_others(wanted: str, titles: list[str], note: bool) -> None:
    seen = MemberWhy("1", "carol", (role("Gold", held=True), role("Blue", held=False)), protected=False)
    reply = sentences.why(seen, wanted)
    assert [title.split()[1].rstrip(":") for title, _ in reply.fields] == titles
    assert reply.text == (
        "No rule here is about a role named Silver \\*\\*x\\*\\*, so these are all the roles." if note else ""
    )


def test_each_role_of_the_typed_name_is_explained() -> None:
    two = (role("Gold", held=True), replace(role("Gold", held=False), role_id="2"), role("Blue", held=False))
    reply = sentences.why(MemberWhy("1", "carol", two, protected=False), "gold")
    assert [title for title, _ in reply.fields] == ["✅ Gold: you have it", "❌ Gold: you do not have it"]


def test_a_roles_name_is_no_markup_in_a_heading_either() -> None:
    seen = MemberWhy("1", "carol", (role("||x|| \u202e__y__", held=True),), protected=False)
    assert sentences.why(seen).fields[0][0] == "✅ \\|\\|x\\|\\| \\_\\_y\\_\\_: you have it"
    for state, shown in (("active", "\\_Cats\\_"), ("paused", "\\_Cats\\_ (paused)")):
        one = SimpleNamespace(role_name="_Cats_", state=state, summary="One", rule_name="R")
        assert sentences.rules([cast("RuleView", one)]).fields[0][0] == shown
    nameless = SimpleNamespace(role_name="\u200b\u200d", state="active", summary="One", rule_name="R")
    assert sentences.rules([cast("RuleView", nameless)]).fields[0][0] == "Unknown Role"


def test_a_reply_says_when_it_has_more_fields_than_fit() -> None:
    fields = tuple((f"Role {number}", "x") for number in range(26))
    assert Reply("Roles to earn", fields=fields[:25]).embeds()[0].footer.text is None
    assert Reply("Roles to earn", fields=fields).embeds()[0].footer.text is not None


def test_a_reply_below_long_notices_stays_within_discords_limits() -> None:
    before = (Embed(title="Since we last met", description="n" * 3000),)
    fields = tuple((f"Role {n}", "x" * 2000) for n in range(40))
    embeds = Reply("Roles", "t" * 9000, fields=fields).after(before).embeds()
    assert sum(len(one) for one in embeds) <= 6000
    assert embeds[-1].title == "Roles"


def test_the_choices_for_a_server_are_said_below_many_wallets() -> None:
    found = [WalletView(number, ADDRESS, "ethereum", "opensea_bio", now()) for number in range(100)]
    text = sentences.wallets(found, None)
    assert f"`{found[0].short_address}` (Ethereum), verified by" in text
    (embed,) = Reply("Your wallets", text).embeds()
    assert (embed.description or "").endswith("Its admins **do not see** their addresses.")
