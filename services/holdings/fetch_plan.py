"""Plan what to fetch from each chain for a server's rules: balances if they suffice, or single tokens, or anything."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from gateways.chains.view_sheet import ViewQuestion
from services.collections.standards import MANY, ONE_BY_ONE, ContractKey
from services.holdings.wallet_shares import Vault
from services.rules.expression import Requirement
from services.rules.types import own_tables
from services.rules.types.view_call import ViewCall

EVM, SOLANA = "evm", "solana"
ANY = "any"
"""In place of a contract: any collection."""

TokenWant = tuple[str, tuple[str, ...]]
"""A contract and the token ids that matter there; without ids, all of its tokens do."""


def family_of(chain: str) -> str:
    """Return the family of wallets that count on a chain."""
    return SOLANA if chain == SOLANA else EVM


@cache
def scopes_on(chain: str) -> frozenset[str]:
    """Return the scopes of wallets that count on a chain: its family, and `family:chain` of those bound to it."""
    family = family_of(chain)
    return frozenset({family, f"{family}:{chain}"})


def addresses_on(chain: str, wallets: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the addresses of wallets (`(scope, address)`) that count on a chain, each once."""
    counting = scopes_on(chain)
    return tuple(dict.fromkeys(address for scope, address in wallets if scope in counting))


def is_about(leaf: Requirement, scope: str) -> bool:
    """Return whether a wallet of this scope can count for a requirement."""
    if leaf.kind.source == "nothing":
        return True
    if leaf.kind.chainless:
        return scope.partition(":")[0] in own_tables.families_of(leaf.details)
    return scope in scopes_on(leaf.chain)


@dataclass(frozen=True, slots=True)
class Wants:
    """What to ask of one chain about every wallet."""

    balances: tuple[str, ...] = ()
    """Contracts to ask for wallets' balances."""
    tokens: tuple[TokenWant, ...] = ()
    anything: bool = False
    beside: tuple[str, ...] = ()
    """If any collection counts: contracts to ask for a balance in addition to an indexer's list. A balance there is a
    yes; a missing answer means nothing."""
    with_traits: frozenset[str] = field(default_factory=frozenset[str])
    """Contracts whose tokens' traits matter."""
    calls: tuple[ViewQuestion, ...] = ()
    """View functions to ask about wallets."""
    coins: tuple[str, ...] = ()
    """Coins to ask for wallets' amounts, by their contracts or NATIVE."""
    claimed: tuple[tuple[TokenWant, tuple[str, ...]], ...] = ()
    """Single tokens that are named in claims on vaults, each with the vaults to ask about them: no other wallet is."""
    of_vaults: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """If any collection counts: vaults, each with the contracts in claims on it, to ask for the vault's balances only.
    Anybody can name any contract in a claim, so other wallets' balances in it mean nothing."""


def want_of(leaf: Requirement, standards: Mapping[ContractKey, str]) -> TokenWant | None:
    """Return the tokens that a requirement needs; None if balances or any collection answer it."""
    source = leaf.kind.source
    if leaf.kind.names_ids:
        return leaf.contract, leaf.token_ids
    by_token = leaf.chain == SOLANA or standards.get((leaf.chain, leaf.contract)) == MANY
    return (leaf.contract, ()) if source == "tokens" or (source == "balances" and by_token) else None


def call_of(leaf: Requirement) -> ViewQuestion | None:
    """Return the requirement's question to a view function; None if no such function answers it."""
    return leaf.details.question(leaf.contract) if isinstance(leaf.details, ViewCall) else None


def by_chain(leaves: Iterable[Requirement], standards: Mapping[ContractKey, str]) -> dict[str, Wants]:
    """Return what these requirements of one server need, by chain in a fixed order.

    If any collection counts, that includes the balances of collections that the requirements name for another reason.
    Other servers' collections are left out: their contracts must not decide here.
    """
    found: dict[str, list[Requirement]] = {}
    for leaf in leaves:
        if leaf.kind.on_chain:
            found.setdefault(leaf.chain, []).append(leaf)
    return {chain: _wants(chain, found[chain], standards) for chain in sorted(found)}


def _wants(chain: str, leaves: Iterable[Requirement], standards: Mapping[ContractKey, str]) -> Wants:
    balances, tokens, with_traits, anything = set[str](), set[TokenWant](), set[str](), False
    countable, calls, coins = set[str](), set[ViewQuestion](), set[str]()
    for leaf in leaves:
        if (call := call_of(leaf)) is not None:
            calls.add(call)
            continue
        if leaf.kind.source == "coins":
            coins.add(leaf.contract)
            continue
        if standards.get((chain, leaf.contract), "").startswith(ONE_BY_ONE):
            countable.add(leaf.contract)
        want = want_of(leaf, standards)
        if leaf.kind.source == "anything":
            anything = True
        elif want is None:
            balances.add(leaf.contract)
        else:
            tokens.add(want)
        if leaf.kind.names_trait:
            with_traits.add(leaf.contract)
    more = countable - balances if anything and family_of(chain) == EVM else set[str]()
    return Wants(
        balances=tuple(sorted(balances)),
        tokens=tuple(sorted(tokens)),
        anything=anything,
        beside=tuple(sorted(more)),
        with_traits=frozenset(with_traits),
        calls=tuple(sorted(calls, key=lambda one: (one.contract, one.function, one.args, one.path))),
        coins=tuple(sorted(coins)),
    )


def with_vaults(wants: Wants, leaves: Iterable[Requirement], vaults: Iterable[Vault]) -> Wants:
    """Return the wants, and add the tokens and contracts that are named in claims on parts of vaults.

    `leaves` are the requirements of one chain that count delegations.
    """
    listed = tuple(vaults)
    if not listed:
        return wants
    claimed = {want: set(vaults) for want, vaults in wants.claimed}
    of_vaults = {vault: set(contracts) for vault, contracts in wants.of_vaults}
    for leaf in leaves:
        for vault in listed:
            anything, by_balance = leaf.kind.source == "anything", leaf.kind.source == "balances"
            for contract in vault.named if anything else (leaf.contract,) if by_balance else ():
                cut = vault.cut(contract)
                if cut.nothing:
                    continue
                if anything:
                    of_vaults.setdefault(vault.address, set()).add(contract)
                if cut.ids and (contract, cut.ids) not in wants.tokens:
                    claimed.setdefault((contract, cut.ids), set()).add(vault.address)
    return replace(
        wants,
        claimed=tuple(sorted((want, tuple(sorted(vaults))) for want, vaults in claimed.items())),
        of_vaults=tuple(sorted((vault, tuple(sorted(contracts))) for vault, contracts in of_vaults.items())),
    )
