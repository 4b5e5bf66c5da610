"""A person's own choices, the data that they can read about themselves, and how they are forgotten."""

from dataclasses import dataclass
from datetime import timedelta

import pytest
from sqlalchemy import text
from sqlmodel import SQLModel, col, select

from locales.stored_texts import storable
from models import (
    Access,
    Alert,
    ApiToken,
    Breaker,
    Challenge,
    Delegation,
    DelegationRead,
    Due,
    EndedDelegation,
    Event,
    Farewell,
    Grant,
    Handover,
    Member,
    MemberChoice,
    Notice,
    Observation,
    PayoutListing,
    Quarantine,
    RivalMove,
    Rule,
    Server,
    Sighting,
    SignIn,
    SpentTransaction,
    Survey,
    Surveyed,
    Tally,
    TokenTrail,
    Trail,
    Truce,
    User,
    Wallet,
    now,
    transaction,
)
from models.db.session import AsyncSession
from services.accounts import sessions
from services.core import audit
from services.core.actors import Actor
from services.core.errors import ServerNotFound
from services.privacy import erasure, preferences
from services.privacy.erasure import RoleEnd
from services.servers import verified_counts
from services.wallets.ownership import spent_by
from services.wallets.transaction_check import in_coins
from tests.support.builders import CONTRACT, a_grant, a_member, a_rule, a_server, address, snowflake


@dataclass(frozen=True)
class Somebody:
    """A member with a wallet, a role, and a line in every table that can have one about a person."""

    actor: Actor
    server: Server
    rule: Rule
    grant: Grant
    wallet: str


async def somebody(db: AsyncSession, *, state: str = "active", bot_invited: bool = True) -> Somebody:
    """Store a person who proved a wallet and holds a role because of it."""
    server = await a_server(db, bot_invited=bot_invited)
    wallet = address()
    member = await a_member(db, server, wallet=wallet)
    rule = await a_rule(db, server, "7001", state=state)
    grant = await a_grant(db, member, rule)
    user = (await db.exec(select(User).where(User.discord_id == member.discord_id))).one()
    actor = Actor(user_id=user.id or 0, discord_id=user.discord_id, username=user.username)
    return Somebody(actor, server, rule, grant, wallet)


async def known_everywhere(db: AsyncSession, one: Somebody) -> None:
    """Store something about the person in each table."""
    who, user_id, server_id = one.actor.discord_id, one.actor.user_id, one.server.id or 0
    other = await a_member(db, one.server, wallet=address())
    their = (await db.exec(select(Wallet).join(User).where(User.discord_id == other.discord_id))).one()
    their.evidence = {"movedFrom": who}
    await verified_counts.fold(db)  # everything written from here on is not yet counted
    elsewhere = await a_server(db, bot_invited=False)
    elsewhere.owner_id = who
    left = await a_server(db)  # long ago, so that no membership is stored any more
    survey = Survey(chain="base", block=9, source="a node", contracts=[CONTRACT])
    db.add(survey)
    await db.flush()
    db.add_all(
        [
            their,
            Access(server_id=server_id, discord_id=who, owner=False),
            ApiToken(server_id=server_id, user_id=user_id, name="ci", hash=b"tokenhash", prefix="hf_abcde"),
            Breaker(server_id=elsewhere.id or 0, role_id="7001", would_lose=6, holders=9, approved_at=now(),
                    approved_by=who, dismissed_at=now(), dismissed_by=who),
            Challenge(user_id=user_id, family="evm", address=one.wallet, code="holdfast-secretcode",
                      amount_wei=12345, expires_at=now(),  # pyright: ignore[reportArgumentType]
                      note=storable("{code} or {amount}", code="holdfast-secretcode", amount=in_coins(12345))),
            Handover(user_id=user_id, code_hash=b"codehash", expires_at=now()),
            Delegation(chain="base", delegate=one.wallet, vault=address(), contract="", token_id=""),
            DelegationRead(chain="base", delegate=one.wallet, block=9, endpoint=0, read_at=now()),
            EndedDelegation(chain="base", delegate=one.wallet, vault=address(), contract="", token_id=""),
            Due(kind="member", key=f"{server_id}:{who}"),
            Member(server_id=elsewhere.id or 0, discord_id=who, name="gone from here", left_at=now()),
            MemberChoice(server_id=server_id, user_id=user_id, share_wallets=True),
            MemberChoice(server_id=left.id or 0, user_id=user_id, use_wallets=False),
            Alert(server_id=server_id, key=f"rival:7001:{who}", title="somebody takes roles", text="", mend=""),
            Notice(discord_id=who, kind="wallet.moved"),
            RivalMove(server_id=server_id, discord_id=who, role_id="7001", taken=True),
            RivalMove(server_id=server_id, discord_id=other.discord_id, role_id="7001", taken=True, actor_id=who,
                      actor_name="somebody"),
            Truce(server_id=server_id, discord_id=who, role_id="7001"),
            PayoutListing(server_id=server_id, user_id=user_id, actor=snowflake()),
            PayoutListing(server_id=server_id, user_id=their.user_id, actor=who),
            Surveyed(chain="base", address=one.wallet, server_id=server_id, survey_id=survey.id or 0),
            Observation(chain="base", contract=CONTRACT, address=one.wallet, amount=3, block=9, source="a node"),  # pyright: ignore[reportArgumentType]
            Tally(chain="base", contract=CONTRACT, address=one.wallet, scope="s", amount=1, block=9, source="a node"),  # pyright: ignore[reportArgumentType]
            TokenTrail(chain="base", contract=CONTRACT, address=one.wallet, ids=["1"]),
            SignIn(state_hash=b"state", cookie_hash=b"cookie", verifier="secretverifier", return_path="/invite",
                   purpose="connect", user_id=user_id),
        ]
    )  # fmt: skip
    await db.flush()
    challenge = (await db.exec(select(Challenge).where(Challenge.user_id == user_id))).one()
    db.add_all(
        [
            Trail(challenge_id=challenge.id or 0, chain="base", nonce=1, block=2, first_block=2),
            Sighting(chain="base", address=one.wallet, block=7),
            SpentTransaction(hash=spent_by("0xabc", one.wallet), chain="base"),
            Quarantine(chain="base", kind="wallets", address=one.wallet, reason="too many logs", until=now()),
        ]
    )
    one.rule.created_by = who
    db.add(one.rule)
    await sessions.open_session(db, user_id, "A browser")
    await audit.record_all(
        db,
        [
            audit.line("role.given", server_id=server_id, subject=who, role_id="7001"),
            audit.line("rule.created", server_id=server_id, actor=who, data={"by": {"id": who}}),
        ],
    )
    await db.flush()


async def tables_that_name(db: AsyncSession, *names: str) -> set[str]:
    """Return the tables with a row that contains one of these texts."""
    found: set[str] = set()
    for table in SQLModel.metadata.sorted_tables:
        for name in names:
            rows = await db.execute(
                text(f'SELECT 1 FROM "{table.name}" t WHERE position(:name IN CAST(t AS text)) > 0'), {"name": name}
            )
            if rows.first() is not None:
                found.add(table.name)
    return found


async def due_servers(db: AsyncSession, who: str) -> set[str]:
    """Return the ids of the servers in which the member is due."""
    keys = await db.exec(select(Due.key).where(col(Due.key).endswith(f":{who}")))
    return {key.partition(":")[0] for key in keys.all()}


async def settle_role(one: Somebody) -> None:
    """Do the worker's part: delete the grant, and record in the log that the role was taken."""
    async with transaction() as db:
        grant = await db.get_one(Grant, one.grant.id)
        await db.delete(grant)
        await audit.record(
            db, audit.line("role.taken", server_id=one.server.id, subject=one.actor.discord_id, role_id="7001")
        )


async def test_forgetting_leaves_nothing_but_what_the_roles_need_and_then_nothing(database: str) -> None:
    async with transaction() as db:
        one = await somebody(db)
        await known_everywhere(db, one)
    who = one.actor.discord_id
    async with transaction() as db:
        await erasure.forget(db, one.actor)
    async with transaction() as db:
        assert await erasure.finish(db) == 0
        await verified_counts.fold(db)
    async with transaction() as db:
        assert await tables_that_name(db, who, one.wallet) == {"member", "grant", "due", "farewell"}
        assert await due_servers(db, who) >= {str(one.server.id)}
    await settle_role(one)
    async with transaction() as db:
        assert await erasure.finish(db) == 1
        await verified_counts.fold(db)
        await db.execute(text("DELETE FROM due"))
    async with transaction() as db:
        # Their membership stays, as Discord lists them like all members; that of servers they left is deleted.
        assert await tables_that_name(db, who, one.wallet) == {"member"}
        assert [row.left_at for row in (await db.exec(select(Member).where(Member.discord_id == who))).all()] == [None]
        kinds = (await db.exec(select(Event.kind).where(col(Event.subject).startswith("forgotten-")))).all()
        assert set(kinds) == {"role.given", "member.forgotten", "role.taken"}
        assert len(set((await db.exec(select(Event.subject).where(col(Event.kind).startswith("role.")))).all())) == 1


async def test_the_log_is_rewritten_in_steps_and_nobody_is_forgotten_before_the_last(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasure, "LINES_AT_ONCE", 10)
    async with transaction() as db:
        one = await somebody(db)
        who = one.actor.discord_id
        await audit.record_all(db, [audit.line("recheck.asked", actor=who, data={"who": who}) for _ in range(25)])
        await db.delete(await db.get_one(Grant, one.grant.id))
        await db.flush()
        await erasure.forget(db, one.actor)
    left, ended = [25], list[int]()
    while not ended or not ended[-1]:
        async with transaction() as db:
            ended.append(await erasure.finish(db))
            named = await db.execute(text("SELECT count(*) FROM event WHERE actor = :who"), {"who": who})
            left.append(int(named.scalar_one()))
            assert left[-2] - left[-1] <= 10
    assert (left[-1], ended[-1]) == (0, 1)
    assert len(ended) >= 3
    async with transaction() as db:
        assert "event" not in await tables_that_name(db, who)


async def test_lines_of_a_process_whose_clock_is_ahead_are_rewritten_too(database: str) -> None:
    async with transaction() as db:
        one = await somebody(db)
        await audit.record(db, audit.line("user.signed_in", subject=one.actor.discord_id) | {
            "at": now() + timedelta(minutes=2)})  # fmt: skip
        await db.delete(await db.get_one(Grant, one.grant.id))
        await db.flush()
        await erasure.forget(db, one.actor)
    async with transaction() as db:
        assert await erasure.finish(db) == 1
        assert "event" not in await tables_that_name(db, one.actor.discord_id)


async def test_others_keep_what_is_theirs(database: str) -> None:
    async with transaction() as db:
        one = await somebody(db)
        other = await somebody(db)
        await erasure.forget(db, one.actor)
        await erasure.finish(db)
    async with transaction() as db:
        assert {"user", "wallet", "grant", "member"} <= await tables_that_name(db, other.actor.discord_id, other.wallet)
        assert (await db.exec(select(Wallet.address))).all() == [other.wallet]


async def test_what_was_read_about_anothers_contract_account_at_the_same_address_stays(database: str) -> None:
    """A contract account is its owner's on one chain, and anybody may deploy another one to its address elsewhere."""
    async with transaction() as db:
        one, other = await somebody(db), await somebody(db)
        await known_everywhere(db, other)
        for who, chain in ((one, "polygon"), (other, "base")):
            wallet = (await db.exec(select(Wallet).where(Wallet.user_id == who.actor.user_id))).one()
            wallet.address, wallet.chain = other.wallet, chain
            db.add(wallet)
        db.add(Sighting(chain="polygon", address=other.wallet, block=8))
    about = {
        "surveyed", "observation", "tally", "token_trail", "sighting", "quarantine", "delegation", "ended_delegation",
        "delegation_read",
    }  # fmt: skip
    async with transaction() as db:
        before = await tables_that_name(db, other.wallet)
        await erasure.forget(db, one.actor)
        assert about <= before == await tables_that_name(db, other.wallet)
        assert (await db.exec(select(Sighting.chain))).all() == ["base"]
        await erasure.forget(db, other.actor)
        assert not about & await tables_that_name(db, other.wallet)


async def test_forgetting_twice_is_no_error_and_coming_back_starts_from_nothing(database: str) -> None:
    async with transaction() as db:
        one = await somebody(db)
        await audit.record(db, audit.line("wallet.proved", subject=one.actor.discord_id))
        await erasure.forget(db, one.actor)
        await erasure.forget(db, one.actor)
    async with transaction() as db:
        db.add(User(discord_id=one.actor.discord_id, username="back again"))
        await db.flush()
        await audit.record(db, audit.line("user.signed_in", subject=one.actor.discord_id))
    async with transaction() as db:
        assert await erasure.finish(db) == 1
    async with transaction() as db:
        mine = await db.exec(select(Event.kind).where(Event.subject == one.actor.discord_id))
        assert mine.all() == ["user.signed_in"]
        assert (await db.exec(select(Farewell))).all() == []


@pytest.mark.parametrize(
    ("case", "end", "hours"),
    [
        ("active", RoleEnd.NOW, 0),
        ("grace", RoleEnd.LATER, 12),
        ("paused", RoleEnd.STAYS, 0),
        ("bot gone", RoleEnd.STAYS, 0),
        ("breaker", RoleEnd.LATER, 0),
        ("not", RoleEnd.NOW, 0),
        ("gift", RoleEnd.NOW, 0),
    ],
)
async def test_what_becomes_of_each_role_is_told_before(database: str, case: str, end: RoleEnd, hours: int) -> None:
    async with transaction() as db:
        one = await somebody(db, state="paused" if case == "paused" else "active", bot_invited=case != "bot gone")
        if case == "grace":
            one.rule.removal_mode, one.rule.removal_hours = "grace", 12
        if case == "gift":
            one.grant.gift_since = now()
            db.add(one.grant)
        if case == "not":
            one.rule.expression = {"not": one.rule.expression}
        if case == "breaker":
            db.add(Breaker(server_id=one.server.id or 0, role_id="7001", would_lose=6, holders=9))
        db.add(one.rule)
    async with transaction() as db:
        told = await erasure.consequences(db, one.actor)
    assert [(role.role_name, role.end, role.hours) for role in told] == [("Role", end, hours)]


async def test_a_role_that_somebody_else_took_is_not_shown(database: str) -> None:
    async with transaction() as db:
        one = await somebody(db)
        one.grant.state = "lost"
        db.add(one.grant)
    async with transaction() as db:
        assert await erasure.consequences(db, one.actor) == ()


async def test_wallets_count_everywhere_and_are_shown_nowhere_until_somebody_decides(database: str) -> None:
    async with transaction() as db:
        one = await somebody(db)
        (choice,) = await preferences.choices(db, one.actor)
    assert (choice.use_wallets, choice.share_wallets, choice.roles) == (True, False, ("Role",))


async def test_not_counting_a_wallet_marks_the_member_and_sharing_does_not(database: str) -> None:
    async with transaction() as db:
        one = await somebody(db)
        shared = await preferences.choose(db, one.actor, one.server.id or 0, share_wallets=True)
        assert (shared.use_wallets, shared.share_wallets) == (True, True)
        assert await due_servers(db, one.actor.discord_id) == set()
        unused = await preferences.choose(db, one.actor, one.server.id or 0, use_wallets=False)
        assert (unused.use_wallets, unused.share_wallets) == (False, True)
        assert await due_servers(db, one.actor.discord_id) == {str(one.server.id)}
        await preferences.choose(db, one.actor, one.server.id or 0, use_wallets=False, share_wallets=True)
        said = (await db.exec(select(Event.data).where(Event.kind == "member.chose").order_by(col(Event.id)))).all()
    assert said == [{"useWallets": True, "shareWallets": True}, {"useWallets": False, "shareWallets": True}]


@pytest.mark.parametrize("why", ["not a member", "left", "bot gone", "no such server"])
async def test_one_decides_only_where_one_is_a_member_and_the_bot_is(database: str, why: str) -> None:
    async with transaction() as db:
        one = await somebody(db, bot_invited=why != "bot gone")
        elsewhere = await a_server(db)
        if why == "left":
            member = await db.get_one(Member, (one.server.id or 0, one.actor.discord_id))
            member.left_at = now() - timedelta(days=1)
            db.add(member)
    wanted = {"not a member": elsewhere.id, "no such server": 2_000_000}.get(why, one.server.id) or 0
    async with transaction() as db:
        with pytest.raises(ServerNotFound):
            await preferences.choose(db, one.actor, wanted, use_wallets=False)
