"""One condition of a rule as entered in the form, complete or not."""

from dataclasses import dataclass

from services.rules import draft
from services.rules.expression import Requirement

BASIC, TRAIT, TOKEN_ID, ANY_NFT = "basic", "trait", "token_id", "any_nft"
DEFAULT_CHAIN = "ethereum"
EXACTLY, AT_LEAST, AT_MOST = "", ">=", "<="


@dataclass(frozen=True)
class ConditionDraft:
    """One condition as entered, complete or not."""

    type: str = BASIC
    chain: str = DEFAULT_CHAIN
    contract: str = ""
    collection: str = ""
    min_tokens: str = "1"
    trait_type: str = ""
    trait_compare: str = EXACTLY
    trait_value: str = ""
    token_ids: tuple[str, ...] = ()

    @property
    def wanted(self) -> str:
        """The trait value as a rule stores it."""
        return f"{self.trait_compare}{self.trait_value.strip()}" if self.trait_value.strip() else ""

    @property
    def name(self) -> str:
        """The automatic name of a rule with only this condition."""
        return draft.automatic_name(
            self.type, self.chain, self.collection, self.trait_type.strip(), self.wanted, self.token_ids
        )

    @property
    def leaf(self) -> Requirement:
        """Return the condition as it would be stored, without any check."""
        return Requirement(
            type=self.type,
            chain=self.chain,
            contract=draft.ANY_CONTRACT if self.type == ANY_NFT else self.contract,
            min_tokens=int(self.min_tokens) if self.min_tokens.isascii() and self.min_tokens.isdigit() else 0,
            trait=(self.trait_type.strip(), self.wanted) if self.type == TRAIT else None,
            token_ids=self.token_ids if self.type == TOKEN_ID else (),
        )


def draft_of(leaf: Requirement, collection: str) -> ConditionDraft:
    """Return a stored condition as the form shows it."""
    kind, wanted = leaf.trait or ("", "")
    compare = next((sign for sign in (AT_LEAST, AT_MOST) if wanted.startswith(sign)), EXACTLY)
    return ConditionDraft(
        type=leaf.type, chain=leaf.chain, contract="" if leaf.type == ANY_NFT else leaf.contract,
        collection=collection, min_tokens=str(leaf.min_tokens), trait_type=kind, trait_compare=compare,
        trait_value=wanted.removeprefix(compare).strip(), token_ids=leaf.token_ids,
    )  # fmt: skip
