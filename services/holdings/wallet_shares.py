"""Which delegated vaults count, the shares of vaults and wallets, and what they add up to. Pure functions.

One token counts for one member. If two could count it, the direct owner precedes the delegate, then the oldest claim.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from locales import N_
from services.core.answer import Answer
from services.rules.expression import Requirement

TOO_MANY = N_("more vaults have delegated to the wallet than are read")
MOST_SUMS = 2_000
"""The most sums of vaults that are compared to find some between a minimum and a maximum."""


@dataclass(frozen=True, slots=True)
class WalletShare:
    """How many matching tokens one wallet holds; if there is a `reason`, there may be more.

    For a vault, `through` is the member's wallet that it delegated to. If only some of its tokens are this member's,
    `mark` is a digest of them. An empty address stands for unknown vaults.
    """

    address: str
    amount: int
    reason: str | None = None
    through: str = ""
    mark: str = ""
    alone: frozenset[tuple[str, str]] = frozenset()
    """Facts from one source that is not the chain (a token and the source), and could be wrong."""
    judged: frozenset[str] = frozenset()
    """The tokens whose traits were compared."""


@dataclass(frozen=True, slots=True)
class Stake:
    """One claim on a vault: on everything, on one contract's tokens, or on one token (at most `amount` of it).

    `mine` says whether the member in question has the claim; `delegate` is the wallet that it was given to.
    """

    mine: bool
    contract: str = ""
    token_id: str = ""
    amount: int | None = None
    delegate: str = ""


@dataclass(frozen=True, slots=True)
class VaultShare:
    """The member's share of one contract's tokens in a vault.

    The claims on single tokens in `tokens` come first, in this order; `rest` says whether everything else is theirs.
    """

    tokens: tuple[Stake, ...]
    rest: bool

    @property
    def nothing(self) -> bool:
        """Whether no token of it can be the member's."""
        return not self.rest and not any(stake.mine for stake in self.tokens)

    @property
    def whole(self) -> bool:
        """Whether everything is the member's, as in a wallet of their own."""
        return self.rest and not self.tokens

    @property
    def ids(self) -> tuple[str, ...]:
        """The tokens with a claim of their own, each once."""
        return tuple(sorted({stake.token_id for stake in self.tokens}))

    @property
    def mark(self) -> str:
        """A digest of the share; empty for the whole."""
        return "" if self.whole else _digest([self.rest, *map(_facts, self.tokens)])

    def of(self, held: Mapping[str, int]) -> dict[str, int]:
        """Return the member's share of these tokens (id → amount)."""
        mine: dict[str, int] = {}
        for token_id, amount in held.items():
            left, part = amount, 0
            for stake in self.tokens:
                if stake.token_id == token_id:
                    taken = left if stake.amount is None else min(left, stake.amount)
                    left, part = left - taken, part + taken * stake.mine
            part += left * self.rest
            if part:
                mine[token_id] = part
        return mine

    def out_of(self, balance: int, held: Mapping[str, int]) -> int:
        """Return the member's share of a vault's `balance`; `held` has the amounts of the claimed `ids`."""
        claimed = {token_id: held[token_id] for token_id in self.ids if token_id in held}
        mine = sum(self.of(claimed).values())
        return mine + max(0, balance - sum(claimed.values())) * self.rest


@dataclass(frozen=True, slots=True)
class Vault:
    """A vault on one chain and every claim on it that counts in a server, in order of precedence."""

    chain: str
    address: str
    stakes: tuple[Stake, ...]

    @property
    def through(self) -> str:
        """The member's wallet that the vault delegated to; the first one, if there are several."""
        return next(stake.delegate for stake in self.stakes if stake.mine)

    @property
    def named(self) -> tuple[str, ...]:
        """The contracts named in claims, each once."""
        return tuple(sorted({stake.contract for stake in self.stakes if stake.contract}))

    @property
    def rest(self) -> bool:
        """Whether the tokens of all other contracts are the member's."""
        return next((stake.mine for stake in self.stakes if not stake.contract), False)

    @property
    def whole(self) -> bool:
        """Whether everything in it is the member's."""
        return self.stakes[0].mine and not self.stakes[0].contract

    @property
    def mark(self) -> str:
        """A digest of the claims; empty for the whole vault."""
        return "" if self.whole else _digest([_facts(stake) for stake in self.stakes])

    def cut(self, contract: str) -> VaultShare:
        """Return the member's share of one contract's tokens: single tokens up to the first claim on all of them."""
        tokens: list[Stake] = []
        for stake in self.stakes:
            if stake.contract not in {"", contract}:
                continue
            if not stake.token_id:
                return VaultShare(tuple(tokens), stake.mine)
            tokens.append(stake)
        return VaultShare(tuple(tokens), False)


@dataclass(frozen=True, slots=True)
class Delegated:
    """The vaults that one member may count, by chain and vault; `doubts` says for a chain why there may be more.

    `known` is the registry's last answer, by chain, about each of the member's wallets, and about those wallets of
    others whose claims on a vault come before the member's.
    """

    vaults: tuple[Vault, ...] = ()
    doubts: Mapping[str, str] = field(default_factory=dict[str, str])
    known: Mapping[tuple[str, str], "KnownVaults"] = field(default_factory=dict[tuple[str, str], "KnownVaults"])

    def on(self, chain: str) -> Iterator[Vault]:
        """Return the vaults on a chain."""
        return (vault for vault in self.vaults if vault.chain == chain)


Said = frozenset[tuple[str, str, str, int | None, bool]]
"""Vault, contract (empty for all) and token id (empty for all); for a token, how many count if it is an ERC-1155's
(None for none), and whether it counts if it is an ERC-721's."""


@dataclass(frozen=True, slots=True)
class KnownVaults:
    """A node's last answer about the vaults that one wallet may speak for."""

    block: int
    endpoint: int
    said: Said


def vaults_for(leaf: Requirement, delegated: Delegated | None) -> Iterator[Vault]:
    """Yield the vaults that can count for a requirement.

    A function's answer about a vault cannot be divided: it counts only for the delegate of the whole contract.
    """
    for vault in delegated.on(leaf.chain) if delegated is not None else ():
        if leaf.kind.source == "calls":
            if vault.cut(leaf.contract).whole:
                yield vault
        elif leaf.kind.source == "anything" or not vault.cut(leaf.contract).nothing:
            yield vault


def doubts_of(leaf: Requirement, delegated: Delegated | None) -> Iterator[WalletShare]:
    """Yield a share for unknown vaults, if there may be any."""
    if delegated is not None and (reason := delegated.doubts.get(leaf.chain)) is not None:
        yield WalletShare("", 0, reason)


def _facts(stake: Stake) -> tuple[object, ...]:
    return stake.mine, stake.contract, stake.token_id, None if stake.amount is None else str(stake.amount)


def _digest(what: object) -> str:
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:16]


def conclude_for(leaf: Requirement, parts: Iterable[WalletShare]) -> tuple[Answer, str | None]:
    """Return the answer to a requirement by the wallets' shares, with the reason if it is unknown."""
    listed = tuple(parts)
    if leaf.details is not None and leaf.details.may_fall:
        # An unknown wallet can lower the sum, so the sum decides nothing until every wallet is known.
        reasons = [part.reason for part in listed if part.reason is not None]
        if reasons:
            return Answer.UNKNOWN, reasons[0]
    return conclude(listed, leaf.least, leaf.most)


def conclude(parts: Iterable[WalletShare], needed: int, most: int | None = None) -> tuple[Answer, str | None]:
    """Return yes once enough is proved, no only if every wallet is fully known, else unknown with the reason.

    With a maximum, more than `most` means no, whatever else there is, and yes also needs every wallet to be known.
    """
    listed = tuple(parts)
    held = sum(part.amount for part in listed)
    if most is not None and held > most:
        return Answer.NO, None
    reasons = [part.reason for part in listed if part.reason is not None]
    if held >= needed and (most is None or not reasons):
        return Answer.YES, None
    return (Answer.UNKNOWN, reasons[0]) if reasons else (Answer.NO, None)


def counting(leaf: Requirement, own: Iterable[WalletShare], vaults: Iterable[WalletShare]) -> tuple[WalletShare, ...]:
    """Return the shares that count: those of the member's own wallets, and of vaults delegated to them.

    Anybody can delegate a vault to anybody. If a larger amount can turn a yes into a no, only vaults that help towards
    a yes count, and only if the member's own wallets say no. So a stranger's delegation cannot take a role.
    """
    mine, others = tuple(own), tuple(vaults)
    may_fall = leaf.details is not None and leaf.details.may_fall
    if not others or (leaf.most is None and not may_fall):
        return (*mine, *others)
    held = sum(part.amount for part in mine)
    too_many = not may_fall and leaf.most is not None and held > leaf.most
    if too_many or conclude_for(leaf, mine)[0] is not Answer.NO:
        return mine
    known = sorted((part for part in others if part.reason is None), key=lambda part: part.amount)
    for order in (reversed(known), known):
        fitting = (*mine, *_fitting_in(leaf.most, held, order))
        if conclude_for(leaf, fitting)[0] is Answer.YES:
            return fitting
    if leaf.most is not None and not may_fall:
        chosen = _between(leaf.least - held, leaf.most - held, known[::-1])
        if chosen is None:
            return (*mine, WalletShare("", 0, TOO_MANY))
        if chosen:
            return (*mine, *chosen)
    # A vault that is not fully known might fit, whatever is known about it so far.
    unknown = tuple(replace(part, amount=0) for part in others if part.reason is not None)
    return (*mine, *(unknown or others))


def _fitting_in(most: int | None, held: int, parts: Iterable[WalletShare]) -> Iterator[WalletShare]:
    """Yield the shares that raise the sum to at most `most`; while it is above `most`, yield those that lower it."""
    for part in parts:
        if part.amount < 0 if most is not None and held > most else part.amount > 0:
            if most is not None and part.amount > 0 and held + part.amount > most:
                continue
            held += part.amount
            yield part


def _between(least: int, most: int, parts: Sequence[WalletShare]) -> tuple[WalletShare, ...] | None:
    """Return shares that add up to at least `least` and at most `most`; none if no selection does.

    Returns None if that would take more than MOST_SUMS sums. One share may take the place of several that fit, so every
    sum counts: otherwise a stranger's vaults could hide the member's own.
    """
    sums: dict[int, tuple[WalletShare, ...]] = {0: ()}
    left = sum(part.amount for part in parts)
    for part in parts:
        # Only sums that all further shares together can still raise to the minimum.
        sums = {total: chosen for total, chosen in sums.items() if total + left >= least}
        left -= part.amount
        for before, chosen in list(sums.items()):
            total = before + part.amount
            if total > most or total in sums:
                continue
            if total >= least:
                return (*chosen, part)
            if len(sums) >= MOST_SUMS:
                return None
            sums[total] = (*chosen, part)
    return ()
