"""Resolve names of wallets (wallet.eth, wallet.sol) to their present addresses."""

import asyncio
import re
from collections.abc import Sequence

from gateways import Gateways
from gateways.evm.ens import NameInvalid, NameOffchain
from gateways.transport.errors import NotThere, ProviderError
from locales import _
from services.core.addresses import AddressRefused, parse, pasted
from services.core.errors import FieldRefused, ProviderUnavailable
from services.runtime.task_cancellation import outcomes

LONGEST = 255
RETRY_AFTER = 60
"""Seconds after which the directory of names is asked again: the message says a minute."""
PATIENCE, AT_ONCE = 5.0, 20
"""The longest time in seconds to look up the names of wallets, and the most wallets to look up at once."""


class NameRefused(Exception):
    """The name has no address; the message says why, in a sentence."""


def is_name(text: str) -> bool:
    """Return whether the text is meant as a name: it has a dot inside and is not a link."""
    return re.fullmatch(r"[^\s/:.]+(\.+[^\s/:.]+)+", pasted(text)) is not None


async def wallet_of(outside: Gateways, text: str) -> tuple[str, str, str | None]:
    """Return `(family, address, name)` of a wallet given by its address or its name; `name` is None for an address.

    Raises FieldRefused for the field `address`, ProviderUnavailable if the name could not be looked up.
    """
    name: str | None = None
    try:
        if is_name(text):
            name, text = await resolve(outside, text)
        family, address = parse(text)
    except (AddressRefused, NameRefused) as fault:
        raise FieldRefused("address", str(fault)) from None
    return family, address, name


async def resolve(outside: Gateways, text: str) -> tuple[str, str]:
    """Return `(name, address)`: the normalised name, and the address (EVM in lower case).

    Raises NameRefused, and ProviderUnavailable if nobody could be asked.
    """
    given = pasted(text)
    if len(given) > LONGEST:
        raise NameRefused(_("That name is too long to be one."))
    if given.casefold().endswith(".sol"):
        return await _on_solana(outside, given)
    try:
        return await outside.names.resolve(given)
    except NameInvalid:
        raise NameRefused(
            _("{given} is not a valid name. Paste the address (0x…) itself.").format(given=given)
        ) from None
    except NameOffchain:
        raise NameRefused(
            _(
                "{given} is kept outside of Ethereum by a service that cannot be asked. Paste the address (0x…) itself."
            ).format(given=given)
        ) from None
    except NotThere:
        raise NameRefused(
            _("{given} stands for no wallet on Ethereum. Check its spelling, or paste the address (0x…).").format(
                given=given
            )
        ) from None
    except ProviderError:
        raise ProviderUnavailable(
            _("{given} cannot be looked up right now. Try again in a minute, or paste the address (0x…).").format(
                given=given
            ),
            RETRY_AFTER,
        ) from None


async def _on_solana(outside: Gateways, given: str) -> tuple[str, str]:
    if not outside.solana_names.on:
        raise NameRefused(_("Names of Solana are not looked up here. Paste the address itself."))
    try:
        return await outside.solana_names.resolve(given)
    except NameInvalid:
        raise NameRefused(_("{given} is not a valid name. Paste the address itself.").format(given=given)) from None
    except NotThere:
        raise NameRefused(
            _("{given} stands for no wallet on Solana. Check its spelling, or paste the address.").format(given=given)
        ) from None
    except ProviderError:
        raise ProviderUnavailable(
            _("{given} cannot be looked up right now. Try again in a minute, or paste the address.").format(
                given=given
            ),
            RETRY_AFTER,
        ) from None


async def primary_names(outside: Gateways, addresses: Sequence[str]) -> dict[str, str]:
    """Return the Ethereum names of these wallets by address, if they resolve back to the wallet.

    The names are only decoration: wallets that cannot be looked up in time have none.
    """
    asked = [address for address in addresses if address.startswith("0x")][:AT_ONCE]
    tasks = {asyncio.create_task(outside.names.primary(address)): address for address in asked}
    if not tasks:
        return {}
    try:
        done, _late = await asyncio.wait(tasks, timeout=PATIENCE)
    finally:
        await outcomes(*tasks)
    found: dict[str, str] = {}
    for task in done:
        fault = task.exception()
        if fault is not None and not isinstance(fault, ProviderError):
            raise fault
        if fault is None and (name := task.result()):
            found[tasks[task]] = name
    return found
