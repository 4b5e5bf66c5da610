"""What the followers watch: it is read again when something changes, and leaves out what is in quarantine."""

import asyncio

import pytest
from sqlalchemy import text

from gateways.chains.balance_sheet import NATIVE
from gateways.evm.transfer_logs import COINS, CONTRACTS, WALLETS
from models import AsyncSession, Delegation, Member, Rule, Server, User, transaction
from services.core import queue
from services.rules.expression import Requirement, to_document
from services.rules.types.coin import CoinAmount
from services.triggers import quarantine, watch_list
from services.triggers.chain_cursor import ANY
from services.triggers.watch_list import Watched, WatchList
from tests.support.builders import CONTRACT, a_member, a_rule, a_server, address, snowflake
from tests.support.statements import Statements

pytestmark = pytest.mark.usefixtures("database")

ANYTHING = to_document(Requirement("any_nft", "base", "any"))
FLOOD = {CONTRACT: "Base (node 1): the answer is too large"}


async def read(listed: WatchList) -> Watched:
    async with transaction() as db:
        return (await listed.read(db)).get("base", Watched())


async def a_rule_about_anything(db: AsyncSession, server: Server) -> Rule:
    rule = await a_rule(db, server, "7")
    rule.expression = ANYTHING
    db.add(rule)
    await db.flush()
    return rule


async def dues() -> set[str]:
    async with transaction() as db:
        found = {str(key) for (key,) in (await db.execute(text("SELECT key FROM due"))).all()}
        await db.execute(text("DELETE FROM due"))
        return found


def key(member: Member) -> str:
    return f"{member.server_id}:{member.discord_id}"


async def test_each_contract_comes_with_the_servers_whose_rules_name_it() -> None:
    async with transaction() as db:
        one, two, away = await a_server(db), await a_server(db), await a_server(db, bot_invited=False)
        for server in (one, two, away):
            await a_rule(db, server, "7")
    found = await read(WatchList())
    assert found.contracts == (CONTRACT,)
    assert found.wallets == ()
    assert found.servers == {CONTRACT: frozenset({one.id, two.id})}


async def test_nothing_is_read_again_while_nothing_changes_and_all_is_at_once_when_it_does() -> None:
    wallet, other = address(), address()
    async with transaction() as db:
        server = await a_server(db)
        rule = await a_rule_about_anything(db, server)
        await a_member(db, server, wallet=wallet)
    listed = WatchList()
    first = await read(listed)
    assert first.wallets == (wallet,)
    with Statements() as counted:
        again = await read(listed)
    assert counted.count == 2
    assert again.wallets is first.wallets

    async with transaction() as db:
        await a_member(db, server, wallet=other)
    found = await read(listed)
    assert found.wallets == tuple(sorted((wallet, other)))
    assert found.late == ()

    async with transaction() as db:
        changed = await db.get_one(Rule, rule.id)
        changed.expression = to_document(Requirement("basic", "base", CONTRACT))
        db.add(changed)
    found = await read(listed)
    assert (found.contracts, found.wallets) == ((CONTRACT,), ())
    async with transaction() as db:
        gone = await db.get_one(Server, server.id)
        gone.bot_invited = False
        db.add(gone)
    assert await read(listed) == Watched()


async def notes() -> tuple[int, int]:
    """Return how many notes about changes there are, and how many there ever were."""
    async with transaction() as db:
        # Of a sequence that begins with 1 and has no cache.
        counts = "SELECT (SELECT count(*) FROM watched_change), (SELECT last_value FROM watched_change_id_seq)"
        left, ever = (await db.execute(text(counts))).one()
    return int(left), int(ever)


async def test_a_change_of_many_rows_is_noted_once_and_one_that_is_undone_hides_no_other() -> None:
    async with transaction() as db:
        server, away = await a_server(db), await a_server(db, bot_invited=False)
        for _ in range(20):
            await a_delegation(db, address(), address())
    _, before = await notes()
    move = text("UPDATE delegation SET vault = vault || '0'")
    async with transaction() as db:
        await db.execute(move)
        await db.execute(move)
    left, ever = await notes()
    assert ever == before + 1
    async with transaction() as db:
        undone = await db.begin_nested()
        await db.execute(move)
        await undone.rollback()
        await db.execute(move)
    left, ever = await notes()
    assert ever == before + 3, "the note of what was undone is gone with it"
    async with transaction() as db:
        away.name = server.name = "Another name"
        db.add_all([await db.merge(away), await db.merge(server)])
        await a_server(db, bot_invited=False)
    assert await notes() == (left, ever), "who is watched has not changed"
    for number, statement in enumerate(("UPDATE server SET bot_invited = true", "DELETE FROM server"), 1):
        async with transaction() as db:
            await db.execute(text(statement))
        assert (await notes())[1] == ever + number


async def test_whether_anything_changed_is_asked_without_reading_the_wallets() -> None:
    vault, tables = address(), "('rule', 'server', 'wallet', 'delegation')"
    async with transaction() as db:
        server = await a_server(db)
        rule = await a_rule_about_anything(db, server)
        rule.delegated = True
        db.add(rule)
        member = await a_member(db, server, wallet=(delegate := address()))
        for _ in range(100):
            await a_server(db)
            await a_member(db, server, wallet=address())
            await a_delegation(db, delegate, address())
    listed = WatchList()
    first = await read(listed)
    assert len(first.wallets) == 201
    async with transaction() as db:
        # Of so few rows, the planner would read all at once.
        await db.execute(text("SET LOCAL enable_seqscan = off"))
        rows = text(f"SELECT sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_xact_user_tables WHERE relname IN {tables}")
        before = (await db.execute(rows)).scalar_one()
        assert (await listed.read(db))["base"].wallets is first.wallets
        assert (await db.execute(rows)).scalar_one() - before < 10

    async with transaction() as db:
        await db.execute(text("DELETE FROM delegation WHERE vault = (SELECT min(vault) FROM delegation)"))
        await a_delegation(db, delegate, vault)
    assert vault in (await read(listed)).wallets, "there are as many delegations as before"
    async with transaction() as db:
        await db.execute(text("DELETE FROM wallet WHERE address <> :left"), {"left": delegate})
    assert len((await read(listed)).wallets) == 101
    async with transaction() as db:
        await db.execute(text("DELETE FROM delegation"))
    assert (await read(listed)).wallets == (delegate,)
    async with transaction() as db:
        other = User(discord_id=snowflake(), username="another account")
        db.add(other)
        await db.flush()
        await db.execute(text("UPDATE wallet SET user_id = :other"), {"other": other.id})
    assert (await read(listed)).wallets == (), "it was handed over to somebody who is in no server"
    async with transaction() as db:
        await db.execute(text('UPDATE wallet SET user_id = (SELECT id FROM "user" WHERE discord_id = :who)'),
                         {"who": member.discord_id})  # fmt: skip
    assert (await read(listed)).wallets == (delegate,)
    async with transaction() as db:
        await db.execute(text("DELETE FROM rule"))
    assert await read(listed) == Watched()


async def a_delegation(db: AsyncSession, delegate: str, vault: str) -> None:
    db.add(Delegation(chain="base", delegate=delegate, vault=vault, contract="", token_id=""))
    await db.flush()


async def test_a_change_that_is_committed_after_a_newer_one_is_seen() -> None:
    async with transaction() as db:
        server = await a_server(db)
        await a_rule_about_anything(db, server)
    listed = WatchList()
    older, newer = address(), address()
    async with transaction() as db:
        await a_member(db, server, wallet=older)
        async with transaction() as other:
            await a_member(other, server, wallet=newer)
        assert (await read(listed)).wallets == (newer,)
    assert (await read(listed)).wallets == tuple(sorted((older, newer)))


async def test_wallets_of_which_nothing_told_are_found_after_a_while_and_said_to_be_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Somebody who has a wallet joins the server: no wallet, rule or server changes."""
    wallet = address()
    async with transaction() as db:
        server, elsewhere = await a_server(db), await a_server(db)
        await a_rule_about_anything(db, server)
        member = await a_member(db, elsewhere, wallet=wallet)
    listed = WatchList()
    assert (await read(listed)).wallets == ()
    async with transaction() as db:
        db.add(Member(server_id=server.id or 0, discord_id=member.discord_id, name="somebody"))
    monkeypatch.setattr(watch_list, "READ_AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(watch_list, "SHARE_OF_TIME", 0)
    listed._again_at = 0.0
    found = await read(listed)
    assert found.wallets == found.late == (wallet,)
    assert (await read(listed)).late == (wallet,), "until they are marked"
    listed.marked("base", WALLETS, found.late)
    assert (await read(listed)).late == ()


async def test_a_list_that_takes_long_is_not_read_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_list, "SHARE_OF_TIME", 1_000_000)
    listed = WatchList()
    async with transaction() as db:
        await a_rule_about_anything(db, await a_server(db))
        await listed.read(db)
    assert listed._again_at > asyncio.get_running_loop().time() + watch_list.READ_AGAIN_SECONDS


async def test_an_address_in_quarantine_is_not_watched_and_its_members_are_marked() -> None:
    async with transaction() as db:
        hostile, honest = await a_server(db), await a_server(db)
        await a_rule(db, hostile, "7")
        member = await a_member(db, hostile, wallet=address())
        await a_member(db, honest, wallet=address())
    listed = WatchList()
    before = await read(listed)
    async with transaction() as db:
        await quarantine.mark(db, "base", CONTRACTS, list(FLOOD), before.servers)
        await quarantine.begin(db, "base", CONTRACTS, FLOOD)
        (told,) = await quarantine.of_servers(db, [hostile.id or 0, honest.id or 0])
    assert (told.server_id, told.chain, told.contract) == (hostile.id, "base", CONTRACT)
    assert await dues() == {key(member)}
    found = await read(listed)
    assert found.contracts == ()
    assert found.asked(CONTRACTS), "blocks are read on, so that the crowded one is not met again"
    assert not found.released

    async with transaction() as db:
        await db.execute(text("UPDATE quarantine SET until = now()"))
    found = await read(listed)
    assert found.contracts == (CONTRACT,)
    assert found.released == {(CONTRACTS, CONTRACT)}
    async with transaction() as db:
        await quarantine.end(db, "base", CONTRACTS, [CONTRACT])
        assert await quarantine.of_servers(db, [hostile.id or 0]) == []
    assert not (await read(listed)).released


async def test_each_quarantine_of_an_address_lasts_longer_up_to_a_day() -> None:
    lasted: list[float] = []
    for _ in range(5):
        async with transaction() as db:
            await quarantine.begin(db, "base", CONTRACTS, FLOOD)
            row = await db.execute(text("SELECT extract(epoch FROM until - since) FROM quarantine"))
            lasted.append(float(row.scalar_one()))
            await quarantine.end(db, "base", CONTRACTS, [CONTRACT])
            await quarantine.clear(db)
    assert lasted == [600, 3_600, 21_600, 86_400, 86_400]
    async with transaction() as db:
        await db.execute(text("UPDATE quarantine SET ended_at = now() - interval '8 days'"))
        await quarantine.clear(db)
        assert (await db.execute(text("SELECT count(*) FROM quarantine"))).scalar_one() == 0


async def test_a_wallet_in_quarantine_is_left_out_alone() -> None:
    named, other = address(), address()
    async with transaction() as db:
        server = await a_server(db)
        await a_rule_about_anything(db, server)
        member = await a_member(db, server, wallet=named)
        await a_member(db, server, wallet=other)
    listed = WatchList()
    await read(listed)
    async with transaction() as db:
        await quarantine.mark(db, "base", WALLETS, [named], {ANY: [server.id or 0]})
        await quarantine.begin(db, "base", WALLETS, {named: "too large"})
    assert await dues() == {key(member)}
    assert (await read(listed)).wallets == (other,)


async def test_members_of_many_servers_are_marked_in_one_statement() -> None:
    async with transaction() as db:
        servers = [await a_server(db) for _ in range(5)]
        members = [await a_member(db, server, wallet=address()) for server in servers]
        with Statements() as counted:
            await queue.mark_servers(db, [server.id or 0 for server in servers[:4]], queue.SWEPT)
    assert counted.count == 1
    assert await dues() == {key(member) for member in members[:4]}


async def test_coins_are_followed_by_the_wallets_of_their_servers_and_concern_no_rule_about_nfts() -> None:
    wallet, elsewhere, coin = address(), address(), address()
    async with transaction() as db:
        server, other = await a_server(db), await a_server(db)
        for contract in (coin, NATIVE):
            rule = await a_rule(db, server, "7")
            rule.expression = to_document(Requirement("token", "base", contract, details=CoinAmount("1", None, 6)))
            db.add(rule)
        await a_rule_about_anything(db, other)
        await a_member(db, server, wallet=wallet)
        await a_member(db, other, wallet=elsewhere)
    found = await read(WatchList())
    assert (found.coins, found.holders) == ((coin,), (wallet,)), "nothing tells when the own coin moves"
    assert (found.contracts, found.wallets) == ((), (elsewhere,))
    assert found.named_by(COINS) == {coin: frozenset({server.id})}
    assert found.named_by(WALLETS)[ANY] == frozenset({other.id})
    assert (found.asked(COINS), found.of(COINS)) == (True, (wallet,))


async def test_an_older_wallet_is_late_although_another_one_is_proved_meanwhile() -> None:
    wallet = address()
    async with transaction() as db:
        server, elsewhere = await a_server(db), await a_server(db)
        await a_rule_about_anything(db, server)
        member = await a_member(db, elsewhere, wallet=wallet)
    listed = WatchList()
    assert (await read(listed)).wallets == ()
    async with transaction() as db:
        db.add(Member(server_id=server.id or 0, discord_id=member.discord_id, name="somebody"))
    # Meanwhile somebody in another server proves a wallet.
    async with transaction() as db:
        await a_member(db, elsewhere, wallet=address())
    found = await read(listed)
    assert found.wallets == (wallet,)
    assert found.late == (wallet,)
