"""Evaluate a requirement for a member's wallets: yes, no or unknown, with the evidence. Pure functions."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from gateways.chains.balance_sheet import NATIVE_ADDRESS, BalanceSheet
from gateways.chains.indexer import LISTS
from gateways.chains.token_sheet import TokenSheet, token_ids
from gateways.chains.view_sheet import ViewQuestion, ViewSheet
from gateways.solana.balances import SolanaBalances
from locales import N_
from locales.stored_texts import storable, with_token_hidden, within
from services.collections.trait_match import TokenTraits, match_all
from services.collections.trait_sources import TokenKey
from services.core.answer import Answer
from services.holdings.fetch_plan import SOLANA, TokenWant, addresses_on, call_of, is_about
from services.holdings.wallet_shares import Delegated, Vault, WalletShare, conclude_for, counting, doubts_of, vaults_for
from services.rules.expression import ANY_NFT, Expression, Requirement, evaluate, requirements
from services.rules.types.coin import CoinAmount
from services.rules.types.view_call import ViewCall

Sheet = BalanceSheet | TokenSheet | ViewSheet
"""A chain's answer to one question about all wallets."""


@dataclass(slots=True)
class Answers:
    """A chain's answers about a server's wallets; a text in place of a sheet says why there is none."""

    owners: frozenset[str] = frozenset()
    """The wallets that were asked about; nothing is known about others."""
    sheet: BalanceSheet | None = None
    fault: str | None = None
    tokens: dict[TokenWant, TokenSheet | str] = field(default_factory=dict[TokenWant, TokenSheet | str])
    anything: TokenSheet | str | None = None
    calls: dict[ViewQuestion, ViewSheet | str] = field(default_factory=dict[ViewQuestion, ViewSheet | str])
    traits: dict[TokenKey, TokenTraits | str] = field(default_factory=dict[TokenKey, TokenTraits | str])
    of_vaults: dict[str, BalanceSheet | str] = field(default_factory=dict[str, BalanceSheet | str])
    """By vault, its balances in the contracts that claims name (see `Wants.of_vaults`)."""
    beside: frozenset[str] = frozenset()
    """Contracts on the sheet whose balances only add to an indexer's list (see `Wants.beside`)."""
    coins: frozenset[str] = frozenset()
    """Coins on the sheet, which are not NFTs."""
    coin_fault: str | None = None
    """Why there is no sheet, if coins were asked for."""
    standards: dict[str, str] = field(default_factory=dict[str, str])
    """The standards that contracts turned out to have."""
    settled: bool = False
    """Whether the answers are of settled blocks, which are not the newest."""

    @property
    def as_of(self) -> datetime | None:
        """The time of the oldest block in the answers; None if there are none."""
        sheets = (self.sheet, self.anything, *self.tokens.values(), *self.calls.values(), *self.of_vaults.values())
        times = [one.block_time for one in sheets if isinstance(one, Sheet)]
        return min(times, default=None)


def sheet_for(leaf: Requirement, answers: Answers | None) -> Sheet | str | None:
    """Return the sheet that answers a requirement, or why there is none."""
    source = leaf.kind.source
    if answers is None or source == "nothing":
        return None
    if source == "balances":
        tokens = answers.tokens.get((leaf.contract, ()))
        if tokens is not None and (answers.sheet is None or answers.sheet.says_nothing(leaf.contract)):
            return tokens
        return answers.sheet or answers.fault
    if (call := call_of(leaf)) is not None:
        return answers.calls.get(call)
    if source == "anything":
        return answers.anything
    if source == "coins":
        return answers.sheet or answers.coin_fault if _has_decimals(leaf) else N_("the coin's decimals are not known")
    return answers.tokens.get((leaf.contract, leaf.token_ids if leaf.kind.names_ids else ()))


def _has_decimals(leaf: Requirement) -> bool:
    """Return whether a coin's decimals are known. A preview continues without them if the contract does not answer."""
    return isinstance(leaf.details, CoinAmount) and leaf.details.decimals is not None


def _why_unknown(sheet: BalanceSheet, leaf: Requirement, address: str) -> str:
    """Return why an amount of a sheet is unknown. On Solana, the node gives a reason, or it was not asked in time."""
    if isinstance(sheet, SolanaBalances):
        return sheet.doubt(leaf.contract, address) or N_("it was not read in time")
    return N_("the contract gave no answer")


def part_of(leaf: Requirement, address: str, answers: Answers) -> WalletShare:
    """Return the share of one wallet."""
    return _part_of(leaf, address, answers, sheet_for(leaf, answers))


def _part_of(leaf: Requirement, address: str, answers: Answers, told: Sheet | str | None) -> WalletShare:
    if address not in answers.owners:
        return WalletShare(address, 0, N_("not looked at"))
    if isinstance(told, BalanceSheet):
        amount = told.amount(leaf.contract, address)
        return WalletShare(address, amount or 0, _why_unknown(told, leaf, address) if amount is None else None)
    if isinstance(told, ViewSheet):
        return _answered(leaf, address, told)
    if not isinstance(told, TokenSheet):
        return WalletShare(address, 0, N_("not looked at"))
    if leaf.kind.source == "anything":
        return _anything(address, sum(told.of(address).values()), told.unsure.get(address), answers)
    return _fitting(leaf, address, told.of(address), told.unsure.get(address), answers)


def _answered(leaf: Requirement, address: str, sheet: ViewSheet) -> WalletShare:
    """Return a wallet's share by a view function's answer about it."""
    value = sheet.values.get(address)
    if value is None or not isinstance(leaf.details, ViewCall):
        return WalletShare(address, 0, sheet.unsure.get(address, N_("not looked at")))
    return WalletShare(address, leaf.details.share(value))


def _fitting(
    leaf: Requirement, address: str, held: Mapping[str, int], reason: str | None, answers: Answers
) -> WalletShare:
    """Return a wallet's share, which counts the tokens that match."""
    if leaf.kind.names_ids:
        wanted = _wanted(leaf)
        held = {one: amount for one, amount in held.items() if wanted(one)}
    if leaf.kind.names_trait:
        return _with_trait(leaf, address, held, reason, answers)
    return WalletShare(address, sum(held.values()), reason)


@lru_cache(maxsize=200)
def _wanted(leaf: Requirement) -> Callable[[str], bool]:
    """Return a test for the requirement's token ids: by number, on Solana by the mint address."""
    if leaf.chain == SOLANA:
        return frozenset(leaf.token_ids).__contains__
    ids = token_ids(leaf.token_ids)
    return lambda one: int(one) in ids


def _with_trait(
    leaf: Requirement, address: str, held: Mapping[str, int], reason: str | None, answers: Answers
) -> WalletShare:
    fitting, alone = 0, set[tuple[str, str]]()
    for token_id, amount in held.items():
        traits = answers.traits.get((leaf.chain, leaf.contract, token_id))
        answer, source = match_all(traits if isinstance(traits, TokenTraits) else None, leaf.traits)
        if source is not None:
            alone.add((token_id, source))
        if answer is Answer.YES:
            fitting += amount
        elif answer is Answer.UNKNOWN and reason is None:
            why = traits if isinstance(traits, str) else N_("not all of its traits could be read")
            reason = storable("token {token}: {reason}", token=token_id[:44], reason=within(why))
    return WalletShare(address, fitting, reason, alone=frozenset(alone), judged=frozenset(held))


def part_of_vault(leaf: Requirement, vault: Vault, answers: Answers) -> WalletShare:
    """Return the member's share of a vault's matching tokens."""
    if leaf.kind.source == "anything":
        part = part_of(leaf, vault.address, answers) if vault.whole else _anything_of(leaf, vault, answers)
        return replace(part, through=vault.through, mark=vault.mark)
    cut = vault.cut(leaf.contract)
    told = sheet_for(leaf, answers)
    if leaf.kind.source == "coins" and not cut.rest:
        part = WalletShare(vault.address, 0)  # only single tokens are delegated, and a coin has none
    elif leaf.kind.source == "coins" or cut.whole or vault.address not in answers.owners:
        part = part_of(leaf, vault.address, answers)
    elif isinstance(told, TokenSheet):
        held = cut.of(told.of(vault.address))
        part = _fitting(leaf, vault.address, held, told.unsure.get(vault.address), answers)
    elif isinstance(told, BalanceSheet):
        part = _of_balance(leaf, vault, told, answers)
    else:
        part = WalletShare(vault.address, 0, told if isinstance(told, str) else N_("not looked at"))
    return replace(part, through=vault.through, mark=cut.mark)


def _of_balance(leaf: Requirement, vault: Vault, sheet: BalanceSheet, answers: Answers) -> WalletShare:
    """Return the member's share of a vault's balance: claimed single tokens are deducted."""
    cut, reason = vault.cut(leaf.contract), None
    named = answers.tokens.get((leaf.contract, cut.ids))
    held = named.of(vault.address) if isinstance(named, TokenSheet) else dict[str, int]()
    if cut.ids:
        reason = named.unsure.get(vault.address) if isinstance(named, TokenSheet) else named or N_("not looked at")
    balance = sheet.amount(leaf.contract, vault.address)
    if cut.rest and balance is None:
        reason = N_("the contract gave no answer")
    if reason is not None or balance is None:
        return WalletShare(vault.address, sum(cut.of(held).values()), reason)
    return WalletShare(vault.address, cut.out_of(balance, held))


def _anything_of(leaf: Requirement, vault: Vault, answers: Answers) -> WalletShare:
    """Return the member's share of a vault for any collection, if others have claims on it."""
    balances = answers.of_vaults.get(vault.address)
    sheet, fault = (balances, None) if isinstance(balances, BalanceSheet) else (None, balances)
    claimed = replace(answers, sheet=sheet, fault=fault)
    parts = [
        part_of_vault(Requirement("basic", leaf.chain, contract), vault, claimed)
        for contract in vault.named
        if not vault.cut(contract).nothing
    ]
    told = answers.anything
    if vault.rest and isinstance(told, TokenSheet):
        listed = told.of(vault.address)
        found = sum(amount for one, amount in listed.items() if one.partition(":")[0] not in vault.named)
        reason = told.unsure.get(vault.address)
        if listed and not found and reason is None:
            reason = N_("not everything that the vault holds is known")
        parts.append(_anything(vault.address, found, reason, answers, without=vault.named))
    reasons = [part.reason for part in parts if part.reason is not None]
    alone = frozenset[tuple[str, str]]().union(*(part.alone for part in parts))
    return WalletShare(vault.address, sum(part.amount for part in parts), reasons[0] if reasons else None, alone=alone)


def _anything(
    address: str, found: int, reason: str | None, answers: Answers, *, without: Sequence[str] = ()
) -> WalletShare:
    """Return the share of any collection: the tokens found, and the balances of contracts that answered."""
    sheet = answers.sheet
    if sheet is not None and not found:
        listed = (f"0x{sheet.contracts[at : at + 20].hex()}" for at in range(0, len(sheet.contracts), 20))
        asked = (one for one in listed if one not in answers.coins and one != NATIVE_ADDRESS)
        # A contract that answers for no wallet proves nothing and must not affect the other contracts.
        amounts = {
            contract: sheet.amount(contract, address)
            for contract in asked
            if contract not in without and not sheet.says_nothing(contract)
        }
        found = sum(amount for amount in amounts.values() if amount)
        if reason is None and any(amount is None and one not in answers.beside for one, amount in amounts.items()):
            reason = N_("a collection gave no answer")
    elif sheet is None and answers.fault is not None and reason is None:
        reason = answers.fault
    told = answers.anything
    index = told.alone.get(address) if isinstance(told, TokenSheet) and not found else None
    return WalletShare(address, found, reason, alone=frozenset({(ANY_NFT, index)}) if index else frozenset())


def verdict(tree: Expression, wallets: Iterable[tuple[str, str]], answer: Callable[[Requirement], Answer]) -> Answer:
    """Return yes, no or unknown; always no without a wallet (`(scope, address)`) that counts on a chain of the rule.

    Otherwise a member without wallets would satisfy a "must not hold".
    """
    scopes = {scope for scope, _ in wallets}
    if not any(is_about(leaf, scope) for leaf in requirements(tree) for scope in scopes):
        return Answer.NO
    return evaluate(tree, answer)


def verdict_by(tree: Expression, wallets: Iterable[tuple[str, str]], answers: Iterable[Answer]) -> Answer:
    """Return the verdict by one answer for each leaf, left to right: equal leaves may have different answers."""
    given = iter(answers)
    return verdict(tree, wallets, lambda _: next(given))


@dataclass(frozen=True, slots=True)
class Reading:
    """One requirement evaluated for one member's wallets: the answer and its evidence."""

    requirement: Requirement
    answer: Answer
    held: int | None
    block: int | None = None
    source: str | None = None
    observed_at: datetime | None = None
    reason: str | None = None
    parts: tuple[WalletShare, ...] = ()
    by_balance: bool = False
    """Whether the contract returned the balance, rather than single tokens being counted."""
    first: tuple[str, int] | None = None
    """The source and the block of the answer that this one confirms."""
    one_source: bool = False
    """Whether it depends on one source, because there is no other."""

    @property
    def needed(self) -> int:
        """The least amount that satisfies the requirement."""
        return self.requirement.least

    @property
    def alone(self) -> frozenset[tuple[str, str]]:
        """Facts from one source (a token and the source)."""
        return frozenset[tuple[str, str]]().union(*(part.alone for part in self.parts))

    @property
    def judged(self) -> frozenset[str]:
        """The tokens whose traits the answer was read from."""
        return frozenset[str]().union(*(part.judged for part in self.parts))

    def without_wallet(self) -> "Reading":
        """Return what names no wallet: a large amount is rounded, and the reason hides token ids."""
        held = None if self.held is None else self.requirement.rounded(self.held)
        return replace(self, held=held, reason=self.reason and with_token_hidden(self.reason), parts=())

    def document(self) -> dict[str, Any]:
        """Return the evidence as the ledger and the log store it.

        Admins read it whether or not the member shares wallets, so nothing in it names one.
        """
        leaf, most, public = self.requirement, self.requirement.most, self.without_wallet()
        delegated = sum(part.amount for part in self.parts if part.through)
        return {
            "chain": leaf.chain, "contract": leaf.contract, "type": leaf.type,
            "answer": self.answer.value, "needed": leaf.in_json(self.needed),
            **({"most": leaf.in_json(most)} if most is not None else {}),
            "held": None if public.held is None else leaf.shown(public.held),
            **({"rounded": True} if public.held != self.held else {}),
            "delegated": leaf.shown(leaf.rounded(delegated)),
            "block": self.block, "source": self.source, "reason": public.reason,
            "observedAt": self.observed_at.isoformat() if self.observed_at else None,
            **({"first": {"source": self.first[0], "block": self.first[1]}} if self.first else {}),
            **({"oneSource": True} if self.one_source else {}),
        }  # fmt: skip


def read(
    leaf: Requirement, wallets: Iterable[tuple[str, str]], answers: Answers | None, delegated: Delegated | None = None
) -> Reading:
    """Evaluate a requirement for wallets (`(scope, address)`); amounts add up, and unknown shares stay unknown.

    `delegated` has the vaults that count too, if the rule counts delegations.
    """
    if leaf.kind.source == "nothing":
        return Reading(leaf, Answer.UNKNOWN, None, reason=N_("this version does not know the condition"))
    addresses = addresses_on(leaf.chain, wallets)
    if not addresses:
        return Reading(leaf, Answer.NO, 0, reason=N_("no wallet on this chain counts here"))
    told = sheet_for(leaf, answers)
    if isinstance(told, str):
        return Reading(leaf, Answer.UNKNOWN, None, reason=told)
    if answers is None or told is None:
        return Reading(leaf, Answer.UNKNOWN, None, reason=N_("not looked at"))
    parts = tuple(_part_of(leaf, address, answers, told) for address in addresses)
    if delegated is not None:
        vaults = (part_of_vault(leaf, vault, answers) for vault in vaults_for(leaf, delegated))
        parts = counting(leaf, parts, (*vaults, *doubts_of(leaf, delegated)))
    held = sum(part.amount for part in parts)
    answer, reason = conclude_for(leaf, parts)
    by_balance = isinstance(told, BalanceSheet)
    return Reading(leaf, answer, held, told.block, told.source, told.block_time, reason, parts, by_balance)


def in_part(leaf: Requirement, answers: Answers) -> bool:
    """Return whether a chain's answer to a requirement is incomplete, so that another node may know more."""
    told = sheet_for(leaf, answers)
    if isinstance(told, BalanceSheet):
        return told.unknown(leaf.contract) > 0
    by_one_list = isinstance(told, TokenSheet) and any(index != LISTS for index in told.alone.values())
    return by_one_list or (isinstance(told, TokenSheet | ViewSheet) and bool(told.unsure))


def unread(
    leaf: Requirement, wallets: Iterable[tuple[str, str]], answers: Answers | None, delegated: Delegated | None = None
) -> Iterator[TokenKey]:
    """Yield the held tokens whose traits are needed to answer a requirement that is still unknown."""
    if answers is not None and _answers(leaf, wallets, answers, delegated, Answer.UNKNOWN):
        for place in _held(leaf, wallets, answers, delegated):
            if not isinstance(answers.traits.get(place), TokenTraits):
                yield place


def denied(
    leaf: Requirement, wallets: Iterable[tuple[str, str]], answers: Answers | None, delegated: Delegated | None = None
) -> Iterator[TokenKey]:
    """Yield the held tokens whose traits make the requirement's answer no."""
    if answers is not None and _answers(leaf, wallets, answers, delegated, Answer.NO):
        yield from _held(leaf, wallets, answers, delegated)


def _answers(
    leaf: Requirement, wallets: Iterable[tuple[str, str]], answers: Answers, delegated: Delegated | None, wanted: Answer
) -> bool:
    by_token = leaf.kind.names_trait and isinstance(sheet_for(leaf, answers), TokenSheet)
    return by_token and read(leaf, wallets, answers, delegated).answer is wanted


def _held(
    leaf: Requirement, wallets: Iterable[tuple[str, str]], answers: Answers, delegated: Delegated | None
) -> Iterator[TokenKey]:
    sheet = sheet_for(leaf, answers)
    if isinstance(sheet, TokenSheet):
        of_vaults = [vault.cut(leaf.contract).of(sheet.of(vault.address)) for vault in vaults_for(leaf, delegated)]
        for held in (*map(sheet.of, addresses_on(leaf.chain, wallets)), *of_vaults):
            for token_id in held:
                yield leaf.chain, leaf.contract, token_id
