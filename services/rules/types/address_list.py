"""A list of addresses, of which a member must have proved one.

`stored_address_lists.py` stores them; the condition names their digest.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from locales import N_, _, ngettext, number
from services.core.errors import FieldRefused
from services.rules.types.declaration import DetailField, Details, ExpressionRefused

NAME = "address_list"
ADDRESSES = "addresses"
"""The field in which a list arrives. The list is stored, and `list` and `count` replace the field."""
_DIGEST = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class AddressList(Details):
    """A stored list of a server, by its digest, and how many addresses it has."""

    list: str
    count: int

    FIELDS: ClassVar[tuple[DetailField, ...]] = (
        DetailField(ADDRESSES, N_("Addresses"), "upload"),
        DetailField("list", N_("List"), "hidden"),
        DetailField("count", N_("Number of addresses"), "hidden"),
    )

    @classmethod
    def parse(cls, node: Mapping[str, Any]) -> Self:
        """Read the digest and the count; the addresses were taken out and stored before."""
        digest, count = node.get("list"), node.get("count")
        if isinstance(count, str) and count.isascii() and count.isdigit() and len(count) < 10:
            count = int(count)  # a form sends a text
        if not isinstance(digest, str) or not digest or not isinstance(count, int) or isinstance(count, bool):
            raise ExpressionRefused(_("Add the addresses of the list."), ADDRESSES)
        return cls(digest, count)

    def document(self) -> dict[str, Any]:
        """Return the digest and the count."""
        return {"list": self.list, "count": self.count}

    def checked(self, chain: str, contract: str) -> Self:
        """Return the details unchanged; saving the rule checks whether the list is stored."""
        if _DIGEST.fullmatch(self.list) is None or self.count < 1:
            raise FieldRefused(ADDRESSES, _("Add the addresses of the list."))
        return self

    def words(self, place: str, *, holds: bool = True) -> str:
        """Return the condition, or its opposite, in words, with the number of addresses but none of them."""
        # Translators: a condition of a rule: the member has a wallet that is in a list of addresses.
        one = ngettext("A wallet on a list of {count} address", "A wallet on a list of {count} addresses", self.count)
        none = ngettext(
            "No wallet on a list of {count} address", "No wallet on a list of {count} addresses", self.count
        )
        return (one if holds else none).format(count=number(self.count))

    def name(self, chain: str, collection: str) -> str:
        """Return the automatic name of a rule."""
        return "List of 1 address" if self.count == 1 else f"List of {self.count:,} addresses"
