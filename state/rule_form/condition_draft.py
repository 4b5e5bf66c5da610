"""One condition of a rule as entered in the form, complete or not."""

from dataclasses import dataclass

from services.rules import draft
from services.rules.expression import RULE_TYPES, Requirement, RuleType, rule_type

TYPE_OPTIONS = tuple((name, one.label) for name, one in RULE_TYPES.items())
"""What can be chosen, and how it is called."""
OF_COLLECTIONS = tuple(name for name, one in RULE_TYPES.items() if one.source != "anything")
COUNTING = tuple(name for name, one in RULE_TYPES.items() if one.counts)
WITH_TRAITS = tuple(name for name, one in RULE_TYPES.items() if one.names_trait)
WITH_IDS = tuple(name for name, one in RULE_TYPES.items() if one.names_ids)
"""The types that show the fields of the collection, the minimum, the trait and the token ids."""
DEFAULT_TYPE = TYPE_OPTIONS[0][0]
DEFAULT_CHAIN = "ethereum"
EXACTLY, AT_LEAST, AT_MOST = "", ">=", "<="


@dataclass(frozen=True)
class ConditionDraft:
    """One condition as entered, complete or not."""

    type: str = DEFAULT_TYPE
    chain: str = DEFAULT_CHAIN
    contract: str = ""
    collection: str = ""
    min_tokens: str = "1"
    trait_type: str = ""
    trait_compare: str = EXACTLY
    trait_value: str = ""
    token_ids: tuple[str, ...] = ()

    @property
    def kind(self) -> RuleType:
        """What is declared for its type."""
        return rule_type(self.type)

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
            contract=draft.ANY_CONTRACT if self.kind.source == "anything" else self.contract,
            min_tokens=int(self.min_tokens) if self.min_tokens.isascii() and self.min_tokens.isdigit() else 0,
            trait=(self.trait_type.strip(), self.wanted) if self.kind.names_trait else None,
            token_ids=self.token_ids if self.kind.names_ids else (),
        )


def draft_of(leaf: Requirement, collection: str) -> ConditionDraft:
    """Return a stored condition as the form shows it."""
    kind, wanted = leaf.trait or ("", "")
    compare = next((sign for sign in (AT_LEAST, AT_MOST) if wanted.startswith(sign)), EXACTLY)
    return ConditionDraft(
        type=leaf.type, chain=leaf.chain, contract="" if leaf.kind.source == "anything" else leaf.contract,
        collection=collection, min_tokens=str(leaf.min_tokens), trait_type=kind, trait_compare=compare,
        trait_value=wanted.removeprefix(compare).strip(), token_ids=leaf.token_ids,
    )  # fmt: skip
