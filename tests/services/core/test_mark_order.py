"""A request that changes a member's data waits for a running reconcile of them before it locks any of their rows."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text
from sqlmodel import col, select

from models import (
    AsyncSession,
    Breaker,
    Challenge,
    Delegation,
    Event,
    Grant,
    Member,
    Observation,
    Server,
    User,
    Wallet,
    now,
    transaction,
)
from services.core import queue
from services.core.actors import Actor
from services.core.queue.claims import Claim
from services.engine import cases, reconcile
from services.engine.reconcile_outcome import BatchOutcome, CaseOutcome
from services.guilds import members
from services.guilds.members import MemberFacts
from services.guilds.permissions import Rights
from services.guilds.role_safety import MANAGE_ROLES
from services.privacy import erasure, preferences
from services.roles import breaker, write_results
from services.roles.outbox import Intent, WriteOutcome, WriteResult
from services.servers import undo
from services.triggers import gateway_events
from services.triggers.gateway_events import GuildFacts, RoleFacts
from services.wallets import ownership, wallets
from services.wallets.ownership import WalletProof
from tests.support.builders import a_grant, a_member, a_rule, a_server, address, snowflake
from tests.support.statements import until_one_waits, waits_for_a_lock

pytestmark = pytest.mark.usefixtures("database")


@dataclass(frozen=True)
class Scene:
    """A member with a wallet, a role of ours and a reading of the wallet, while a reconcile of them is in progress."""

    actor: Actor
    member: Member
    wallet: Wallet
    grant: Grant
    batch: UUID

    @property
    def server_id(self) -> int:
        """The id of the member's server."""
        return self.member.server_id

    def without_roles(self) -> MemberFacts:
        """Return the member's facts after Discord took all their roles."""
        return MemberFacts(self.member.discord_id, "somebody", frozenset())


async def a_scene(db: AsyncSession, state: str) -> Scene:
    server, wallet, batch = await a_server(db), address(), uuid4()
    rule = await a_rule(db, server, snowflake())
    member = await a_member(db, server, wallet=wallet, roles=(rule.role_id,))
    grant = await a_grant(db, member, rule, state=state)
    grant.batch, grant.held_back_at = batch, now()
    db.add(grant)
    db.add(
        Observation(
            chain="base", address=wallet, contract=address(), amount=Decimal(1), block=1, source="n", observed_at=now()
        )
    )
    proved = (await db.exec(select(Wallet).where(col(Wallet.address) == wallet))).one()
    db.add(Breaker(server_id=member.server_id, role_id=rule.role_id, would_lose=6, holders=6))
    lost = {"server_id": member.server_id, "role_id": rule.role_id, "subject": member.discord_id, "batch": batch}
    db.add(Event(kind="role.taken", **lost))
    await queue.mark_member(db, member.server_id, member.discord_id, queue.SWEPT)
    await db.flush()
    return Scene(Actor(proved.user_id, member.discord_id, "somebody"), member, proved, grant, batch)


def an_intent(scene: Scene) -> Intent:
    """Return the removal of the member's role that the writer has just asked Discord for."""
    grant = scene.grant
    return Intent(
        grant.id or 0, scene.server_id, snowflake(), scene.member.discord_id, grant.role_id, "Role", giving=False,
        intended_at=grant.intended_at or now(), attempts=1, evidence={},
    )  # fmt: skip


Change = Callable[[AsyncSession, Scene], Awaitable[object]]


async def forget(db: AsyncSession, scene: Scene) -> None:
    await erasure.forget(db, scene.actor)


async def remove_wallet(db: AsyncSession, scene: Scene) -> None:
    await wallets.remove(db, scene.actor, scene.wallet.id or 0)


async def prove_their_wallet(db: AsyncSession, scene: Scene) -> None:
    other = User(discord_id=snowflake(), username="other")
    db.add(other)
    await db.flush()
    challenge = Challenge(
        user_id=other.id or 0, family="evm", address=scene.wallet.address, code="c", amount_wei=Decimal(1),
        created_at=now(), expires_at=now() + timedelta(1),
    )  # fmt: skip
    db.add(challenge)
    await db.flush()
    proof = WalletProof("transaction", {}, strong=True, spends=(f"0x{7:064x}", "base"))
    await ownership.keep(db, Actor(other.id or 0, other.discord_id, "other"), challenge, proof)


async def count_no_wallets(db: AsyncSession, scene: Scene) -> None:
    await preferences.choose(db, scene.actor, scene.server_id, use_wallets=False)


async def approve(db: AsyncSession, scene: Scene) -> None:
    await breaker.approve(db, scene.server_id, snowflake())


async def dismiss(db: AsyncSession, scene: Scene) -> None:
    await breaker.dismiss(db, scene.server_id, snowflake())


async def lose_the_role(db: AsyncSession, scene: Scene) -> None:
    await members.changed(db, scene.server_id, scene.without_roles())


async def join(db: AsyncSession, scene: Scene) -> None:
    await members.joined(db, scene.server_id, scene.without_roles())


async def leave(db: AsyncSession, scene: Scene) -> None:
    await members.left_many(db, [(scene.server_id, scene.member.discord_id)])


async def be_missing_from_the_list(db: AsyncSession, scene: Scene) -> None:
    await members.list_ended(db, scene.server_id, now() + timedelta(1))


async def turn_out_to_have_left(db: AsyncSession, scene: Scene) -> None:
    await write_results.record(db, an_intent(scene), WriteOutcome(WriteResult.LEFT))


async def decide_again(db: AsyncSession, scene: Scene) -> None:
    await write_results.record(db, an_intent(scene), WriteOutcome(WriteResult.AGAIN))


async def give_back(db: AsyncSession, scene: Scene) -> None:
    server = await db.get_one(Server, scene.server_id)
    event = Event(kind="role.taken", server_id=server.id, role_id=scene.grant.role_id, batch=scene.batch)
    await undo.give_back(db, Rights(server, None, None, None), scene.actor, event)


async def guild_of(db: AsyncSession, scene: Scene) -> GuildFacts:
    """Return the member's guild after their role was deleted, and another one, for which a rule is paused, is safe."""
    server, safe = await db.get_one(Server, scene.server_id), snowflake()
    rule = await a_rule(db, server, safe, state="paused")
    rule.pause_cause = "dangerous"
    roles = (
        RoleFacts(server.discord_id, "@everyone", 0, False, MANAGE_ROLES), RoleFacts("5", "bot", 5, True, MANAGE_ROLES),
        RoleFacts(safe, "safe", 1, False, 0),
    )  # fmt: skip
    bot = MemberFacts("1", "the bot", frozenset({"5"}), bot=True)
    return GuildFacts(server.discord_id, "A server", None, server.owner_id or "", "1", roles, (bot,))


async def change_roles(db: AsyncSession, scene: Scene) -> None:
    await gateway_events.check_roles(db, await guild_of(db, scene))


async def invite_again(db: AsyncSession, scene: Scene) -> None:
    guild = replace(await guild_of(db, scene), roles=(await guild_of(db, scene)).roles[:2])
    (await db.get_one(Server, scene.server_id)).bot_invited = False
    await gateway_events.guild_available(db, guild)


WRITTEN = (
    'SELECT 1 FROM "grant" WHERE discord_id = :who FOR UPDATE NOWAIT',
    "SELECT 1 FROM member WHERE discord_id = :who FOR UPDATE NOWAIT",
    "SELECT 1 FROM observation WHERE address = :wallet FOR UPDATE NOWAIT",
)
"""Locks on rows that a reconcile writes; each fails at once if another transaction has locked the row."""


@pytest.mark.parametrize(
    ("change", "state"),
    [
        (forget, "held"), (remove_wallet, "held"), (prove_their_wallet, "held"), (count_no_wallets, "held"),
        (approve, "held"), (dismiss, "held"), (dismiss, "taking"), (lose_the_role, "held"), (join, "held"),
        (be_missing_from_the_list, "held"),
        (decide_again, "taking"), (give_back, "taking"), (change_roles, "held"), (invite_again, "held"),
    ],
)  # fmt: skip
async def test_who_waits_for_a_reconcile_holds_nothing_that_it_writes(
    monkeypatch: pytest.MonkeyPatch, change: Change, state: str
) -> None:
    monkeypatch.setattr(undo, "_grantable", lambda *_: "Role")
    async with transaction() as db:
        scene = await a_scene(db, state)
    async with transaction() as db:
        (claim,) = await queue.claim(db, "w1", 1)
    await holds_nothing_while_it_waits(change, scene, [claim])


async def holds_nothing_while_it_waits(change: Change, scene: Scene, claims: Sequence[Claim]) -> None:
    """Run the change while a reconcile holds these claims, and check that it locks no row that the reconcile writes."""

    async def changed() -> None:
        async with transaction() as db:
            await change(db, scene)

    async with transaction() as db:
        queue.check_unchanged(db, "w1", claims)
        await db.execute(text("SELECT 1"))
        changing = asyncio.create_task(changed())
        async with asyncio.timeout(60):
            while not await waits_for_a_lock():
                assert not changing.done(), changing
                await asyncio.sleep(0.01)
        for statement in WRITTEN:
            await db.execute(text(statement), {"who": scene.member.discord_id, "wallet": scene.wallet.address})
    await changing


@pytest.mark.parametrize("change", [leave, turn_out_to_have_left])
async def test_a_member_who_leaves_marks_the_other_delegates_before_anything_of_theirs_is_locked(
    change: Change,
) -> None:
    async with transaction() as db:
        scene = await a_scene(db, "taking")
        server, delegate, vault = await db.get_one(Server, scene.server_id), address(), address()
        other = await a_member(db, server, wallet=delegate)
        for one in (scene.wallet.address, delegate):
            said = {"chain": "base", "vault": vault, "contract": "", "token_id": "", "first_seen_at": now()}
            db.add(Delegation(delegate=one, **said))
        await queue.mark_member(db, scene.server_id, other.discord_id, queue.SWEPT)
    async with transaction() as db:
        claims = await queue.claim(db, "w1", 2)
    assert len(claims) == 2
    await holds_nothing_while_it_waits(change, scene, claims)
    async with transaction() as db:
        assert (await db.exec(select(Grant))).all() == []
        seen = (await db.execute(text("SELECT key FROM due WHERE seen > 0"))).scalars().all()
    assert seen == [f"{scene.server_id}:{other.discord_id}"]


async def while_it_waits(
    server: Server, first: str, doing: Callable[[], Awaitable[object]], then: Callable[[AsyncSession], Awaitable[None]]
) -> None:
    """Mark a person, and do `then` in the same transaction once `doing` waits for it."""
    async with transaction() as db:
        await queue.mark_member(db, server.id or 0, first, queue.SWEPT)
        done = asyncio.ensure_future(doing())
        async with asyncio.timeout(60):
            while not await waits_for_a_lock():
                assert not done.done(), done
                await asyncio.sleep(0.01)
        await then(db)
    await done


async def while_others_mark(server: Server, people: Sequence[str], doing: Callable[[], Awaitable[object]]) -> None:
    """Mark two people in one transaction, the second once `doing` waits for the first."""
    first, second = people

    async def then(db: AsyncSession) -> None:
        await queue.mark_member(db, server.id or 0, second, queue.SWEPT)

    await while_it_waits(server, first, doing, then)


async def two_delegates(db: AsyncSession, server: Server) -> tuple[Member, Member]:
    """Store two members to whose wallets the same vault delegates, in the order in which marks lock them."""
    wallets, vault = (address(), address()), address()
    first, second = [await a_member(db, server, wallet=wallet) for wallet in wallets]
    for delegate in wallets:
        said = {"chain": "base", "vault": vault, "contract": "", "token_id": "", "first_seen_at": now()}
        db.add(Delegation(delegate=delegate, **said))
    return first, second


async def test_the_end_of_a_list_marks_the_doubtful_and_the_delegates_of_the_gone_at_once() -> None:
    async with transaction() as db:
        server = await a_server(db)
        delegate, gone = await two_delegates(db, server)
        doubtful = await a_member(db, server)
        await a_grant(db, doubtful, await a_rule(db, server, snowflake()))
        for one in (gone, doubtful):
            one.seen_at = now() - timedelta(1)
            db.add(one)

    async def end_the_list() -> None:
        async with transaction() as db:
            assert await members.list_ended(db, server.id or 0, now() - timedelta(hours=1)) == 2

    await while_others_mark(server, [delegate.discord_id, doubtful.discord_id], end_the_list)
    async with transaction() as db:
        marked = (await db.execute(text("SELECT key, priority, version, seen FROM due ORDER BY key"))).all()
        left = (await db.exec(select(Member.discord_id).where(col(Member.left_at).is_not(None)))).all()
        assert await db.get(Member, (server.id, doubtful.discord_id)) is None
    assert [tuple(row) for row in marked] == [
        (f"{server.id}:{delegate.discord_id}", queue.CHANGED, 2, 1),
        (f"{server.id}:{doubtful.discord_id}", queue.JOINED, 2, 0),
    ]
    assert left == [gone.discord_id]


@pytest.mark.parametrize("met", [True, False], ids=["met", "given a role"])
async def test_the_end_of_a_list_spares_whom_a_reconcile_meets_or_gives_a_role_while_it_waits(met: bool) -> None:
    async with transaction() as db:
        server = await a_server(db)
        rule = await a_rule(db, server, snowflake())
        delegate, here = await two_delegates(db, server)
        here.seen_at = now() - timedelta(1)
        db.add(here)

    async def end_the_list() -> None:
        async with transaction() as db:
            assert await members.list_ended(db, server.id or 0, now() - timedelta(hours=1)) == 1

    async def reconcile_them(db: AsyncSession) -> None:
        if met:
            facts = MemberFacts(here.discord_id, "somebody", frozenset())
            await members.keep(db, server.id or 0, [facts], {here.discord_id: now()})
        await a_grant(db, here, rule, state="giving")

    await while_it_waits(server, delegate.discord_id, end_the_list, reconcile_them)
    async with transaction() as db:
        assert (await db.get_one(Member, (server.id, here.discord_id))).left_at is None
        assert (await db.exec(select(Grant.discord_id))).all() == [here.discord_id]
        again = await members.list_ended(db, server.id or 0, now() - timedelta(hours=1))
        marked = (await db.execute(text("SELECT key FROM due ORDER BY key"))).scalars().all()
    assert (again, len(marked)) == ((0, 1) if met else (1, 2)), "Discord is asked about who has a role of ours"


async def settle_as_gone(claims: Sequence[Claim]) -> None:
    """Settle these claims as a reconcile does whose members Discord says are not there."""
    async with transaction() as db:
        some = await cases.load(db, claims)
    await reconcile._settle("w1", BatchOutcome(outcomes=[CaseOutcome(case, [], {}, gone=True) for case in some]))


async def claimed(member: Member, priority: int = queue.CHANGED) -> list[Claim]:
    async with transaction() as db:
        await queue.mark_member(db, member.server_id, member.discord_id, priority)
    async with transaction() as db:
        found = await queue.claim(db, "w1", 10, priority)
    assert [claim.discord_id for claim in found] == [member.discord_id]
    return found


async def test_a_reconcile_that_finds_a_member_gone_marks_the_delegates_in_the_order_of_all_marks() -> None:
    async with transaction() as db:
        server = await a_server(db)
        delegate, gone = await two_delegates(db, server)
    claims = await claimed(gone)
    await while_others_mark(server, [delegate.discord_id, gone.discord_id], lambda: settle_as_gone(claims))
    async with transaction() as db:
        again = (await db.execute(text("SELECT key, seen, claimed_by FROM due ORDER BY key"))).all()
        assert (await db.get_one(Member, (server.id, gone.discord_id))).left_at is None, "they were marked meanwhile"
        await db.execute(text("DELETE FROM due"))
    keys = [f"{server.id}:{one.discord_id}" for one in (delegate, gone)]
    assert [tuple(row) for row in again] == [(keys[0], 1, None), (keys[1], 0, None)]
    await settle_as_gone(await claimed(gone))
    async with transaction() as db:
        assert (await db.get_one(Member, (server.id, gone.discord_id))).left_at is not None
        assert (await db.execute(text("SELECT key FROM due"))).scalars().all() == keys[:1]


@pytest.mark.parametrize("mark", ["sighting", "return"])
async def test_a_member_found_gone_who_was_seen_to_move_a_token_has_left_and_one_who_came_back_has_not(
    mark: str,
) -> None:
    async with transaction() as db:
        server = await a_server(db)
        _, gone = await two_delegates(db, server)
        wallet = (await db.exec(select(Wallet.address).order_by(col(Wallet.id).desc()))).first()
    claims = await claimed(gone)
    async with transaction() as db:
        if mark == "sighting":
            queue.mark_holders(db, "base", [wallet or ""], queue.SEEN)
        else:
            await members.joined(db, server.id or 0, MemberFacts(gone.discord_id, "somebody", frozenset()))
    await settle_as_gone(claims)
    async with transaction() as db:
        assert ((await db.get_one(Member, (server.id, gone.discord_id))).left_at is not None) == (mark == "sighting")
        rows = await db.execute(text("SELECT claimed_by FROM due WHERE key = :key"), {"key": claims[0].key})
        assert rows.scalars().all() == [None], "whom something was said about is reconciled once more"


async def test_people_and_the_other_delegates_of_their_vaults_are_marked_at_once_in_the_order_of_their_keys() -> None:
    async with transaction() as db:
        server, vault, delegate = await a_server(db), address(), address()
        delegated, other = await a_member(db, server, wallet=delegate), await a_member(db, server, wallet=vault)
        said = {"chain": "base", "vault": vault, "contract": "", "token_id": "", "first_seen_at": now()}
        db.add(Delegation(delegate=delegate, **said))
        await queue.mark_people(db, [other.discord_id], [vault], also=[server.id or 0])
        marked = (await db.execute(text("SELECT key, priority, version, seen FROM due ORDER BY ctid"))).all()
    assert [tuple(row) for row in marked] == [
        (f"{server.id}:{delegated.discord_id}", queue.CHANGED, 1, 1),
        (f"{server.id}:{other.discord_id}", queue.WAITING, 1, 0),
    ]


async def test_claims_that_were_marked_again_are_released_beside_a_mark_of_all() -> None:
    people = [str(number) for number in range(1, 6)]

    async def mark(*marked: str) -> None:
        async with transaction() as db:
            for who in marked:
                await queue.mark_member(db, 1, who, queue.CHANGED)

    await mark(*people)
    async with transaction() as db:
        claims = await queue.claim(db, "w1", len(people))
    await mark("1")
    async with transaction() as db:
        (((unchanged, _),),) = await db.together(queue.still_ours("w1", claims))
        assert len(unchanged) == 4
        marking = asyncio.create_task(mark(*people))
        await until_one_waits()
        queue.complete(db, "w1", claims)
    await marking
    async with transaction() as db:
        assert (await db.execute(text("SELECT claimed_by FROM due"))).scalars().all() == [None] * 5
