"""The airdrop list of a server: payout addresses that members chose for it, and nobody else's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from gateways import Gateways
from locales import N_, NP_, _
from models import MemberChoice, Rule, Wallet
from models.db import row_ids
from models.db.session import AsyncSession
from services.collections import collections
from services.core import audit
from services.core.actors import Actor
from services.core.answer import Answer
from services.core.errors import FieldRefused, RuleNotFound, WalletNotFound
from services.core.json_view import json_view
from services.core.queue import Claim
from services.engine import cases
from services.engine.cases import Case
from services.engine.reconcile_outcome import read_own
from services.guilds import permissions
from services.holdings import last_known
from services.holdings.evaluate import verdict_by
from services.holdings.last_known import Memory
from services.rules.expression import Requirement, requirements
from services.rules.rule_terms import RuleTerms
from services.rules.wording import in_words
from services.runtime.loop_steps import in_steps
from services.servers import csv_tables
from services.wallets import ownership

PAGE, LEAST_PAGE = 200, 10
"""How many members' lines are made at a time, and the minimum if a server has many rules."""
ANSWERS_A_PAGE = 20_000
"""The most members times rules of a page: each answer may add text to the page, which is in memory as a whole."""
HEAD = NP_("column", "address"), NP_("column", "holdings"), NP_("column", "block")
SHOWN = 20
"""How many of the newest downloads a member sees for a server."""
UNKNOWN = "unknown"
_ON_ONE_CHAIN = N_("This address is a contract on one chain alone. Choose a wallet that exists on all chains.")


@json_view
class PayoutDownload:
    """A download of a list with the member's payout address: the admin's name and the time, noted once a day."""

    by: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Chosen:
    """A member who chose a payout address."""

    user_id: int
    discord_id: str
    address: str


async def check(db: AsyncSession, actor: Actor, wallet_id: int) -> None:
    """Check that somebody may choose this wallet. Raises WalletNotFound, FieldRefused for a contract on one chain."""
    wallet = await db.get(Wallet, wallet_id) if row_ids.fits(wallet_id) else None
    if wallet is None or wallet.user_id != actor.user_id:
        raise WalletNotFound
    if wallet.chain:
        raise FieldRefused("payoutWalletId", _(_ON_ONE_CHAIN))


async def downloads(db: AsyncSession, actor: Actor) -> Mapping[int, tuple[PayoutDownload, ...]]:
    """Return, by server, the downloads of the person's payout address, newest first."""
    rows = await db.execute(
        """
        SELECT f.server_id, COALESCE(m.name, u.global_name, u.username, 'Somebody'), f.at FROM (
            SELECT server_id, actor, at,
                   row_number() OVER (PARTITION BY server_id ORDER BY at DESC, id DESC) AS place
            FROM payout_listing WHERE user_id = :user) f
        LEFT JOIN member m ON m.server_id = f.server_id AND m.discord_id = f.actor
        LEFT JOIN "user" u ON u.discord_id = f.actor
        WHERE f.place <= :most ORDER BY f.server_id, f.place
        """,
        {"user": actor.user_id, "most": SHOWN},
    )
    found: dict[int, tuple[PayoutDownload, ...]] = {}
    for server_id, by, at in rows.all():
        found[server_id] = (*found.get(server_id, ()), PayoutDownload(by, at))
    return found


async def begin(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, rule_id: int | None) -> int:
    """Check that the actor runs the server, record the download in the log, and return the size of a page.

    Raises ServerNotFound, RuleNotFound, ProviderUnavailable.
    """
    await permissions.require_admin(db, outside, actor, server_id)
    if rule_id is not None:
        rule = await db.get(Rule, rule_id) if row_ids.fits(rule_id) else None
        if rule is None or rule.server_id != server_id or rule.deleted_at is not None:
            raise RuleNotFound
    count = int((await db.execute(f"SELECT count(*) {_CHOSEN}", {"server": server_id})).scalar_one())
    line = audit.line(
        "server.payouts_downloaded",
        server_id=server_id,
        actor=actor.discord_id,
        rule_id=rule_id,
        data={"members": count},
    )
    await audit.record(db, line)
    if rule_id is not None:
        return PAGE
    rules = await db.execute(
        "SELECT count(*) FROM rule WHERE server_id = :server AND deleted_at IS NULL", {"server": server_id}
    )
    return max(LEAST_PAGE, min(PAGE, ANSWERS_A_PAGE // max(1, int(rules.scalar_one()))))


# Consent ends with the membership, with the wallet, or when the member's wallets no longer count in the server.
_CHOSEN = """
    FROM member_choice c JOIN "user" u ON u.id = c.user_id
    JOIN wallet w ON w.id = c.payout_wallet_id AND w.user_id = c.user_id
    JOIN member m ON m.server_id = c.server_id AND m.discord_id = u.discord_id AND m.left_at IS NULL AND NOT m.bot
    WHERE c.server_id = :server AND c.use_wallets
"""


async def page(db: AsyncSession, server_id: int, after: str, most: int) -> list[Chosen]:
    """Return the next members who chose a payout address, after this Discord id; fewer than `most` at the end."""
    rows = await db.execute(
        f"SELECT c.user_id, m.discord_id, w.address {_CHOSEN} AND m.discord_id > :after "
        "ORDER BY m.discord_id LIMIT :most",
        {"server": server_id, "after": after, "most": most},
    )
    return [Chosen(int(user_id), str(who), str(address)) for user_id, who, address in rows.all()]


async def body(db: AsyncSession, actor: Actor, server_id: int, people: Sequence[Chosen], rule_id: int | None) -> str:
    """Return the rows of these members, and note for each that the actor downloaded them.

    With a rule, only members whom it entitles by the newest readings, or for whom that is unknown, get a row. Those who
    have deleted their data since `page` get none.
    """
    there = await ownership.hold_users(db, {one.user_id for one in people})
    people = [one for one in people if one.user_id in there]
    found = await cases.load(db, [Claim(server_id, one.discord_id, 0, 0, 0) for one in people])
    rules = [
        terms
        for terms in (found[0].rules if found else ())
        if not terms.deleted and (terms.decides if rule_id is None else terms.id == rule_id)
    ]
    leaves = list(dict.fromkeys(leaf for terms in rules for leaf in requirements(terms.expression)))
    names = await collections.names(db, [(leaf.chain, leaf.contract) for leaf in leaves])
    places = [address for case in found for _, address in case.wallets]
    places += [vault.address for case in found for vault in case.delegated.vaults]
    memory = await last_known.load(db, leaves, places)
    listed: list[Chosen] = []
    rows: list[tuple[str, str, str]] = []
    told = {leaf: in_words(leaf, names) for leaf in leaves}
    async for one, case in in_steps(zip(people, found, strict=True)):
        lines = _lines(case, rules, memory, told)
        if rule_id is not None and (not rules or _answer(case, rules[0], lines) is Answer.NO):
            continue
        listed.append(one)
        rows.append((one.address, *_cells(list(lines.values()))))
    await _note(db, actor, server_id, listed)
    return csv_tables.table(rows)


@dataclass(frozen=True, slots=True)
class _Line:
    """What is known about one requirement and one member."""

    text: str
    answer: Answer
    held: str
    chain: str
    block: int | None


def _lines(
    case: Case, rules: Sequence[RuleTerms], memory: Memory, told: Mapping[Requirement, str]
) -> dict[tuple[Requirement, bool], _Line]:
    """Return what is known, by requirement and whether delegations count for it."""
    found: dict[tuple[Requirement, bool], _Line] = {}
    for terms in rules:
        for leaf, wanted in terms.leaves:
            vaults = case.delegated_by(terms, wanted=wanted)
            if leaf.kind.chainless:
                reading = read_own(leaf, case.wallets, case.tables)
                answer, held, block = reading.answer, reading.held, None
            else:
                known = last_known.recall(leaf, case.wallets, memory, vaults)
                answer, held = known.answer, known.held
                block = known.oldest.block if known.oldest is not None else None
            shown = UNKNOWN if answer is Answer.UNKNOWN or held is None else leaf.shown(held)
            found[leaf, vaults is not None] = _Line(told[leaf], answer, shown, leaf.chain, block)
    return found


def _answer(case: Case, terms: RuleTerms, lines: Mapping[tuple[Requirement, bool], _Line]) -> Answer:
    counted = (lines[leaf, case.delegated_by(terms, wanted=wanted) is not None] for leaf, wanted in terms.leaves)
    return verdict_by(terms.expression, case.wallets, (line.answer for line in counted))


def _cells(lines: Sequence[_Line]) -> tuple[str, str]:
    """Return the cells for holdings and block.

    With several requirements each part has a name, and requirements for which nothing is held are left out.
    """
    if len(lines) == 1:
        return lines[0].held, "" if lines[0].block is None else str(lines[0].block)
    blocks = dict.fromkeys(f"{one.chain}: {one.block}" for one in lines if one.block is not None)
    named = (f"{one.text}: {one.held}" for one in lines if one.held != "0" or one.answer is not Answer.NO)
    return "; ".join(named), "; ".join(blocks)


async def _note(db: AsyncSession, actor: Actor, server_id: int, listed: Sequence[Chosen]) -> None:
    """Note for each of these members that the actor downloaded their address, once a day."""
    await db.execute(
        """
        INSERT INTO payout_listing (server_id, user_id, actor, at)
        SELECT :server, one, CAST(:actor AS varchar), now()
        FROM unnest(CAST(:people AS integer[])) AS one
        WHERE NOT EXISTS (
            SELECT 1 FROM payout_listing p WHERE p.server_id = :server AND p.user_id = one
            AND p.actor = CAST(:actor AS varchar) AND p.at >= date_trunc('day', now(), 'UTC'))
        ORDER BY one
        """,
        {"server": server_id, "actor": actor.discord_id, "people": [one.user_id for one in listed]},
    )


async def forget(db: AsyncSession, days: int) -> None:
    """Delete the notes of downloads that are older than `days`; with 0 days they are kept forever, as the log is."""
    if days:
        await db.execute("DELETE FROM payout_listing WHERE at < now() - make_interval(days => :days)", {"days": days})


async def choose(db: AsyncSession, actor: Actor, server_id: int, wallet_id: int | None) -> None:
    """Store the person's payout address for a server, or withdraw it; the caller has checked that they are a member."""
    row = await db.get(MemberChoice, (server_id, actor.user_id), populate_existing=True)
    if row is None or row.payout_wallet_id == wallet_id:
        return
    if wallet_id is not None:
        await check(db, actor, wallet_id)
    row.payout_wallet_id = wallet_id
    db.add(row)
    await audit.record(
        db,
        audit.line(
            "member.chose_payout", server_id=server_id, actor=actor.discord_id, subject=actor.discord_id,
            data={"chosen": wallet_id is not None},
        ),
    )  # fmt: skip
