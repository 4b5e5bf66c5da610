"""Reconciles are split so that a slow chain or server delays only its own members."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sqlalchemy import text
from sqlmodel import select

from gateways import Gateways
from gateways.chains.balance_sheet import BalanceSheet, Cells, Segment, packed
from gateways.evm.delegate_registry import DelegationSheet
from models import AsyncSession, Delegation, Grant, Member, Rule, User, Wallet, now, transaction
from services.core import queue
from services.core.queue import Claim
from services.engine import cases, reconcile
from services.engine.decide import Action, Decision
from services.engine.reconcile import BatchPart
from services.engine.reconcile_outcome import BatchOutcome, CaseOutcome
from services.guilds import members
from services.holdings.delegations import Fetched
from services.rules.expression import Requirement, to_document
from tests.services.engine.stage import stage as stage
from tests.support.builders import CONTRACT, a_grant, a_member, a_rule, a_server, address, snowflake
from tests.support.statements import until_one_waits

pytestmark = pytest.mark.usefixtures("database")


async def a_rule_for(db: AsyncSession, server_id: int, leaf: Requirement, *, delegated: bool = False) -> None:
    db.add(
        Rule(
            server_id=server_id, name="A rule", role_id=snowflake(), role_name="Role", verification_type=leaf.type,
            contract_address=leaf.contract, blockchain=leaf.chain, created_by="0", expression=to_document(leaf),
            delegated=delegated,
        )
    )  # fmt: skip


ORDINARY = SimpleNamespace(costly=lambda _: frozenset[str](), is_silent=lambda _: False)
"""Chains on which no contract costs more than others."""


async def test_a_server_that_names_a_costly_contract_is_read_in_a_lane_and_nobody_waits_for_it() -> None:
    servers = await servers_with("base", "ethereum", "trait")
    dear, costly = address(), {"base": frozenset[str](), "ethereum": frozenset[str]()}
    async with transaction() as db:
        server = await a_server(db)
        member = await a_member(db, server, wallet=address())
        for contract in (CONTRACT, dear):
            await a_rule_for(db, member.server_id, Requirement("basic", "base", contract))
        await queue.mark_member(db, member.server_id, member.discord_id, queue.CHANGED)
        servers["dear"] = member.server_id
    names = {server_id: kind for kind, server_id in servers.items()}
    chains = SimpleNamespace(costly=costly.__getitem__)
    outside = cast(Gateways, cast(object, SimpleNamespace(chains=chains)))
    async with transaction() as db:
        claims = await queue.claim(db, "w1", 10)
        before = await reconcile.parts(db, outside, claims)
        costly["base"] = frozenset({dear})
        after = await reconcile.parts(db, outside, claims)

    def joint_with(parts: Sequence[BatchPart]) -> dict[str, set[str]]:
        """Return, for each kind of server, the kinds whose balances are asked for in the same question."""
        kinds = {names[claim.server_id]: part.joint for part in parts for claim in part.claims}
        return {kind: {other for other, joint in kinds.items() if joint is mine} for kind, mine in kinds.items()}

    assert [part.server_id for part in before if part.server_id is not None] == [servers["trait"]]
    assert joint_with(before)["base"] == {"base", "ethereum", "trait", "dear"}
    assert {part.server_id for part in after if part.server_id is not None} == {servers["trait"], servers["dear"]}
    assert joint_with(after)["base"] == {"base", "ethereum", "trait"}
    assert joint_with(after)["dear"] == {"dear"}


async def servers_with(*kinds: str) -> dict[str, int]:
    """Store a server with one due member for each kind of rule, and return their ids by kind."""
    leaves = {
        "base": Requirement("basic", "base", CONTRACT),
        "other base": Requirement("basic", "base", CONTRACT),
        "ethereum": Requirement("basic", "ethereum", CONTRACT),
        "trait": Requirement("trait", "base", CONTRACT, traits=(("Fur", "Gold"),)),
        "delegated": Requirement("basic", "base", CONTRACT),
    }
    found: dict[str, int] = {}
    async with transaction() as db:
        for kind in kinds:
            server = await a_server(db)
            member = await a_member(db, server, wallet=address())
            await a_rule_for(db, member.server_id, leaves[kind], delegated=kind == "delegated")
            await queue.mark_member(db, member.server_id, member.discord_id, queue.CHANGED)
            found[kind] = member.server_id
    return found


async def test_a_batch_is_parted_by_the_chains_and_by_the_servers_that_are_read_token_by_token() -> None:
    servers = await servers_with("base", "trait", "ethereum", "delegated", "other base")
    outside = cast(Gateways, cast(object, SimpleNamespace(chains=ORDINARY)))
    async with transaction() as db:
        parts = await reconcile.parts(db, outside, await queue.claim(db, "w1", 10))
    names = {server_id: kind for kind, server_id in servers.items()}
    by_balances = {frozenset(names[one.server_id] for one in part.claims) for part in parts if part.server_id is None}
    assert by_balances == {frozenset({"base", "other base"}), frozenset({"ethereum"})}
    assert [part.server_id is None for part in parts] == [True, True, False, False]
    one_by_one = {names[part.server_id]: len(part.claims) for part in parts if part.server_id is not None}
    assert one_by_one == {"trait": 1, "delegated": 1}
    assert len({id(part.joint) for part in parts}) == 1


async def test_a_server_that_asks_for_very_many_balances_is_a_part_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconcile, "MOST_WEIGHT", 1)
    servers = await servers_with("base", "other base", "ethereum")
    async with transaction() as db:
        (member,) = (await db.exec(select(Member).where(Member.server_id == servers["other base"]))).all()
        (user,) = (await db.exec(select(User).where(User.discord_id == member.discord_id))).all()
        db.add(Wallet(user_id=user.id or 0, family="evm", address=address(), method="opensea_bio"))
    outside = cast(Gateways, cast(object, SimpleNamespace(chains=ORDINARY)))
    async with transaction() as db:
        parts = await reconcile.parts(db, outside, await queue.claim(db, "w1", 10))
    names = {server_id: kind for kind, server_id in servers.items()}
    assert sorted([names[one.server_id] for one in part.claims] for part in parts) == [
        ["base"], ["ethereum"], ["other base"],
    ]  # fmt: skip


async def test_members_who_are_marked_one_after_the_other_keep_nobody_else_from_being_settled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with transaction() as db:
        server = await a_server(db)
        members = [(await a_member(db, server)).discord_id for _ in range(10)]
        for discord_id in members:
            await queue.mark_member(db, server.id or 0, discord_id, queue.CHANGED)
    async with transaction() as db:
        claims = await queue.claim(db, "w1", 10)
    outside = cast(Gateways, cast(object, SimpleNamespace(chains=ORDINARY)))
    marked: list[str] = []

    @asynccontextmanager
    async def while_somebody_is_marked() -> AsyncGenerator[AsyncSession]:
        async with transaction() as db:
            await queue.mark_member(db, server.id or 0, members[len(marked)], queue.JOINED)
        marked.append(members[len(marked)])
        async with transaction() as db:
            yield db

    monkeypatch.setattr(reconcile, "transaction", while_somebody_is_marked)
    await reconcile.reconcile_claims(outside, "w1", claims)
    async with transaction() as db:
        left = await db.execute(text("SELECT split_part(key, ':', 2) FROM due ORDER BY 1"))
        assert sorted(str(one) for (one,) in left) == sorted(marked)
    assert len(marked) == 2


class OneChain:
    """A chain on which nobody holds anything, and one contract does not answer."""

    def __init__(self, dumb: str) -> None:
        self.dumb = dumb
        self.asked = 0
        self.contract_standard: Callable[[str, str], Awaitable[str]] | None = None

    def endpoints(self, _: str) -> int:
        return 1

    def costly(self, _: str) -> frozenset[str]:
        return frozenset()

    async def balances(self, chain: str, segments: Sequence[Segment], **_: object) -> list[BalanceSheet]:
        self.asked += 1
        sheets: list[BalanceSheet] = []
        for segment in segments:
            contracts, owners = packed(segment.contracts), packed(segment.owners)
            cells = Cells(len(contracts) // 20, len(owners) // 20)
            for row in range(cells.contracts):
                for column in range(cells.owners):
                    dumb = contracts[row * 20 : row * 20 + 20].hex() == self.dumb[2:]
                    cells.put(row, column, None if dumb else 0)
            sheets.append(BalanceSheet(chain, 100, now(), 0, "Base node 1", contracts, owners, cells))
        return sheets


async def claimed_servers() -> set[int]:
    """Return the ids of the servers whose members are claimed."""
    claimed = text("SELECT split_part(key, ':', 1) FROM due WHERE claimed_by IS NOT NULL")
    async with transaction() as db:
        return {int(server) for (server,) in await db.execute(claimed)}


async def test_who_has_an_answer_is_settled_while_a_neighbour_in_the_same_look_waits() -> None:
    servers = await servers_with("base", "other base")
    async with transaction() as db:
        slow, dumb = servers["base"], address()
        await a_rule_for(db, slow, Requirement("basic", "base", dumb))
    chains, standards = OneChain(dumb), asyncio.Event()

    async def contract_standard(chain: str, contract: str) -> str:
        assert (chain, contract) == ("base", dumb)
        await standards.wait()
        return "none"

    chains.contract_standard = contract_standard
    outside = cast(Gateways, cast(object, SimpleNamespace(chains=chains)))
    async with transaction() as db:
        parts = await reconcile.parts(db, outside, await queue.claim(db, "w1", 10))
    assert [len(part.claims) for part in parts] == [2]
    looking = asyncio.create_task(reconcile.reconcile_part(outside, "w1", parts[0]))
    async with asyncio.timeout(30):
        while (there := await claimed_servers()) != {slow}:
            assert there == set(servers.values())
            await asyncio.sleep(0.01)
        assert not looking.done()
        standards.set()
        await looking
    assert chains.asked == 1, "one question for both"
    async with transaction() as db:
        said = await db.execute(text("SELECT split_part(key, ':', 1) FROM due WHERE attempts = 1"))
        assert [int(server) for (server,) in said] == [slow], "unknown, and due again"


@pytest.mark.parametrize("first", [True, False], ids=["the first", "the last"])
async def test_a_part_is_answered_only_if_all_of_its_groups_are(monkeypatch: pytest.MonkeyPatch, first: bool) -> None:
    async def groups(*_: object) -> AsyncGenerator[tuple[object, object, object]]:
        for doubtful in (first, not first):
            yield doubtful, None, ({}, 0.0)

    async def looked(_outside: object, doubtful: bool, *_: object, **__: object) -> object:
        return SimpleNamespace(outcomes=[SimpleNamespace(doubtful=doubtful)])

    async def settled(*_: object) -> int:
        return 0

    async def questions(*_: object) -> dict[object, object]:
        return {}

    monkeypatch.setattr(reconcile, "_as_answered", groups)
    monkeypatch.setattr(reconcile, "_settle", settled)
    monkeypatch.setattr(reconcile.read_and_confirm, "decide_cases", looked)
    monkeypatch.setattr(reconcile.read_and_confirm, "questions", questions)
    found = SimpleNamespace(at=now())
    part = BatchPart(
        [],
        found,  # pyright: ignore[reportArgumentType]
        None,  # pyright: ignore[reportArgumentType]
        cases=[],
    )
    assert not await reconcile.reconcile_part(cast(Gateways, None), "w1", part)


def claims_of(server_id: int, people: int) -> list[Claim]:
    return [Claim(server_id, str(number), 1, 0, queue.SWEPT) for number in range(people)]


async def test_a_server_with_many_contracts_takes_no_room_from_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "MOST_CHECKS", 100)
    async with transaction() as db:
        costly, cheap = [(await a_server(db)).id or 0 for _ in range(2)]
        for _ in range(20):
            await a_rule_for(db, costly, Requirement("basic", "base", address()))
        await a_rule_for(db, cheap, Requirement("basic", "base", address()))
        for claim in (*claims_of(costly, 50), *claims_of(cheap, 40)):
            await queue.mark_member(db, claim.server_id, claim.discord_id, queue.SWEPT)
    async with transaction() as db:
        claimed = await queue.claim(db, "w1", 100)
        fitting = await cases.keep_what_fits(db, "w1", claimed)
    counts = [sum(claim.server_id == server_id for claim in fitting) for server_id in (costly, cheap)]
    assert counts == [3, 40]
    async with transaction() as db:
        assert len(await queue.claim(db, "w2", 100)) == 47


async def test_two_servers_that_learn_of_changed_delegations_of_one_vault_wait_for_each_other_and_never_deadlock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """People who share a vault's holdings in one server often do so in another one, too."""
    vault = address()
    async with transaction() as db:
        servers, wallets = [await a_server(db) for _ in range(2)], [address() for _ in range(2)]
        for wallet in wallets:
            member = await a_member(db, servers[0], wallet=wallet)
            db.add(Member(server_id=servers[1].id or 0, discord_id=member.discord_id, name="somebody"))
            db.add(Delegation(chain="base", delegate=wallet, vault=vault, contract="", token_id=""))
        await db.flush()
        for server in servers:
            await queue.mark_server(db, server.id or 0, queue.CHANGED)
    both, mark_claimants = asyncio.Barrier(2), queue.mark_claimants

    async def mark_together(*arguments: Any, **options: Any) -> int:
        await both.wait()
        return await mark_claimants(*arguments, **options)

    monkeypatch.setattr(queue, "mark_claimants", mark_together)

    async def settle(worker: str, claims: Sequence[Claim], wallet: str) -> None:
        """Settle a reconcile whose second reading shows no delegation to a wallet any more."""
        async with transaction() as db:
            some = await cases.load(db, claims)
        sheet = DelegationSheet("base", 7, now(), 0, "Base (node 1)", {wallet: ()}, {})
        outcomes = [CaseOutcome(case, [], {}) for case in some]
        await reconcile._settle(
            worker, BatchOutcome(outcomes=outcomes, delegations=[Fetched("base", (wallet,), sheet)])
        )

    async with transaction() as db:
        claims = await queue.claim(db, "w1", 10)
    of_server = [[claim for claim in claims if claim.server_id == server.id] for server in servers]
    await asyncio.gather(*(settle("w1", some, wallet) for some, wallet in zip(of_server, wallets, strict=True)))
    async with transaction() as db:
        assert (await db.exec(select(Delegation))).all() == []


async def test_a_reconcile_and_a_change_of_everybody_with_a_role_wait_for_each_other_and_never_deadlock() -> None:
    async with transaction() as db:
        rule = await a_rule(db, server := await a_server(db), snowflake())
        people = sorted([await a_member(db, server) for _ in range(2)], key=lambda member: member.discord_id)
        first, last = [
            await a_grant(db, one, rule, state=state) for one, state in zip(people, ("held", "taking"), strict=True)
        ]
        await queue.mark_server(db, server.id or 0, queue.CHANGED)

    def locked(grant: Grant) -> Any:
        return select(Grant).where(Grant.id == grant.id).with_for_update()

    async def settle() -> None:
        async with transaction() as db:
            claims = await queue.claim(db, "w1", 10)
            some = await cases.load(db, claims)
        # The ledger cancels removals before it begins grace times.
        actions = {first.discord_id: Action.WAIT, last.discord_id: Action.CALL_OFF}
        outcomes = [
            CaseOutcome(case, [Decision(rule.role_id, actions[case.claim.discord_id], no_since=now())], {})
            for case in some
        ]
        await reconcile._settle("w1", BatchOutcome(outcomes=outcomes))

    async with transaction() as db:
        await db.exec(locked(first))
        settling = asyncio.create_task(settle())
        await until_one_waits()
        await db.exec(locked(last))
    await settling
    async with transaction() as db:
        found = {grant.id: (grant.state, grant.no_since is not None) for grant in (await db.exec(select(Grant))).all()}
    assert found == {first.id: ("held", True), last.id: ("held", False)}


async def test_a_reconcile_and_the_event_that_a_member_left_wait_for_each_other_and_never_deadlock() -> None:
    async with transaction() as db:
        rule = await a_rule(db, server := await a_server(db), snowflake())
        member = await a_member(db, server)
        await a_grant(db, member, rule)
        await queue.mark_server(db, server.id or 0, queue.CHANGED)

    async def settle() -> None:
        async with transaction() as db:
            claims = await queue.claim(db, "w1", 10)
            some = await cases.load(db, claims)
        await reconcile._settle("w1", BatchOutcome(outcomes=[CaseOutcome(case, [], {}, gone=True) for case in some]))

    async with transaction() as db:
        await members.lock_members(db, [(server.id or 0, member.discord_id)])
        settling = asyncio.create_task(settle())
        await until_one_waits()
        await members.left_many(db, [(server.id or 0, member.discord_id)])
    await settling
    async with transaction() as db:
        assert (await db.exec(select(Grant))).all() == []
        assert [one.left_at is not None for one in (await db.exec(select(Member))).all()] == [True]
