"""Every type of requirement by its name."""

from collections.abc import Mapping

from locales import N_
from services.rules.types.address_list import AddressList
from services.rules.types.any_wallet import AnyWallet
from services.rules.types.coin import CoinAmount
from services.rules.types.declaration import RuleType
from services.rules.types.view_call import ViewCall

COIN = "token"
RULE_TYPES: Mapping[str, RuleType] = {
    "basic": RuleType(N_("Basic: a number of tokens"), "balances", counts=True, previewed=5000),
    "trait": RuleType(N_("Trait: tokens with a trait"), "tokens", counts=True, names_trait=True, previewed=1000),
    "token_id": RuleType(N_("Token ID: certain tokens"), "tokens", names_ids=True, previewed=2000),
    "any_nft": RuleType(N_("Any NFT on a chain"), "anything", previewed=500),
    COIN: RuleType(
        N_("Coin: an amount of a token"),
        "coins",
        details=CoinAmount,
        previewed=5000,
        contract_hint=N_("The coin's contract on the chain chosen above, or \"native\" for the chain's own coin."),
        note=N_(
            "Transfers show within moments. The chain's own coin, and coins that change balances without a transfer "
            "(rebasing coins), are read in the daily sweep and at Re-check. A wallet delegated as a whole counts with "
            "all its coins, one delegated for this coin's contract with this coin."
        ),
    ),
    "call": RuleType(
        N_("View call: what a contract answers"),
        "calls",
        details=ViewCall,
        previewed=2000,
        note=N_(
            "The rule counts a delegated wallet only if everything of the contract is delegated. Staking and "
            "unstaking show at the next sweep or re-check, not at once."
        ),
    ),
    "address_list": RuleType(N_("Address list: certain wallets"), "lists", details=AddressList, previewed=5000),
    "any_wallet": RuleType(N_("Any verified wallet"), "wallets", details=AnyWallet, previewed=5000),
}
"""Every type of requirement, in the order in which the form offers them."""
_UNKNOWN = RuleType("", "nothing")
"""Represents a type that this version does not have: nothing answers it, so it changes no role."""
DETAIL_FIELDS = tuple(dict.fromkeys(one.name for kind in RULE_TYPES.values() for one in kind.fields))
"""The names of the fields that only some types have, each once."""


def rule_type(name: object) -> RuleType:
    """Return the declaration of a type; for any other value, a type that nothing answers."""
    return RULE_TYPES.get(name, _UNKNOWN) if isinstance(name, str) else _UNKNOWN
