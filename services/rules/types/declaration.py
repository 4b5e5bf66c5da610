"""The declaration of a type of requirement: all code that treats types differently uses it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from locales import N_


class ExpressionRefused(Exception):
    """The document is not a valid expression; the text says where. `field` is the field of a form that it is about."""

    def __init__(self, message: str, field: str = "expression") -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class DetailField:
    """A field that one type has of its own: its name in the JSON of a condition, and how the rule form shows it.

    A field of the kind `lines` holds a list of texts, any other field a text. `choices` are pairs of value and label.
    An `upload` is too long for the form: it is sent and stored separately, and `hidden` fields of the form name it.
    """

    name: str
    label: str
    kind: Literal["text", "number", "choice", "lines", "upload", "hidden"] = "text"
    hint: str = ""
    placeholder: str = ""
    choices: tuple[tuple[str, str], ...] = ()


class Details(ABC):
    """The fields that one type has of its own. A subclass is a frozen dataclass, so that requirements can be hashed."""

    FIELDS: ClassVar[tuple[DetailField, ...]]
    STORED: ClassVar[tuple[str, ...]] = ()
    """Further names in the JSON, for facts that are read when the rule is saved; nobody types them."""

    @classmethod
    @abstractmethod
    def parse(cls, node: Mapping[str, Any]) -> Self:
        """Read the fields from the JSON of a condition. Raises ExpressionRefused for another shape."""

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """Return the fields as JSON, so that `parse` reads them back."""

    @abstractmethod
    def checked(self, chain: str, contract: str) -> Self:
        """Return the fields normalised. Raises FieldRefused with what is wrong."""

    def check_stored(self, contract: str) -> None:
        """Raise ValueError unless this version can evaluate the fields, which a newer one may have written."""
        self.bounds()

    def bounds(self) -> tuple[int, int | None]:
        """Return the least amount that a member has to hold, and the most, if there is one, in the smallest units."""
        return 1, None

    def shown(self, amount: int) -> str:
        """Return an amount in the smallest units as documents write it, the same in every language."""
        return str(amount)

    def spoken(self, amount: int) -> str:
        """Return an amount in the smallest units in the reader's language."""
        return self.shown(amount)

    @property
    def may_fall(self) -> bool:
        """Whether a wallet whose amount is not known yet can lower the sum."""
        return False

    @abstractmethod
    def words(self, place: str, *, holds: bool = True) -> str:
        """Return the condition, or its opposite, in words.

        `place` is the collection and its chain, such as "USD Coin on Base".
        """

    @abstractmethod
    def name(self, chain: str, collection: str) -> str:
        """Return the automatic name of a rule with this condition alone; "" while it has none yet."""


@dataclass(frozen=True, slots=True)
class RuleType:
    """What the requirements of a type ask for."""

    label: str
    """Its label in the rule form."""
    source: Literal["balances", "tokens", "anything", "coins", "calls", "lists", "wallets", "nothing"]
    """What answers it: balances in a contract, single tokens in it, anything that a wallet holds, a coin, a function,
    or our own tables, which are the lists of addresses and the proven wallets."""
    counts: bool = False
    """Whether it requires `min_tokens` tokens; otherwise one is enough."""
    names_ids: bool = False
    """Whether only the tokens in `token_ids` count."""
    names_trait: bool = False
    """Whether only tokens with all `traits` count."""
    details: type[Details] | None = None
    """The fields that only this type has."""
    previewed: int = 500
    """How many members a preview reads: the more expensive the reads, the fewer."""
    contract_hint: str = N_("The collection's contract on the chain chosen above, or its page on a marketplace.")
    """What the form asks for as the contract."""
    note: str = ""
    """What the form says about how it is read; may be empty."""

    @property
    def fields(self) -> tuple[DetailField, ...]:
        """The fields that only this type has."""
        return self.details.FIELDS if self.details is not None else ()

    @property
    def of_collection(self) -> bool:
        """Whether its contract is a collection, which has a name and tokens, or a coin."""
        return self.source in {"balances", "tokens", "coins"}

    @property
    def names(self) -> frozenset[str]:
        """The names of its own fields in the JSON of a condition."""
        stored = self.details.STORED if self.details is not None else ()
        return frozenset((*(one.name for one in self.fields), *stored))

    @property
    def chainless(self) -> bool:
        """Whether it names no chain and no contract, because our own tables answer it."""
        return self.source in {"lists", "wallets"}

    @property
    def on_chain(self) -> bool:
        """Whether it names a chain and a contract to read: neither our own tables nor an unknown type."""
        return not self.chainless and self.source != "nothing"

    @property
    def limited(self) -> bool:
        """Whether it may have a maximum of tokens. For the source `anything`, the only maximum is 0."""
        return self.source in {"balances", "tokens", "anything"} and self.details is None
