"""Try a view call with one wallet: what the function answers right now. Nothing is stored."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gateways import Gateways
from gateways.discord.own_guilds import KEPT_SECONDS
from gateways.evm.calls import compiled
from gateways.evm.calls.answer_path import NUMBER, TRUTH
from gateways.transport.errors import ProviderError
from gateways.transport.plain_text import plain
from locales import N_, _
from locales.stored_texts import said
from models.db.session import AsyncSession
from services.core.actors import Actor
from services.core.addresses import AddressRefused, parse_evm
from services.core.errors import FieldRefused, Forbidden, unavailable
from services.core.json_view import Internal, json_view
from services.guilds import permissions
from services.rules.draft import chain_refusal
from services.rules.types.view_call import asked_of

LONGEST_SHOWN = 500


@dataclass(frozen=True, slots=True)
class CallTrial:
    """A view call as a form or a program sends it, with the wallet to ask about; none of it is checked yet."""

    chain: str
    contract: str
    function: str
    args: Sequence[Any]
    path: str
    wallet: str


@json_view
class CallResult:
    """What a function answers about a wallet: a number or a text, true or false. Without a value, `reason` says why."""

    value: str | None
    reason: str | None
    block: int
    source: str
    is_number: Internal[bool]


async def allow(db: AsyncSession, outside: Gateways, actor: Actor) -> None:
    """Raise Forbidden unless the person runs a Discord server; NotConnected, ProviderUnavailable.

    For a token, raise ServerNotFound unless its creator runs its server.
    """
    if actor.token is not None:
        await permissions.check_token(db, outside, actor)
        return
    guilds = await permissions.own_guilds(db, outside, actor, max_age=KEPT_SECONDS)
    if not any(guild.is_admin for guild in guilds):
        raise Forbidden(_("Only people who run a server can try a view call."))


async def run(outside: Gateways, trial: CallTrial) -> CallResult:
    """Ask the contract about the wallet. Raises FieldRefused with what is wrong, and ProviderUnavailable."""
    if not trial.chain.strip():
        raise FieldRefused("chain", _("Blockchain is required"))
    if reason := chain_refusal(trial.chain):
        raise FieldRefused("chain", reason)
    contract, wallet = _address("contract", trial.contract), _address("wallet", trial.wallet)
    asked = asked_of(trial.chain, contract, trial.function, trial.args, trial.path)
    try:
        sheet = await outside.chains.view(trial.chain, asked, [wallet])
    except ProviderError as fault:
        raise unavailable(fault) from fault
    found, sort = sheet.values.get(wallet), compiled.compiled(asked).path.sort
    if found is None:
        value = None
    else:
        value = ("true" if found else "false") if sort == TRUTH else plain(str(found), LONGEST_SHOWN)
    reason = None if value is not None else said(sheet.unsure.get(wallet, N_("the contract was not asked")))
    return CallResult(value, reason, sheet.block, sheet.source, sort == NUMBER)


def _address(field: str, given: str) -> str:
    if not given.strip():
        empty = _("Enter the contract's address.") if field == "contract" else _("Enter the wallet's address.")
        raise FieldRefused(field, empty)
    try:
        return parse_evm(given)
    except AddressRefused as fault:
        raise FieldRefused(field, str(fault)) from None
