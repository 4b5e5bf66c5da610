"""From due members to intentions: look at what they hold, decide, confirm what would take a role, and write it down."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from gateways import Gateways
from gateways.discord_types import Member as LiveMember
from gateways.discord_types import MemberGone
from gateways.errors import ProviderError
from models.database import AsyncSession
from services import holdings
from services.cases import Case
from services.expressions import Answer, evaluate, requirements
from services.holdings import Answers, Question, Reading
from services.policy import Decision, GrantFacts, Move, decide

Place = tuple[int, str]
"""A server's id and a chain."""


@dataclass(slots=True)
class Looked:
    """What came of looking at one case."""

    case: Case
    decisions: list[Decision]
    readings: dict[int, list[Reading]]
    live: LiveMember | None = None
    """The member as Discord just showed them, when the ledger and the gateway's picture did not fit together."""
    gone: bool = False
    fault: str | None = None
    """Why nothing could be decided at all."""

    @property
    def doubtful(self) -> bool:
        """Whether somebody has to look again soon."""
        return self.fault is not None or any(decision.doubtful for decision in self.decisions)

    def evidence(self, decision: Decision) -> list[Reading]:
        """The readings behind a decision: those of the rules for its role."""
        rules = {rule.id for rule in self.case.rules if rule.role_id == decision.role_id and rule.decides}
        return [reading for rule_id in sorted(rules) for reading in self.readings.get(rule_id, [])]


@dataclass(slots=True)
class Round:
    """One look at a batch: the questions that were asked of the chains, and what came of each case."""

    asked: list[tuple[Question, Answers]] = field(default_factory=list[tuple[Question, Answers]])
    looked: list[Looked] = field(default_factory=list[Looked])


async def questions(db: AsyncSession, cases: Sequence[Case]) -> dict[Place, Question]:
    """What has to be asked of each chain for each server, no older than what was seen before."""
    wanted: dict[Place, Question] = {}
    for place, (contracts, owners) in _places(cases).items():
        not_before = await holdings.newest_block(db, place[1], contracts, owners)
        wanted[place] = Question(place[1], contracts, owners, not_before)
    return wanted


def _places(cases: Sequence[Case]) -> dict[Place, tuple[tuple[str, ...], tuple[str, ...]]]:
    owners: dict[Place, set[str]] = {}
    contracts: dict[Place, tuple[str, ...]] = {}
    for case in cases:
        if not case.bot_invited or case.left:
            continue
        for chain, wanted in case.contracts.items():
            family = holdings.family_of(chain)
            addresses = {address for kind, address in case.wallets if kind == family}
            if addresses:
                owners.setdefault((case.claim.server_id, chain), set()).update(addresses)
                contracts[case.claim.server_id, chain] = wanted
    return {place: (contracts[place], tuple(sorted(owners[place]))) for place in sorted(owners)}


async def look(outside: Gateways, cases: Sequence[Case], wanted: Mapping[Place, Question], now: datetime) -> Round:
    """Read the chains once, decide, and read again, elsewhere, whatever would cost somebody a role."""
    answers = dict(zip(wanted, await holdings.ask_all(outside, list(wanted.values())), strict=True))
    done = Round(asked=[(wanted[place], answers[place]) for place in wanted])
    for case in cases:
        done.looked.append(_decide(case, answers, now))
    await _meet(outside, [item for item in done.looked if _puzzling(item)], now)
    await _confirm(outside, done, wanted, answers, now)
    return done


def _decide(case: Case, answers: Mapping[Place, Answers], now: datetime) -> Looked:
    readings: dict[int, list[Reading]] = {}
    for rule in case.rules:
        if rule.decides:
            readings[rule.id] = [
                holdings.read(leaf, case.wallets, answers.get((case.claim.server_id, leaf.chain)))
                for leaf in requirements(rule.expression)
            ]
    return Looked(case, _conclude(case, readings, now), readings)


def _conclude(case: Case, readings: Mapping[int, list[Reading]], now: datetime) -> list[Decision]:
    verdicts: dict[int, Answer] = {}
    for rule in case.rules:
        if rule.decides:
            known = {reading.requirement: reading.answer for reading in readings[rule.id]}
            verdicts[rule.id] = evaluate(rule.expression, lambda leaf, known=known: known[leaf])
    return decide(case.rules, verdicts, case.grants, case.roles, now)


def _puzzling(item: Looked) -> bool:
    """Whether Discord must be asked: we don't know the member, or the ledger and the last picture disagree."""
    if not item.case.bot_invited or item.case.left:
        return False
    unknown = not item.case.known and bool(item.decisions)
    return unknown or any(decision.move in {Move.LOST, Move.FORGET} for decision in item.decisions)


async def _meet(outside: Gateways, items: Sequence[Looked], now: datetime) -> None:
    """Read these members from Discord and decide anew by what it says."""
    await asyncio.gather(*(_meet_one(outside, item, now) for item in items))


async def _meet_one(outside: Gateways, item: Looked, now: datetime) -> None:
    try:
        item.live = await outside.discord.member(item.case.guild_id, item.case.claim.discord_id)
    except MemberGone:
        item.gone = True
        item.decisions = []
    except ProviderError as fault:
        item.fault = str(fault)
        item.decisions = []
    else:
        item.case.roles = item.live.roles
        item.decisions = _conclude(item.case, item.readings, now)


def _confirmable(item: Looked) -> list[Decision]:
    begun = {grant.role_id for grant in item.case.grants if grant.no_since is not None}
    return [
        decision
        for decision in item.decisions
        if decision.move is Move.TAKE or (decision.move is Move.WAIT and decision.role_id not in begun)
    ]


async def _confirm(
    outside: Gateways,
    done: Round,
    wanted: Mapping[Place, Question],
    answers: Mapping[Place, Answers],
    now: datetime,
) -> None:
    losing = [item for item in done.looked if _confirmable(item)]
    places = _places([item.case for item in losing])
    again: dict[Place, Question] = {}
    for place, (contracts, owners) in places.items():
        if place in wanted:
            again[place] = replace(wanted[place], contracts=contracts, owners=owners)
    seconds = await asyncio.gather(*(_second(outside, again[place], answers[place]) for place in again))
    confirmed = dict(zip(again, seconds, strict=True))
    done.asked.extend((again[place], confirmed[place]) for place in again)
    for item in losing:
        second = _decide(item.case, confirmed, now)
        item.readings = {
            rule_id: [holdings.agree(a, b) for a, b in zip(first, second.readings[rule_id], strict=True)]
            for rule_id, first in item.readings.items()
        }
        item.decisions = _conclude(item.case, item.readings, now)


async def _second(outside: Gateways, question: Question, first: Answers) -> Answers:
    if first.sheet is None:
        return first
    return await holdings.ask_again(outside, question, first.sheet)


def facts_of(item: Looked, role_id: str) -> GrantFacts | None:
    """The ledger's line for a role of this case, as it was loaded."""
    return next((grant for grant in item.case.grants if grant.role_id == role_id), None)
