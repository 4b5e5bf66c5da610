"""Any verified wallet: a member must have one, of any family of chains or of one family."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from locales import N_, _
from services.rules.types.declaration import DetailField, Details, ExpressionRefused

FAMILIES = {"evm": "EVM", "solana": "Solana"}


@dataclass(frozen=True, slots=True)
class AnyWallet(Details):
    """The family of the wallet; empty for any family."""

    family: str = ""

    FIELDS: ClassVar[tuple[DetailField, ...]] = (
        DetailField(
            "family", N_("Kind of wallet"), "choice", N_("A wallet that the member has verified, whatever it holds."),
            choices=(("", N_("Any wallet")), ("evm", N_("EVM wallet")), ("solana", N_("Solana wallet"))),
        ),
    )  # fmt: skip

    @classmethod
    def parse(cls, node: Mapping[str, Any]) -> Self:
        """Read the family."""
        family = node.get("family") or ""
        if family not in ("", *FAMILIES):
            raise ExpressionRefused(
                _("family is one of {families}, or left out.").format(families=", ".join(FAMILIES)), "family"
            )
        return cls(family)

    def document(self) -> dict[str, Any]:
        """Return the family, if there is one."""
        return {"family": self.family} if self.family else {}

    def checked(self, chain: str, contract: str) -> Self:
        """Return the details unchanged: there is nothing to normalise."""
        return self

    def words(self, place: str, *, holds: bool = True) -> str:
        """Return the condition, or its opposite, in words."""
        if not self.family:
            return _("Any verified wallet") if holds else _("No verified wallet")
        said = _("A verified {family} wallet") if holds else _("No verified {family} wallet")
        return said.format(family=FAMILIES[self.family])

    def name(self, chain: str, collection: str) -> str:
        """Return the automatic name of a rule."""
        return self.words("")
