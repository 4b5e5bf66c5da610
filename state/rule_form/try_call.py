"""The view call in the rule form: templates to begin with, and what its function answers for a wallet.

`try_address.py` tries the whole rule with a wallet.
"""

import reflex as rx

from gateways import gateways
from locales import _, number
from models import transaction
from services.core.actors import Actor
from services.core.errors import HoldfastError
from services.holdings import try_call
from services.holdings.try_call import CallResult, CallTrial
from services.rules.types import call_templates
from services.rules.types.view_call import WALLET
from services.runtime import rate_limits
from state.core.gate import signed_in
from state.rule_form.condition_draft import ConditionDraft
from state.rule_form.condition_fields import CONTRACT_INPUT
from state.rule_form.conditions import ConditionList

TEMPLATE_OPTIONS = tuple((one.key, one.label) for one in call_templates.TEMPLATES)
"""The templates to choose from: each one's key, and its label in the catalogue."""
WALLET_INPUT = "trialWallet"
LONGEST = 100


class ViewCallTrial(ConditionList, mixin=True):
    """The wallet to try the open condition's view call with, and the answer."""

    trial_wallet: str = ""
    trying: bool = False
    tried: str = ""
    """What the function answered, or why it did not; empty until it is asked, and once another call is filled in."""
    _tried_call: CallTrial | None = None

    def _clear_trial(self) -> None:
        self.trial_wallet, self.trying, self.tried = "", False, ""

    def _forget_other_trial(self) -> None:
        """Clear the answer unless the call that is filled in is the one that was tried."""
        if self.tried and _trial(self._filled_in(), self.trial_wallet) != self._tried_call:
            self.tried = ""

    @signed_in
    async def choose_template(self, actor: Actor, number: int, key: str):
        """Fill in a call that communities often ask for."""
        chosen = call_templates.template(key)
        if chosen is None or not self._at(number):
            return None
        self.details = {
            **self.details, "function": chosen.function, "args": "\n".join(chosen.args), "path": chosen.path,
            "compare": chosen.compare, "value": chosen.value,
        }  # fmt: skip
        if chosen.contract:
            self.chain, self.contract, self.given = chosen.chain, chosen.contract, chosen.contract
            self.collection = ""
        self.tried = ""
        self._changed()
        # If the template names no contract, the contract that is being typed stays.
        return rx.set_value(CONTRACT_INPUT, self.contract) if chosen.contract else None

    @signed_in
    async def enter_trial_wallet(self, actor: Actor, value: str) -> None:
        """Enter the wallet to try the call with."""
        self.trial_wallet, self.tried = value.strip()[:LONGEST], ""

    @signed_in
    async def try_call(self, actor: Actor, number: int):
        """Ask the contract about the wallet."""
        if not self._at(number):
            return
        self.trying, self.tried = True, ""
        self._tried_call = _trial(self._filled_in(), self.trial_wallet)
        yield
        try:
            await rate_limits.spend(rate_limits.PREVIEWS, actor.user_id)
            async with transaction() as db:
                await try_call.allow(db, gateways(), actor)
            self.tried = _said(await try_call.run(gateways(), self._tried_call))
        except HoldfastError as fault:
            self.tried = fault.message
        finally:
            self.trying = False


def _trial(condition: ConditionDraft, wallet: str) -> CallTrial:
    """Return the view call of a condition, complete or not, to be tried with a wallet."""
    sent = condition.sent
    args = sent.get("args", [WALLET])
    return CallTrial(
        chain=condition.chain, contract=condition.contract, function=str(sent.get("function", "")),
        args=args if isinstance(args, list) else [args], path=str(sent.get("path", "")), wallet=wallet,
    )  # fmt: skip


def _said(found: CallResult) -> str:
    if found.value is None:
        return _("Unknown: {reason} (block {block}).").format(reason=found.reason, block=number(found.block))
    value = number(int(found.value)) if found.is_number else found.value
    return _("The answer is {value} (block {block}).").format(value=value, block=number(found.block))
