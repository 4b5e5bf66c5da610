"""What is wrong with a rule as it is filled in, and the field that has to be changed."""

from collections.abc import Collection
from dataclasses import dataclass, replace

import reflex as rx

from locales import _
from services.core.errors import FieldRefused
from services.rules import draft as rule_draft
from services.rules.draft import RuleDraft
from state.rule_form.condition_draft import ConditionDraft
from state.rule_form.condition_fields import CONTRACT_INPUT, TOKEN_INPUT

OWN_FIELDS = frozenset({"ruleName", "roleId", "removal"})
"""Fields of the form itself, for a rule whose conditions it cannot show."""
UNNAMED = "-"
_CONTROLS = {"tokenIds": TOKEN_INPUT, "traits": "traitType", "removal": "graceHours"}
"""The names of the controls of those fields of a rule that the form enters under another name."""


@dataclass(frozen=True)
class RuleFault:
    """A sentence, the number of the condition that is shown with it, and the name of the control to change."""

    text: str = ""
    number: int = 0
    field: str = ""


NO_FAULT = RuleFault()


class RefusedField(rx.State, mixin=True):
    """Why the rule was refused at the last press, and the control that then gets the focus."""

    fault: str = ""
    fault_field: str = ""
    """The name of the control; empty if the refusal is about none."""
    refusals: int = 0
    """Changes with each refusal, so that the same one moves the focus again."""

    def _clear_refusal(self) -> None:
        self.fault = self.fault_field = ""

    def _note_refusal(self, message: str, field: str) -> None:
        self.fault, self.fault_field = message, _CONTROLS.get(field, field)
        self.refusals += 1


def condition_fault(
    entered: ConditionDraft, draft: RuleDraft, unread: str, only: Collection[str] | None = None
) -> RuleFault | None:
    """Return why a rule with this one condition is refused, if one of the fields `only` is the reason.

    `unread` is why the page of a collection that was entered as its contract could not be read.
    """
    whole = entered.min_tokens.lstrip("-").isdigit() or not entered.min_tokens
    if entered.kind.counts and not whole:
        return RuleFault(_(rule_draft.WHOLE_TOKENS), field="minTokens")
    if unread:
        return RuleFault(unread, field=CONTRACT_INPUT)
    named = replace(draft, rule_name=draft.rule_name or UNNAMED, role_id=draft.role_id or UNNAMED)
    try:
        rule_draft.expression_of(rule_draft.check(named))
    except FieldRefused as refused:
        if only is None or refused.field in only:
            # One sentence is about both parts of a trait: the missing one is to be filled in.
            half = refused.field == "traitType" and bool(entered.trait_type.strip()) and not entered.wanted
            return RuleFault(refused.message, field="traitValue" if half else refused.field)
    return None
