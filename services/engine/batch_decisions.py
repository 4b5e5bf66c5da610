"""Bulk decisions: members with equal facts share one decision."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from gateways.chains.balance_sheet import LARGE, BalanceSheet
from services.engine.cases import Case
from services.engine.decide import Decision, changes_nothing
from services.holdings.evaluate import Answers, sheet_for
from services.holdings.fetch_plan import EVM, SOLANA, family_of
from services.rules.expression import Requirement, lists_in, requirements


class BatchDecisions:
    """Cache of a batch's decisions, keyed by the facts they depend on: rules, balances, grants and roles.

    It serves only servers whose rules need nothing beyond balances and our own tables.
    """

    def __init__(self, answers: Mapping[tuple[int, str], Answers]) -> None:
        self._answers = answers
        self._chains: dict[int, list[_Cells] | None] = {}
        self._roles: dict[int, frozenset[str]] = {}
        self._lists: dict[int, tuple[str, ...]] = {}
        self._known: dict[Hashable, tuple[list[Decision], bool]] = {}

    def decisions(self, case: Case, decide: Callable[[], list[Decision]]) -> tuple[list[Decision], bool] | None:
        """Return the decisions, and whether there is nothing to do about them; equal cases call `decide` once.

        Return None if balances do not answer everything, or if a delegation, a truce or a late gift concerns the
        member.
        """
        key = self._key(case)
        if key is None:
            return None
        found = self._known.get(key)
        if found is None:
            said = decide()
            found = self._known[key] = (said, all(changes_nothing(one, case.grants) for one in said))
        return found

    def _key(self, case: Case) -> Hashable | None:
        server_id = case.claim.server_id
        if server_id not in self._chains:
            self._chains[server_id] = self._by_chain(case)
            self._roles[server_id] = frozenset(rule.role_id for rule in case.rules)
            named = (one.list for rule in case.rules if rule.decides for one in lists_in(rule.expression))
            self._lists[server_id] = tuple(dict.fromkeys(named))
        chains = self._chains[server_id]
        if chains is None or case.delegated.vaults or case.delegated.doubts:
            return None
        held: list[Hashable] = []
        alone = len(case.wallets) == 1
        for scope, address in case.wallets:
            held.append(scope)
            if scope != SOLANA:
                # With one wallet only the number of reached thresholds matters; amounts of several wallets add up.
                held += [(cells.reached if alone else cells.amounts).get(address) for cells in chains]
            for one in self._lists[server_id]:
                listed = case.tables.lists.get(one)
                held.append(None if listed is None else address in listed)
        if case.truces or case.late_gifts:
            return None
        roles = case.roles and case.roles & self._roles[server_id].union(grant.role_id for grant in case.grants)
        return server_id, tuple(held), case.grants, roles

    def _by_chain(self, case: Case) -> list[_Cells] | None:
        leaves: dict[str, list[Requirement]] = {}
        for rule in case.rules:
            for leaf in requirements(rule.expression) if rule.decides else ():
                if not leaf.kind.chainless:
                    leaves.setdefault(leaf.chain, []).append(leaf)
        found: list[_Cells] = []
        for chain, asked in leaves.items():
            answers = self._answers.get((case.claim.server_id, chain))
            if not all(_by_balance(leaf, answers) for leaf in asked):
                return None
            if answers is not None and answers.sheet is not None:
                found.append(_Cells.of(answers.sheet, asked))
        return found


@dataclass(frozen=True, slots=True)
class _Cells:
    """The balances of one chain by wallet, with one cell for each contract that a requirement names."""

    amounts: Mapping[str, tuple[int | None, ...]]
    reached: Mapping[str, tuple[int, ...]]
    """In place of each amount, 1 plus the number of thresholds that it reaches; 0 if it is unknown."""

    @classmethod
    def of(cls, sheet: BalanceSheet, leaves: Sequence[Requirement]) -> _Cells:
        """Return the cells by wallet."""
        names = sheet.owners.hex()
        owners = ["0x" + names[at : at + 40] for at in range(0, len(names), 40)]
        needs: dict[str, set[int]] = {}
        for leaf in leaves:
            needs.setdefault(leaf.contract, set()).update(_thresholds(leaf))
        amounts = list[Sequence[int | None]]()
        reached = list[Sequence[int]]()
        for contract, thresholds in needs.items():
            row = sheet.row(contract)
            if max(thresholds) < LARGE - 1:
                amounts.append(row)
                reached.append(row.translate(_steps(frozenset(thresholds))))
            else:
                exact = sheet.amounts(contract)
                amounts.append(exact)
                reached.append(_reached(exact, sorted(thresholds)))
        return cls(
            dict(zip(owners, zip(*amounts, strict=True), strict=True)),
            dict(zip(owners, zip(*reached, strict=True), strict=True)),
        )


def _by_balance(leaf: Requirement, answers: Answers | None) -> bool:
    """Return whether a balance answers the requirement, or nobody has a wallet on the chain."""
    if leaf.kind.source not in {"balances", "coins"} or family_of(leaf.chain) != EVM:
        return False
    return answers is None or (answers.sheet is not None and sheet_for(leaf, answers) is answers.sheet)


def _thresholds(leaf: Requirement) -> tuple[int, ...]:
    """Return the amounts at which the answer to a requirement changes."""
    least, most = leaf.least, leaf.most
    return (least,) if most is None else (least, most + 1)


def _reached(amounts: Sequence[int | None], thresholds: Sequence[int]) -> list[int]:
    """Return, for each amount, 1 plus the number of thresholds reached, or 0 if it is unknown.

    This is for thresholds above 253, the largest amount that a cell of one byte distinguishes.
    """
    return [0 if amount is None else 1 + bisect_right(thresholds, amount) for amount in amounts]


@lru_cache(maxsize=1_000)
def _steps(needs: frozenset[int]) -> bytes:
    """Return a lookup table from a cell (amount plus one, 0 for unknown) to 1 plus the number of thresholds reached."""
    return bytes(0 if cell == 0 else 1 + sum(cell - 1 >= least for least in needs) for cell in range(256))
