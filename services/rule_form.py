"""What an admin fills in for a rule: the fields' checks with their exact messages, and the automatic names."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from services.addresses import AddressRefused, parse_evm
from services.errors import FieldRefused
from services.expressions import Expression, ExpressionRefused, Requirement, parse, requirements, to_document
from settings import EVM_CHAINS, settings

TYPES = ("basic", "trait", "token_id", "any_nft")
CHAINS = ("ethereum", "apechain", "polygon", "base", "abstract", "arbitrum", "optimism", "solana")
SUPPORTED_TYPES = ("basic",)
SUPPORTED_CHAINS = EVM_CHAINS
DEFAULT_COLOR = "#5865F2"
ANY_CONTRACT = "any"
MOST_TOKENS = 2**31 - 1
LONGEST_NAME = 200
LONGEST_GRACE_HOURS = 24 * 90
NAMED_TOKEN_IDS = 3


@dataclass(frozen=True, slots=True)
class RuleDraft:
    """A rule as the form or a program sends it; nothing in it has been checked."""

    rule_name: str
    contract_address: str
    blockchain: str
    verification_type: str
    role_id: str
    server_id: int
    min_tokens: Any = 1
    role_color: str | None = None
    role_name: str | None = None
    trait_type: str | None = None
    trait_value: str | None = None
    token_ids: tuple[str, ...] = ()
    expression: Any = None
    removal_mode: str = "now"
    removal_hours: Any = 0
    shadow: bool = False


def check(draft: RuleDraft) -> RuleDraft:
    """The draft with its texts trimmed; raises FieldRefused for the first field that cannot be taken.

    The order and the sentences are the specification's.
    """
    if not draft.rule_name.strip():
        raise FieldRefused("ruleName", "Rule name is required")
    if len(draft.rule_name.strip()) > LONGEST_NAME:
        raise FieldRefused("ruleName", f"A rule's name has at most {LONGEST_NAME} characters.")
    if not draft.blockchain.strip():
        raise FieldRefused("blockchain", "Blockchain is required")
    if draft.blockchain not in CHAINS:
        raise FieldRefused("blockchain", f"{draft.blockchain[:40]} is not one of the chains: {', '.join(CHAINS)}.")
    if not draft.role_id.strip():
        raise FieldRefused("roleId", "Role is required")
    if draft.verification_type not in TYPES:
        raise FieldRefused("verificationType", f"The rule type must be one of {', '.join(TYPES)}.")
    _whole_number("minTokens", draft.min_tokens, 1, MOST_TOKENS, "Minimum tokens must be at least 1")
    _check_what(draft)
    if draft.removal_mode not in {"now", "grace"}:
        raise FieldRefused("removal", "Removal is either at once (now) or after a grace time (grace).")
    _whole_number(
        "removal", draft.removal_hours, 0, LONGEST_GRACE_HOURS,
        f"The grace time is a whole number of hours, at most {LONGEST_GRACE_HOURS}.",
    )  # fmt: skip
    return draft


def _check_what(draft: RuleDraft) -> None:
    kind = draft.verification_type
    if kind != "any_nft" and not draft.contract_address.strip():
        raise FieldRefused("contractAddress", "Contract address is required")
    if kind == "trait" and not ((draft.trait_type or "").strip() and (draft.trait_value or "").strip()):
        raise FieldRefused("traitType", "Trait type and value are required for trait verification")
    if kind == "token_id" and not any(token.strip() for token in draft.token_ids):
        raise FieldRefused("tokenIds", "At least one token ID is required for token ID verification")


def _whole_number(name: str, value: object, least: int, most: int, message: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise FieldRefused(name, message)


def expression_of(draft: RuleDraft) -> Expression:
    """The tree behind a checked draft: the one it carries, else its flat fields as one requirement.

    Raises FieldRefused for a tree, a type, a chain or an address that cannot be taken.
    """
    if draft.expression is not None:
        try:
            tree = parse(draft.expression)
        except ExpressionRefused as fault:
            raise FieldRefused("expression", str(fault)) from None
    else:
        tree = Requirement(draft.verification_type, draft.blockchain, draft.contract_address, draft.min_tokens)
    return _normal(tree)


def _normal(tree: Expression) -> Expression:
    """The tree with every contract in its one form; refuses what cannot be answered."""
    for leaf in requirements(tree):
        _answerable(leaf)
    return parse(_lowered(to_document(tree)))


def _answerable(leaf: Requirement) -> None:
    if leaf.type not in SUPPORTED_TYPES:
        raise FieldRefused("verificationType", f"Rules of the type {leaf.type[:40]} are not available here.")
    if leaf.chain not in SUPPORTED_CHAINS:
        raise FieldRefused("blockchain", f"Rules on {chain_title(leaf.chain[:40])} are not available here.")
    if not settings().rpc.get(leaf.chain):
        raise FieldRefused(
            "blockchain", f"No node is configured for {chain_title(leaf.chain)}, so rules on it are off."
        )
    try:
        parse_evm(leaf.contract)
    except AddressRefused as fault:
        raise FieldRefused("contractAddress", str(fault)) from None


def _lowered(document: Any) -> Any:
    if isinstance(document, list):
        return [_lowered(item) for item in document]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(document, dict):
        lowered = {key: _lowered(value) for key, value in document.items()}  # pyright: ignore[reportUnknownVariableType]
        if "contract" in lowered:
            lowered["contract"] = str(lowered["contract"]).strip().lower()  # pyright: ignore[reportUnknownArgumentType]
        return lowered  # pyright: ignore[reportUnknownVariableType]
    return document


def chain_title(chain: str) -> str:
    """A chain's name with its first letter raised, nothing else."""
    return chain[:1].upper() + chain[1:]


def automatic_name(
    kind: str,
    chain: str,
    collection: str | None,
    trait_type: str | None = None,
    trait_value: str | None = None,
    token_ids: Sequence[str] = (),
) -> str:
    """The name that the form proposes, empty until the collection is known."""
    if kind == "any_nft":
        return f"Any NFT on {chain_title(chain)}"
    if not collection:
        return ""
    if kind == "trait":
        if not trait_type:
            return f"{collection} (Trait-Based)"
        return f"{collection} (Trait) - {trait_type}" + (f": {trait_value}" if trait_value else "")
    if kind == "token_id":
        if not token_ids:
            return f"{collection} (Token ID)"
        more = "..." if len(token_ids) > NAMED_TOKEN_IDS else ""
        return f"{collection} (Token ID) - #{', '.join(token_ids[:NAMED_TOKEN_IDS])}{more}"
    return collection
