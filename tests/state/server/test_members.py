"""The Members tab: its list, its search, the reasons for a role, and the progress of a re-check."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlmodel import col, delete, select

from models import Due, Grant, Member, MemberChoice, Observation, Rule, Server, User, now, transaction
from services.core.errors import MemberNotFound
from services.servers import member_list
from state.dashboard.server_page import ServerPageState
from state.server.members import EVERYBODY, MembersState
from tests.state.conftest import SignIn, Tab
from tests.state.towns import opened, with_rule
from tests.support.builders import a_grant, a_member, address


@pytest.fixture
async def made(sign_in: SignIn) -> tuple[Tab, dict[str, Any]]:
    """ada's tab, and the rule of her server."""
    tab, browser = await sign_in("ada")
    return tab, await with_rule(browser)


async def somebody(made: dict[str, Any], name: str, amount: int | None = None) -> str:
    """Make a member with a wallet that holds so much, and return their Discord id."""
    async with transaction() as db:
        wallet = None if amount is None else address()
        member = await a_member(db, await db.get_one(Server, made["serverId"]), wallet=wallet)
        member.name = name
        if wallet is not None:
            db.add(
                Observation(
                    chain="base", contract=made["contractAddress"], address=wallet, amount=Decimal(amount or 0),
                    block=1234, source="Base node 1",
                )
            )  # fmt: skip
        return member.discord_id


async def test_members_are_searched_and_one_is_opened(made: tuple[Tab, dict[str, Any]]) -> None:
    tab, rule = made
    await somebody(rule, "Zoë")
    carol = await somebody(rule, "Carol", 2)
    state = await opened(tab, MembersState, rule["serverId"], "members")
    assert [(row.name, row.wallets) for row in state.rows] == [("Carol", "1 wallet"), ("Zoë", "No wallet counts here")]
    await tab.run(state.search("zo"))
    assert [row.name for row in state.rows] == ["Zoë"]
    await tab.run(state.search("nobody"))
    assert (state.rows, state.total, state.query) == ([], 0, "nobody")
    await tab.run(state.search(""))
    await tab.run(state.toggle(carol))
    (role,) = state.why
    assert (state.why_of, role.name, role.status, role.held) == (carol, "Holder", "Does not have it", False)
    assert role.then == "Given at the next check, within moments."
    (told,) = role.rules
    (line,) = told.lines
    assert (told.outcome, line.outcome, line.amount) == ("yes", "yes", "Holds 2, needs 1")
    assert line.seen == "Read from Base node 1, block 1,234, just now"
    assert line.wallet == "", "without consent no address is shown"
    await tab.run(state.toggle(carol))
    assert state.opened == ""


async def test_a_member_who_lets_no_wallet_count_here_is_not_said_to_have_none(
    made: tuple[Tab, dict[str, Any]],
) -> None:
    tab, rule = made
    carol = await somebody(rule, "Carol", 2)
    async with transaction() as db:
        user_id = (await db.exec(select(User.id).where(User.discord_id == carol))).one() or 0
        db.add(MemberChoice(server_id=rule["serverId"], user_id=user_id, use_wallets=False))
    state = await opened(tab, MembersState, rule["serverId"], "members", member=carol)
    assert [row.wallets for row in state.rows] == ["No wallet counts here"]
    (line,) = state.why[0].rules[0].lines
    assert line.amount == "Holds 0, needs 1 (no wallet on this chain counts here)"


async def test_who_is_open_stays_open_while_the_search_still_finds_them(made: tuple[Tab, dict[str, Any]]) -> None:
    tab, rule = made
    await somebody(rule, "Zoë")
    carol = await somebody(rule, "Carol", 2)
    state = await opened(tab, MembersState, rule["serverId"], "members")
    await tab.run(state.toggle(carol))
    await tab.run(state.search("caro"))
    assert ([row.id for row in state.rows], state.opened, state.why_of, len(state.why)) == ([carol], carol, carol, 1)
    await tab.run(state.search("zo"))
    assert state.opened == ""
    await tab.run(state.search(""))
    assert state.opened == ""


async def test_bots_are_not_among_the_members(made: tuple[Tab, dict[str, Any]]) -> None:
    tab, rule = made
    carol, other_bot = await somebody(rule, "Carol", 2), await somebody(rule, "Music")
    async with transaction() as db:
        (await db.get_one(Member, (rule["serverId"], other_bot))).bot = True
    state = await opened(tab, MembersState, rule["serverId"], "members")
    assert ([row.id for row in state.rows], state.total) == ([carol], 1)
    await tab.run(state.search(other_bot))
    assert (state.rows, state.total) == ([], 0)
    state = await opened(tab, MembersState, rule["serverId"], "members", member=other_bot)
    assert (state.rows, state.opened) == ([], "")
    with pytest.raises(MemberNotFound):
        await tab.run(state.check(other_bot))


async def test_the_address_can_name_somebody_to_open(made: tuple[Tab, dict[str, Any]]) -> None:
    tab, rule = made
    await somebody(rule, "Zoë")
    carol = await somebody(rule, "Carol", 2)
    state = await opened(tab, MembersState, rule["serverId"], "members")
    assert state.search_key == 0, "the input stays: somebody may type in it already"
    state = await opened(tab, MembersState, rule["serverId"], "members", member=carol)
    assert ([row.id for row in state.rows], state.opened, state.why_of) == ([carol], carol, carol)
    assert state.search_key == 1, "a new input shows whom the link names"
    await tab.run(state.search("zo"))
    await tab.run(state.load())
    assert ([row.name for row in state.rows], state.query) == (["Zoë"], "zo"), "a reconnect keeps the search"
    state = await opened(tab, MembersState, rule["serverId"], "members", member="<script>")
    assert (state.rows, state.opened) == ([], "")


async def test_a_recheck_is_followed_also_if_somebody_else_asked_for_it(made: tuple[Tab, dict[str, Any]]) -> None:
    tab, rule = made
    for name in ("Carol", "Dave"):
        await somebody(rule, name, 1)
    state = await opened(tab, MembersState, rule["serverId"], "members")
    async with transaction() as db:
        assert await db.try_lock(f"recheck:{rule['serverId']}")
        await tab.run(state.check_everybody())
    assert (state.checking, state.asked) == (EVERYBODY, 2)


async def test_many_members_are_turned_page_by_page(made: tuple[Tab, dict[str, Any]]) -> None:
    tab, rule = made
    async with transaction() as db:
        db.add_all(Member(server_id=rule["serverId"], discord_id=str(10**17 + n), name=f"m{n:02}") for n in range(60))
    state = await opened(tab, MembersState, rule["serverId"], "members")
    assert (len(state.rows), state.page, state.pages, state.total) == (50, 1, 2, 60)
    for by, page in ((1, 2), (1, 2), (-1, 1), (-9, 1)):
        await tab.run(state.turn(by))
        assert state.page == page


async def test_a_recheck_is_followed_until_everybody_was_reconciled(made: tuple[Tab, dict[str, Any]]) -> None:
    tab, rule = made
    state = await opened(tab, MembersState, rule["serverId"], "members")
    await tab.run(state.check_everybody())
    assert state.checking == ""
    assert (await tab.toast()).startswith("Nobody to check")
    carol, _ = await somebody(rule, "Carol", 2), await somebody(rule, "Dave", 0)
    await tab.run(state.check_everybody())
    assert (state.checking, state.asked, state.left) == (EVERYBODY, 2, 2)
    await tab.run(state.follow())
    assert state.left == 2
    async with transaction() as db:
        await db.exec(delete(Due))
    await tab.run(state.follow())
    assert (state.left, len(state.rows)) == (0, 2)
    await tab.run(state.follow())
    assert state.checking == ""
    assert (await tab.toast()).startswith("Checked again")
    await tab.run(state.check(carol))
    assert (state.checking, state.asked) == (carol, 1)
    await tab.run(state.follow())
    assert state.left == 1


async def decided(rule: dict[str, Any], discord_id: str, at: datetime) -> Grant:
    """End all waiting rechecks; one has decided at this time to give the member the rule's role."""
    async with transaction() as db:
        await db.exec(delete(Due))
        member = await db.get_one(Member, (rule["serverId"], discord_id))
        grant = await a_grant(db, member, await db.get_one(Rule, rule["id"]), state="giving")
        grant.intended_at = at
        return grant


async def test_a_recheck_ends_only_when_the_roles_that_it_decided_on_are_written(
    made: tuple[Tab, dict[str, Any]],
) -> None:
    tab, rule = made
    carol = await somebody(rule, "Carol", 2)
    state = await opened(tab, MembersState, rule["serverId"], "members")
    await tab.run(state.toggle(carol))
    await tab.run(state.check(carol))
    grant = await decided(rule, carol, now())
    for _look in range(3):
        await tab.run(state.follow())
        assert (state.checking, state.left, await tab.toast()) == (carol, 0, ": ")
    async with transaction() as db:
        member = await db.get_one(Member, (rule["serverId"], carol))
        member.roles = [rule["roleId"]]
        (await db.get_one(Grant, grant.id)).state = "held"
    await tab.run(state.follow())
    assert (state.checking, state.why[0].status) == ("", "Has it, from Holdfast")
    assert (await tab.toast()).startswith("Checked again")


async def test_a_recheck_does_not_wait_for_a_role_that_discord_has_not_taken_for_a_minute(
    made: tuple[Tab, dict[str, Any]],
) -> None:
    tab, rule = made
    carol = await somebody(rule, "Carol", 2)
    state = await opened(tab, MembersState, rule["serverId"], "members")
    await tab.run(state.check_everybody())
    await decided(rule, carol, now() - timedelta(minutes=2))
    await tab.run(state.follow())
    await tab.run(state.follow())
    assert state.checking == ""


async def test_nobody_else_sees_or_checks_anybody(made: tuple[Tab, dict[str, Any]], sign_in: SignIn) -> None:
    _, rule = made
    await somebody(rule, "Carol", 2)
    tab, _ = await sign_in("mallory")
    state = await opened(tab, MembersState, rule["serverId"], "members")
    assert (await tab.state(ServerPageState)).missing
    assert state.rows == []
    for asked in (state.search("c"), state.toggle("1"), state.follow()):
        await tab.run(asked)
    assert state.rows == []
    assert state.why == []


async def test_a_page_whose_members_are_gone_gives_way_to_the_last_one(
    made: tuple[Tab, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    tab, rule = made
    monkeypatch.setattr(member_list, "PAGE_SIZE", 1)
    await somebody(rule, "Carol")
    zoe = await somebody(rule, "Zoë")
    state = await opened(tab, MembersState, rule["serverId"], "members")
    await tab.run(state.turn(1))
    assert [row.name for row in state.rows] == ["Zoë"]
    async with transaction() as db:
        await db.exec(delete(Member).where(col(Member.discord_id) == zoe))
    await tab.run(state.load())
    assert (state.page, state.pages, [row.name for row in state.rows]) == (1, 1, ["Carol"])
