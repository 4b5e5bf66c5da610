"""The registries' answers about delegations are stored, however many wallets a server's members have."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sqlalchemy import text

import models
from gateways import Gateways
from gateways.chains.read_point import ReadPoint
from gateways.evm.delegate_registry import NOT_IN_TIME, DelegationSheet, RegisteredDelegation
from gateways.transport.errors import ProviderDown
from locales import speaking
from locales.stored_texts import said
from models.db.session import AsyncSession
from services.core import queue
from services.core.actors import Actor
from services.holdings import delegated_vaults, delegations
from services.holdings.delegations import Fetched
from services.holdings.wallet_shares import KnownVaults
from services.privacy import erasure
from tests.support.builders import a_member, a_server, snowflake
from tests.support.statements import meet, until_one_waits

pytestmark = pytest.mark.usefixtures("database")
MANY = 10_000
WALLETS = tuple(f"0x{number:040x}" for number in range(1, MANY + 1))
ONE, OTHER = WALLETS[:2]


def sheet(
    found: dict[str, tuple[RegisteredDelegation, ...]], unsure: dict[str, str], node: int = 0, chain: str = "base"
) -> DelegationSheet:
    """Return a registry's answer at block 7."""
    return DelegationSheet(chain, 7, models.now(), node, f"Base (node {node + 1})", found, unsure)


async def kept(fault: str) -> int:
    """Return how many wallets' delegations are stored with this fault or, for "", without one."""
    async with models.reading() as db:
        question = "SELECT count(*) FROM delegation_read WHERE COALESCE(fault, '') = :fault"
        return int((await db.execute(text(question), {"fault": fault})).scalar_one())


async def owned(wallets: Sequence[str]) -> None:
    """Give those of these wallets that nobody has to a person who is in no server."""
    async with models.transaction() as db:
        user = models.User(discord_id=snowflake(), username="somebody")
        db.add(user)
        await db.flush()
        await db.execute(
            text(
                "INSERT INTO wallet (user_id, family, address, chain, method, evidence, created_at) "
                "SELECT :user, 'evm', address, '', 'transaction', '{}', now() "
                "FROM unnest(CAST(:wallets AS text[])) AS a (address) "
                "WHERE NOT EXISTS (SELECT FROM wallet w WHERE w.address = a.address)"
            ),
            {"user": user.id, "wallets": list(wallets)},
        )


async def test_more_wallets_than_a_statement_has_room_for_are_kept() -> None:
    await owned(WALLETS)
    said = Fetched("base", WALLETS, sheet(dict.fromkeys(WALLETS, ()), {}))
    async with models.transaction() as db:
        await delegations.remember(db, [said])
    assert await kept("") == MANY


async def test_more_wallets_that_could_not_be_read_than_a_statement_has_room_for_are_noted() -> None:
    await owned(WALLETS)
    async with models.transaction() as db:
        await delegations.remember(db, [Fetched("base", WALLETS, "no answer")])
    assert await kept("no answer") == MANY


def test_why_a_second_read_says_nothing_is_told_in_the_readers_language() -> None:
    one, other = WALLETS[:2]
    read = [
        Fetched("base", (one,), "waiting for a later block to confirm"),
        Fetched("base", (other,), sheet({}, {other: "no answer"})),
    ]
    found = delegations.disagreements({}, read)
    assert [said(reason) for reason in found.values()] == [
        "delegations: waiting for a later block to confirm", "delegations: no answer",
    ]  # fmt: skip
    with speaking("ja"):
        assert said(found["base", one]) == "委任：後のブロックでの確認を待っています"


@pytest.mark.parametrize(
    ("third", "doubted"),
    [(sheet({ONE: (), OTHER: ()}, {}, 2), set[str]()), (sheet({}, {ONE: NOT_IN_TIME, OTHER: NOT_IN_TIME}, 2), {OTHER})],
    ids=["it knows everybody", "it knows less"],
)
async def test_where_a_node_had_no_time_for_everybody_the_next_one_is_asked(
    third: DelegationSheet, doubted: set[str]
) -> None:
    """Otherwise the second read of many wallets never ends, because nothing of it is stored."""
    says = {1: sheet({ONE: ()}, {OTHER: NOT_IN_TIME}, 1), 2: third}

    async def incoming(_: str, asked: Sequence[str], *, at: ReadPoint) -> DelegationSheet:
        return says[at.endpoint or 0]

    chains, registry = SimpleNamespace(endpoints=lambda _: 3), SimpleNamespace(incoming=incoming)
    known = {("base", wallet): KnownVaults(7, 0, frozenset()) for wallet in (ONE, OTHER)}
    again = await delegations.read_again(cast("Gateways", SimpleNamespace(chains=chains, delegations=registry)), known)
    assert {wallet for _, wallet in delegations.disagreements(known, again)} == doubted


async def test_a_stored_answer_of_a_node_that_is_not_set_any_more_is_compared_with_the_others_alone() -> None:
    """Answers about wallets of others can be weeks old, and the settings had more nodes then."""
    nodes = [asked := list[int | None]()]

    async def incoming(_: str, wallets: Sequence[str], *, at: ReadPoint) -> DelegationSheet:
        nodes[at.endpoint or 0].append(at.endpoint)
        raise ProviderDown("Base (node 1)", "no answer")

    chains, registry = SimpleNamespace(endpoints=lambda _: 1), SimpleNamespace(incoming=incoming)
    outside = cast("Gateways", SimpleNamespace(chains=chains, delegations=registry))
    known = {("base", ONE): KnownVaults(7, 1, frozenset())}
    again = await delegations.read_again(outside, known)
    assert set(delegations.disagreements(known, again)) == {("base", ONE)}
    assert asked == [0]


VAULT = WALLETS[9]
EVERYTHING = RegisteredDelegation("all", ONE, VAULT, "", "", None)


async def ages() -> list[tuple[str, object]]:
    """Return who may speak for the vault, the oldest first, and since when."""
    async with models.reading() as db:
        question = "SELECT delegate, first_seen_at FROM delegation ORDER BY first_seen_at, delegate"
        return [(str(delegate), since) for delegate, since in (await db.execute(text(question))).all()]


async def read(*delegates: str, named: bool = True) -> None:
    """Store what a read says about these wallets: that the vault has delegated to them, or nothing."""
    await owned(delegates)
    listed = (EVERYTHING,) if named else ()
    async with models.transaction() as db:
        await delegations.remember(db, [Fetched("base", delegates, sheet(dict.fromkeys(delegates, listed), {}))])


async def test_one_wrong_read_does_not_make_an_old_claim_the_youngest() -> None:
    await read(ONE)
    await read(OTHER)
    before = await ages()
    assert [who for who, _ in before] == [ONE, OTHER]
    await read(ONE, named=False)
    assert [who for who, _ in await ages()] == [OTHER]
    await read(ONE, named=False)
    await read(ONE)
    assert await ages() == before


async def test_a_claim_that_was_given_up_for_more_than_a_day_is_a_new_one() -> None:
    await read(ONE)
    await read(OTHER)
    await read(ONE, named=False)
    async with models.transaction() as db:
        await db.execute(text("UPDATE ended_delegation SET ended_at = ended_at - interval '25 hours'"))
    await read(ONE)
    assert [who for who, _ in await ages()] == [OTHER, ONE]


async def ends_while_another_has(
    lock: Callable[[models.AsyncSession], Awaitable[object]],
    needs: Callable[[models.AsyncSession], Awaitable[object]],
    fetched: Sequence[Fetched],
) -> None:
    """Store the answers while a transaction holds one lock that this waits for, and then needs another one."""

    async def stored() -> None:
        async with models.transaction() as db:
            await delegations.remember(db, fetched)

    async with models.transaction() as db:
        await lock(db)
        storing = asyncio.create_task(stored())
        await until_one_waits()
        await needs(db)
    await storing


def locked(chain: str, delegate: str) -> Callable[[models.AsyncSession], Awaitable[object]]:
    """Return what locks a wallet's last read, as another reconcile that stores one does."""
    statement = "SELECT 1 FROM delegation_read WHERE chain = :chain AND delegate = :delegate FOR UPDATE"
    return lambda db: db.execute(statement, {"chain": chain, "delegate": delegate})


async def test_an_answer_about_only_some_wallets_is_stored_in_the_order_of_a_whole_one() -> None:
    await read(ONE, OTHER)
    some = Fetched("base", (ONE, OTHER), sheet({ONE: (EVERYTHING,)}, {OTHER: NOT_IN_TIME}))
    await ends_while_another_has(locked("base", ONE), locked("base", OTHER), [some])
    assert await kept(NOT_IN_TIME) == 1


async def test_members_are_marked_only_when_all_chains_are_stored() -> None:
    """A reconcile of another server may have stored one of the chains and mark the same members."""
    await owned([ONE])
    async with models.transaction() as db:
        other = await a_member(db, await a_server(db), wallet=OTHER)
        await delegations.remember(db, [Fetched("polygon", (ONE,), sheet({ONE: ()}, {}, chain="polygon"))])
    await read(OTHER)
    both = [
        Fetched("base", (ONE,), sheet({ONE: (EVERYTHING,)}, {})),
        Fetched("polygon", (ONE,), sheet({ONE: (EVERYTHING,)}, {}, chain="polygon")),
    ]

    async def marked(db: models.AsyncSession) -> None:
        await queue.mark_member(db, other.server_id, other.discord_id, queue.CHANGED)

    await ends_while_another_has(locked("polygon", ONE), marked, both)
    assert [who for who, _ in await ages()] == [OTHER, ONE, ONE]


async def test_an_answer_from_before_this_process_began_is_not_reused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a node whose place in the settings has changed could confirm its own answer."""
    async with models.transaction() as db:
        member = await a_member(db, await a_server(db), wallet=ONE)
    claim = queue.Claim(member.server_id, member.discord_id, 1, 0, queue.CHANGED)

    async def wanted() -> set[str]:
        async with models.reading() as db:
            return set(await delegations.stale(db, {member.server_id: frozenset({"base"})}, [claim]))

    await read(ONE)
    assert await wanted() == set()
    monkeypatch.setattr(delegations, "BEGAN", time.monotonic())
    assert await wanted() == {"base"}


async def stored(*of: str) -> dict[str, int]:
    """Return how many rows each table has about delegations to these wallets."""
    async with models.reading() as db:
        return {
            table: (
                await db.execute(
                    text(f"SELECT count(*) FROM {table} WHERE delegate = ANY(CAST(:of AS text[]))"), {"of": list(of)}
                )
            ).scalar_one()
            for table in ("delegation", "ended_delegation", "delegation_read")
        }


@pytest.mark.parametrize("found", [(EVERYTHING,), (), "no answer"], ids=["a vault", "no vault", "no answer"])
async def test_what_was_read_while_a_person_deleted_their_data_is_not_stored(
    found: tuple[RegisteredDelegation, ...] | str,
) -> None:
    """It was kept until the next housekeeping, and of a wallet whose owner nobody could ask any more."""
    await read(ONE, OTHER)
    async with models.transaction() as db:
        who = (await db.execute(text('SELECT u.id, u.discord_id FROM "user" u ORDER BY u.id LIMIT 1'))).one()
        await erasure.forget(db, Actor(who[0], who[1], "somebody"))
    assert set((await stored(ONE, OTHER)).values()) == {0}
    await owned([OTHER])
    said = sheet(dict.fromkeys((ONE, OTHER), found), {}) if not isinstance(found, str) else found
    async with models.transaction() as db:
        await delegations.remember(db, [Fetched("base", (ONE, OTHER), said)])
    assert set((await stored(ONE)).values()) == {0}
    assert (await stored(OTHER))["delegation_read"] == 1


@pytest.mark.parametrize("is_read_first", [True, False])
async def test_nothing_stays_of_the_first_read_of_a_wallet_that_is_stored_while_its_owner_deletes_their_data(
    is_read_first: bool,
) -> None:
    await owned([ONE])
    async with models.reading() as db:
        who = (await db.execute(text('SELECT id, discord_id FROM "user"'))).one()

    async def forget(db: AsyncSession) -> None:
        await erasure.forget(db, Actor(who[0], who[1], "somebody"))

    async def first_read(db: AsyncSession) -> None:
        await delegations.remember(db, [Fetched("base", (ONE,), sheet({ONE: (EVERYTHING,)}, {}))])

    first, second = (first_read, forget) if is_read_first else (forget, first_read)
    await meet(second, first, lambda db: db.now())
    assert set((await stored(ONE)).values()) == {0}


async def test_what_is_known_of_a_wallet_that_its_owner_removed_is_deleted_by_the_next_read() -> None:
    await read(ONE)
    async with models.transaction() as db:
        await db.execute(text("DELETE FROM wallet"))
        await delegations.remember(db, [Fetched("base", (ONE,), sheet({ONE: (EVERYTHING,)}, {}))])
    assert set((await stored(ONE)).values()) == {0}


async def test_a_wallet_that_counts_on_another_chain_alone_is_nobodys_here() -> None:
    await owned([ONE])
    async with models.transaction() as db:
        await db.execute(text("UPDATE wallet SET chain = 'polygon'"))
    for chain in ("base", "polygon"):
        async with models.transaction() as db:
            said = sheet({ONE: (EVERYTHING,)}, {}, chain=chain)
            await delegations.remember(db, [Fetched(chain, (ONE,), said)])
    assert await stored(ONE) == {"delegation": 1, "ended_delegation": 0, "delegation_read": 1}


def most_rows(plan: dict[str, Any]) -> int:
    """Return the most rows that a step of a plan made, in all its runs."""
    return max(plan["Actual Rows"] * plan["Actual Loops"], *map(most_rows, plan.get("Plans", ())), 0)


async def test_one_members_thousands_of_vaults_are_not_looked_up_in_the_servers_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Anybody can have thousands of vaults delegate to a wallet, and a batch has members of many servers."""
    servers, vaults = 30, 200
    async with models.transaction() as db:
        members = [await a_member(db, await a_server(db), wallet=wallet) for wallet in WALLETS[:servers]]
        db.add_all(
            models.Delegation(chain="base", delegate=ONE, vault=vault, contract="", token_id="")
            for vault in WALLETS[-vaults:]
        )
    wallets = {
        (one.server_id, one.discord_id): [("evm", wallet)] for one, wallet in zip(members, WALLETS, strict=False)
    }
    asked, execute = list[tuple[str, Any]](), AsyncSession.execute

    async def noting(db: AsyncSession, statement: Any, params: Any = None) -> Any:
        if isinstance(statement, str):
            asked.append((statement, params))
        return await execute(db, statement, params)

    monkeypatch.setattr(AsyncSession, "execute", noting)
    chains = dict.fromkeys((server_id for server_id, _ in wallets), frozenset({"base"}))
    async with models.transaction() as db:
        found = await delegated_vaults.load(db, chains, wallets)
        assert [len(found[who].vaults) for who in wallets] == [vaults] + [0] * (servers - 1)
        plans = [
            (await execute(db, f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", params)).scalar_one()
            for statement, params in list(asked)
        ]
    assert plans
    assert max(most_rows(plan[0]["Plan"]) for plan in plans) < 4 * vaults < servers * vaults


@pytest.mark.parametrize(("wallets", "read"), [(2, 400), (4, 500)])
async def test_of_a_member_with_very_many_vaults_some_are_read_and_the_rest_is_unknown(wallets: int, read: int) -> None:
    """Every wallet keeps its part: strangers who delegate to one of them do not hide the vaults of another."""
    async with models.transaction() as db:
        member = await a_member(db, await a_server(db), wallet=ONE)
        user = (await db.execute(text('SELECT id FROM "user"'))).scalar_one()
        mine = WALLETS[:wallets]
        db.add_all(models.Wallet(user_id=user, family="evm", address=one, method="transaction") for one in mine[1:])
        db.add_all(
            models.Delegation(
                chain="base", delegate=wallet, vault=WALLETS[1_000 * place + number], contract="", token_id=""
            )
            for place, wallet in enumerate(mine, 1)
            for number in range(delegations.MOST_KEPT)
        )
        db.add_all(
            models.DelegationRead(chain="base", delegate=one, block=7, endpoint=0, read_at=models.now()) for one in mine
        )
    who = member.server_id, member.discord_id
    async with models.transaction() as db:
        found = (
            await delegated_vaults.load(
                db, {member.server_id: frozenset({"base"})}, {who: [("evm", one) for one in mine]}
            )
        )[who]
    each = Counter(vault.through for vault in found.vaults)
    assert (sum(each.values()), set(each)) == (read, set(mine))
    assert max(each.values()) - min(each.values()) <= 1
    assert set(found.doubts) == ({"base"} if read < wallets * delegations.MOST_KEPT else set())


async def test_a_row_for_which_nothing_was_read_says_nothing() -> None:
    """The erasure of one owner makes such a row, and another owner of the address on another chain has it then too."""
    async with models.transaction() as db:
        member = await a_member(db, await a_server(db), wallet=ONE)
        db.add(models.DelegationRead(chain="base", delegate=ONE, block=0, endpoint=0))
    who = member.server_id, member.discord_id
    async with models.transaction() as db:
        found = await delegated_vaults.load(db, {member.server_id: frozenset({"base"})}, {who: [("evm", ONE)]})
    assert set(found[who].doubts) == {"base"}


async def test_older_claims_on_a_vault_with_too_many_of_them_are_not_read_for_each_of_its_claimants() -> None:
    """It is unknown to all of them anyway, and each would have the answers about all others."""
    async with models.transaction() as db:
        server, members = await a_server(db), list[models.Member]()
        for wallet in WALLETS[: delegated_vaults.MOST_CLAIMS + 1]:
            members.append(await a_member(db, server, wallet=wallet))
            db.add(models.Delegation(chain="base", delegate=wallet, vault=WALLETS[-1], contract="", token_id=""))
            db.add(models.DelegationRead(chain="base", delegate=wallet, block=7, endpoint=0, read_at=models.now()))
    mine = {(one.server_id, one.discord_id): [("evm", wallet)] for one, wallet in zip(members, WALLETS, strict=False)}
    async with models.transaction() as db:
        found = await delegated_vaults.load(db, {server.id or 0: frozenset({"base"})}, mine)
    assert {len(one.known) for one in found.values()} == {1}
    assert all(one.doubts for one in found.values())
