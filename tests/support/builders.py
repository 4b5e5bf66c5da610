"""Short builders of people, servers, rules and grants for tests that need stored rows."""

from collections.abc import Collection
from itertools import count

from models import Grant, Member, Rule, Server, User, Wallet
from models.db.session import AsyncSession
from services.roles.outbox import Intent, answered, question
from services.rules.expression import Requirement, to_document

_numbers = count(1)
CONTRACT = "0x" + "c0" * 20


def snowflake() -> str:
    """Return a Discord id that no other test has."""
    return str(900_000_000_000_000_000 + next(_numbers))


def address() -> str:
    """Return an EVM address that no other test has."""
    return f"0x{0xABC0000 + next(_numbers):040x}"


async def a_server(db: AsyncSession, *, bot_invited: bool = True) -> Server:
    """Store a server, with the bot in it by default."""
    server = Server(discord_id=snowflake(), name="A server", bot_invited=bot_invited, owner_id=snowflake())
    db.add(server)
    await db.flush()
    return server


async def a_member(
    db: AsyncSession, server: Server, *, roles: tuple[str, ...] = (), wallet: str | None = None
) -> Member:
    """Store a member of the server, with `wallet` as their proved wallet if it is given."""
    member = Member(server_id=server.id or 0, discord_id=snowflake(), name="somebody", roles=list(roles))
    db.add(member)
    if wallet is not None:
        user = User(discord_id=member.discord_id, username="somebody")
        db.add(user)
        await db.flush()
        db.add(Wallet(user_id=user.id or 0, family="evm", address=wallet, method="opensea_bio"))
    await db.flush()
    return member


async def a_rule(db: AsyncSession, server: Server, role_id: str, *, state: str = "active") -> Rule:
    """Store a basic rule on Base."""
    rule = Rule(
        server_id=server.id or 0, name="A rule", role_id=role_id, role_name="Role", state=state,
        verification_type="basic", contract_address=CONTRACT, blockchain="base", created_by=snowflake(),
        expression=to_document(Requirement("basic", "base", CONTRACT)),
    )  # fmt: skip
    db.add(rule)
    await db.flush()
    return rule


async def a_grant(db: AsyncSession, member: Member, rule: Rule, *, state: str = "held") -> Grant:
    """Store the grant of a role that the rule gave the member."""
    grant = Grant(
        server_id=member.server_id, discord_id=member.discord_id, role_id=rule.role_id,
        rule_ids=[rule.id or 0], state=state,
    )  # fmt: skip
    db.add(grant)
    await db.flush()
    return grant


async def open_intents(db: AsyncSession, limit: int, busy: Collection[int]) -> list[Intent]:
    """Return the role changes that are due, as a writer reads them."""
    (rows,) = await db.together(question(limit, busy, ()))
    return answered(rows)
