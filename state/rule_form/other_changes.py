"""Changes of a stored rule that were saved elsewhere while the form was open, and that saving the form would undo."""

from collections.abc import Mapping
from typing import Any

import reflex as rx

from gateways import gateways
from locales import N_, _
from models import transaction
from services.core.actors import Actor
from services.core.errors import ProviderUnavailable, RuleNotFound
from services.rules import rules
from services.rules.rules import RuleView

CHANGED = N_(
    "This rule was changed after you opened it. Save again to replace that change, or load the page again to see it."
)


class OtherChanges(rx.State, mixin=True):
    """The stored rule as the person knows it."""

    _known: dict[str, Any] = {}
    """What a change can replace, by the name of its field; `expression` for every field of a condition."""

    def _note_known(self, rule: RuleView) -> None:
        self._known = _contents(rule)

    async def _undone(self, actor: Actor, rule_id: int, changes: Mapping[str, Any]) -> str:
        """Return why these changes are not saved yet: they replace what somebody else changed, or the rule is deleted.

        A change is named once: the person may decide to replace it. A new rule (`rule_id` 0) replaces nothing.
        """
        if not rule_id:
            return ""
        try:
            async with transaction() as db:
                now = _contents(await rules.get(db, gateways(), actor, rule_id))
        except RuleNotFound:
            return _("This rule was deleted meanwhile. If you still need it, go back to the rules and add it again.")
        except ProviderUnavailable:  # saving needs the same answer, and shows the failure
            return ""
        replaced = {name if name in now else "expression" for name, value in changes.items() if now.get(name) != value}
        unknown = {name: now[name] for name in replaced if self._known.get(name, now[name]) != now[name]}
        self._known = {**self._known, **unknown}
        return _(CHANGED) if unknown else ""


def _contents(rule: RuleView) -> dict[str, Any]:
    return {
        "expression": rule.expression, "ruleName": rule.rule_name, "roleId": rule.role_id,
        "removal": {"mode": rule.removal.mode, "hours": rule.removal.hours},
        "takesOver": rule.takes_over, "delegated": rule.delegated, "state": rule.state,
    }  # fmt: skip
