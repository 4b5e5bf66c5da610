"""The outcome of a reconcile: the decisions about each member, and the readings behind them."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from gateways.discord.types import GuildMember as LiveMember
from locales import N_
from locales.stored_texts import said, storable, with_token_hidden, within
from services.collections.trait_match import TokenTraits
from services.collections.trait_sources import TokenKey
from services.core.answer import Answer
from services.core.chain_names import chain_title
from services.engine.cases import Case
from services.engine.decide import Action, Decision, GrantFacts
from services.holdings import evaluate
from services.holdings.confirmation import Earlier
from services.holdings.delegations import Fetched
from services.holdings.evaluate import Answers, Reading
from services.holdings.fetch import HoldingsQuestion
from services.holdings.wallet_shares import WalletShare
from services.rules.expression import Requirement
from services.rules.rule_terms import RuleTerms
from services.rules.types import own_tables
from services.rules.types.own_tables import OwnTables

ServerChain = tuple[int, str]
"""A server's id and a chain."""


@dataclass(slots=True)
class CaseOutcome:
    """The outcome of one case."""

    case: Case
    decisions: list[Decision]
    answers: Mapping[ServerChain, Answers] = field(repr=False)
    found: dict[int, list[Reading]] | None = None
    """The readings of the member; None until needed, if balances answer everything."""
    calm: bool = False
    """Whether everything is known and right, so that there is nothing to do or write."""
    live: LiveMember | None = None
    """The member as Discord just returned them, if the ledger and the stored roles disagreed."""
    gone: bool = False
    left_behind: tuple[GrantFacts, ...] = ()
    """Grants that ended when the member left unnoticed; they rejoined after we gave the role.

    Discord removes all roles of a member who leaves, so no rival took these. They are given again if a rule says yes.
    """
    fault: str | None = None
    """Why nothing could be decided at all."""
    first_no: Mapping[str, Mapping[str, Earlier]] = field(default_factory=dict[str, Mapping[str, Earlier]])
    """By role, the answers that would take it and still need confirmation by a later reconcile."""
    again_in: float | None = None
    """Seconds until that reconcile can succeed."""
    recheck_at: datetime | None = None
    """When to reconcile again although everything is known, because a node may have lagged."""

    @property
    def readings(self) -> dict[int, list[Reading]]:
        """The member's readings by rule."""
        if self.found is None:
            self.found = read_all(self.case, self.answers)
        return self.found

    @property
    def doubtful(self) -> bool:
        """Whether the member has to be reconciled again soon."""
        return self.fault is not None or any(decision.doubtful for decision in self.decisions)

    @property
    def doubt(self) -> str | None:
        """Why the member has to be reconciled again: what could not be read, and where, without the token."""
        if self.fault is not None:
            return self.fault
        unknown = (one for readings in self.readings.values() for one in readings if one.answer is Answer.UNKNOWN)
        first = next(unknown, None)
        if first is None:
            return None
        reason, chain = with_token_hidden(first.reason or N_("not read")), chain_title(first.requirement.chain)
        # The name of a chain's node begins with the chain's: "Base (node 2): the connection was lost".
        if not chain or said(reason).startswith(chain):
            return reason
        return storable("{chain}: {reason}", chain=chain, reason=within(reason))

    def evidence(self, decision: Decision) -> list[Reading]:
        """Return the readings of the rules for a role; for a loss, also those of the rules that once gave it."""
        return [reading for rule in self._evident(decision) for reading in self.readings.get(rule.id, [])]

    def evidence_documents(self, decision: Decision) -> list[dict[str, Any]]:
        """Return the same readings as the ledger stores them; one of a condition that must not hold is `excluded`."""
        return [
            reading.document() | ({} if wanted else {"excluded": True})
            for rule in self._evident(decision)
            for reading, (_, wanted) in zip(self.readings.get(rule.id, []), rule.leaves, strict=False)
        ]

    def _evident(self, decision: Decision) -> list[RuleTerms]:
        if decision.action in {Action.TAKE, Action.WAIT}:
            rules = [rule for rule in self.case.rules if decides_loss(self.case, rule, decision.role_id)]
        else:
            rules = [rule for rule in self.case.rules if rule.role_id == decision.role_id and rule.decides]
        return sorted(rules, key=lambda rule: rule.id)

    def readings_made(self) -> list[Reading]:
        """Return the readings made for the member; none if balances decided an equal case."""
        return [reading for found in (self.found or {}).values() for reading in found]


@dataclass(slots=True)
class BatchOutcome:
    """One reconcile of a batch: the questions to the chains with their answers, and each case's outcome."""

    asked: list[tuple[HoldingsQuestion, Answers]] = field(default_factory=list[tuple[HoldingsQuestion, Answers]])
    outcomes: list[CaseOutcome] = field(default_factory=list[CaseOutcome])
    traits: dict[TokenKey, TokenTraits | str] = field(default_factory=dict[TokenKey, TokenTraits | str])
    """The traits that were read for this batch."""
    delegations: list[Fetched] = field(default_factory=list[Fetched])
    """The registries' second answers about delegations that differ from the first."""
    began: float = field(default_factory=time.monotonic)
    """A time before the first request to a chain, in monotonic seconds; the answers may lack later transfers."""


def read_all(case: Case, answers: Mapping[ServerChain, Answers]) -> dict[int, list[Reading]]:
    """Return a member's readings by rule, one for each requirement from left to right."""
    found: dict[int, list[Reading]] = {}
    for rule in case.rules:
        if rule.decides:
            found[rule.id] = [
                read_own(leaf, case.wallets, case.tables)
                if leaf.kind.chainless
                else evaluate.read(
                    leaf,
                    case.wallets,
                    answers.get((case.claim.server_id, leaf.chain)),
                    case.delegated_by(rule, wanted=wanted),
                )
                for leaf, wanted in rule.leaves
            ]
    return found


def read_own(leaf: Requirement, wallets: Iterable[tuple[str, str]], tables: OwnTables) -> Reading:
    """Return the reading of a requirement that our own tables answer."""
    said = own_tables.answer(leaf.details, wallets, tables)
    parts = tuple(WalletShare(address, int(counts)) for address, counts in said.wallets.items())
    if said.answer is Answer.UNKNOWN:
        return Reading(leaf, said.answer, None, reason=said.reason)
    held = sum(part.amount for part in parts)
    return Reading(leaf, said.answer, held, None, own_tables.SOURCE, tables.read_at, said.reason, parts)


def decides_loss(case: Case, rule: RuleTerms, role_id: str) -> bool:
    """Return whether a rule's answer decides that a role is lost.

    Every rule for the role does. So does a rule that gave it and gives another role now: unless that rule says no, the
    removal waits for the other role.
    """
    if not rule.decides:
        return False
    return rule.role_id == role_id or any(
        grant.role_id == role_id and rule.id in grant.rule_ids for grant in case.grants
    )
