"""The contracts that a server's rules name, and the server's migrations in which both contracts count at present."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import col, select

from gateways import Gateways
from gateways.chains.balance_sheet import NATIVE
from models import ContractMigration, Rule
from models.db.session import AsyncSession
from services.collections import collections
from services.core.actors import Actor
from services.core.json_view import json_view
from services.guilds import permissions
from services.rules.expression import ANY_CONTRACT, parse_stored, requirements


@dataclass(frozen=True, slots=True)
class ContractInUse:
    """A contract that rules of a server name, and how many of them do."""

    chain: str
    contract: str
    name: str
    rules: int


@json_view
class RunningMigration:
    """A migration in which both contracts count, until its date or, without one, until somebody ends it."""

    id: int
    chain: str
    contract: str
    name: str
    new_chain: str
    new_contract: str
    new_name: str
    until: datetime | None
    created_at: datetime
    rules: tuple[str, ...]


async def running(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int) -> tuple[RunningMigration, ...]:
    """Return the server's migrations in which both contracts count, oldest first. Raises ServerNotFound."""
    await permissions.require_admin_to_read(db, outside, actor, server_id)
    rows = await db.exec(
        select(ContractMigration)
        .where(ContractMigration.server_id == server_id, ContractMigration.state == "open")
        .order_by(col(ContractMigration.id))
    )
    found = rows.all()
    ids = {int(one) for migration in found for one in migration.rules}
    named = await db.exec(select(Rule.id, Rule.name).where(col(Rule.id).in_(ids), col(Rule.deleted_at).is_(None)))
    rule_names = {str(rule_id): name for rule_id, name in named.all()}
    places = [place for one in found for place in ((one.chain, one.contract), (one.new_chain, one.new_contract))]
    names = await collections.names(db, places)
    return tuple(
        RunningMigration(
            one.id or 0, one.chain, one.contract, names.get((one.chain, one.contract)) or one.contract,
            one.new_chain, one.new_contract, names.get((one.new_chain, one.new_contract)) or one.new_contract,
            one.until, one.created_at, tuple(rule_names[key] for key in one.rules if key in rule_names),
        )
        for one in found
    )  # fmt: skip


async def in_use(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int) -> tuple[ContractInUse, ...]:
    """Return the contracts that the server's rules name, by name. Raises ServerNotFound."""
    await permissions.require_admin_to_read(db, outside, actor, server_id)
    rows = await db.exec(select(Rule).where(Rule.server_id == server_id, col(Rule.deleted_at).is_(None)))
    counted = Counter(
        place
        for rule in rows.all()
        for place in {
            (leaf.chain, leaf.contract)
            for leaf in requirements(parse_stored(rule.expression))
            if leaf.chain and leaf.contract not in {ANY_CONTRACT, NATIVE}
        }
    )
    names = await collections.names(db, counted)
    found = [ContractInUse(*place, names.get(place) or place[1], count) for place, count in counted.items()]
    return tuple(sorted(found, key=lambda one: (one.name.casefold(), one.chain)))
