"""Prove a wallet by the bio of its marketplace profile."""

import asyncio
import re
import secrets
import string
import unicodedata
from collections.abc import Sequence
from enum import Enum

from gateways import Gateways
from gateways.chains.catalogue import CHAINS
from gateways.marketplaces.quota import Outlook, Use
from gateways.marketplaces.types import Profile
from gateways.transport.errors import NotThere, ProviderBusy, ProviderError
from gateways.transport.fair_turns import on_behalf_of
from gateways.transport.plain_text import plain
from locales import N_, _, listed
from models import Challenge
from models.db.database import release
from models.db.session import AsyncSession
from services.core.actors import Actor
from services.core.addresses import AddressRefused, parse, shorten
from services.core.relative_times import in_time
from services.wallets import ownership
from services.wallets.ownership import GONE, VERIFIED, LinkedProfile, Verdict, WalletProof
from settings import settings

_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
"""The characters of a code, without i, l, o, 0 and 1: people copy a code by eye."""

CODE_LENGTH = 10

_ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
"""Only ASCII case is ignored: `ſ` is not `s`, although Unicode folds it to one."""
_AFTER_NAMES = frozenset(',;!?|"•·')


class Marker(Enum):
    """What a bio contains."""

    CODE = "code"
    HANDLE = "handle"
    SPACED_HANDLE = "spaced_handle"
    """A marker with white space after the colon, as an ordinary sentence may contain it."""
    OTHER_CODE = "other_code"
    """A code that was used or has expired, or that belongs to another wallet or person."""
    BARE_PRODUCT = "bare_product"
    """Only the product's name, which anybody's bio may contain."""
    BARE_HANDLE = "bare_handle"
    """Only the person's name; anybody can take a name that appears in a stranger's bio."""
    NOTHING = "nothing"


SHORTEST_PREFIX = 3
"""Letters of a prefix that says whose marker it is: bios have `x:` and `dc:` before names of other services."""
USUAL_PREFIX = "holdfast"
"""The prefix for a product whose name has fewer Latin letters and digits than that."""


def prefix() -> str:
    """Return the product's name in the form used in codes and markers."""
    name = re.sub(r"[^a-z0-9]", "", settings().product_name.lower())
    return name if len(name) >= SHORTEST_PREFIX else USUAL_PREFIX


def new_code() -> str:
    """Return a new personal code: the product's name and 10 unambiguous characters (about 49 random bits)."""
    return f"{prefix()}-" + "".join(secrets.choice(_LETTERS) for _ in range(CODE_LENGTH))


def handle_marker(username: str) -> str:
    """Return the text that a member may write instead of their code: the product's name and their Discord name."""
    return f"{prefix()}:{bare_name(username)}"


def bare_name(username: str) -> str:
    """Return a Discord name without the number that old names have."""
    return username.split("#", 1)[0].strip()


def judge(bio: str, code: str, username: str) -> Marker:
    """Return what the bio proves for the member with this code and this Discord name.

    A marker inside a longer word proves nothing. ASCII case does not matter. The Discord name follows the colon
    directly: if spaces were allowed, "I love Holdfast: Mallory is a great movie" would prove a wallet.
    """
    text = bio.translate(_ASCII_LOWER)
    name = re.escape(bare_name(username).translate(_ASCII_LOWER))
    if re.search(rf"(?<![\w-]){re.escape(code.translate(_ASCII_LOWER))}(?![\w-])", text):
        return Marker.CODE
    markers = re.finditer(rf"(?<![\w\-/@.:]){re.escape(prefix())}:{name}", text) if name else ()
    if any(_ends_word(text[found.end() : found.end() + 1]) for found in markers):
        return Marker.HANDLE
    if name and re.search(rf"(?<!\w){re.escape(prefix())}:\s+{name}(?!\w)", text):
        return Marker.SPACED_HANDLE
    if re.search(rf"(?<![\w-]){re.escape(prefix())}-[{_LETTERS}]{{{CODE_LENGTH}}}(?![\w-])", text):
        return Marker.OTHER_CODE
    if re.search(rf"(?<!\w){re.escape(prefix())}(?!\w)", text):
        return Marker.BARE_PRODUCT
    if name and re.search(rf"(?<!\w){name}(?!\w)", text):
        return Marker.BARE_HANDLE
    return Marker.NOTHING


def _ends_word(following: str) -> bool:
    """Return whether a name ends before this character: combining and invisible ones, `'s` and `@` continue it.

    It is empty at the end of the bio.
    """
    if not following or following.isspace() or following in _AFTER_NAMES:
        return True
    # Emoji (So) and closing brackets (Pe).
    return unicodedata.category(following) in {"So", "Pe"}


METHOD = ownership.BY_BIO
LONG_WAIT = 20
"""The shortest wait in seconds for which the other way to prove a wallet is offered."""
LONGEST_NAME = 50
CODE_SECONDS = 4.0
"""Seconds that a proof waits for a chain to say whether the wallet is a contract there."""
ON_SOLANA = N_(
    "The OpenSea bio verifies wallets whose address starts with 0x. This one is on Solana: choose Transaction Proof."
)
_OTHER_WAY = N_("Or choose Transaction Proof, which does without OpenSea.")


async def verify(db: AsyncSession, outside: Gateways, actor: Actor, row: Challenge, *, again: bool = False) -> Verdict:
    """Check the profile of the challenge's address, and store the wallet if the profile has the member's own marker.

    `again` marks an automatic check; it leaves the marketplace's reads to requested checks.
    """
    if row.family != "evm":
        return Verdict(False, _(ON_SOLANA), by_transaction=True)
    use = Use.AGAIN if again else Use.PROOF
    await release(db)
    try:
        # The name is read from Discord now: a stored one may no longer be the person's, and must not prove wallets.
        username = (await outside.discord.user(actor.discord_id)).username
    except ProviderError as fault:
        return _silent(fault)
    try:
        with on_behalf_of(f"user:{actor.user_id}"):
            profile = await outside.opensea.profile(row.address, use=use)
    except NotThere as fault:
        add = _what_to_add(row, username)
        none = _("{provider} has no profile for {address} yet. {add}").format(
            provider=fault.provider, address=shorten(row.address), add=add
        )
        return Verdict(False, none, again=True, stretch=_stretch(outside))
    except ProviderBusy as fault:
        return busy(fault, outside.opensea.quota.outlook(Use.PROOF))
    except ProviderError as fault:
        return _silent(fault)
    if profile.address.lower() != row.address:
        return _linked(outside, row.address, profile)
    marker = judge(profile.bio, row.code, username)
    if marker not in {Marker.CODE, Marker.HANDLE}:
        return Verdict(False, _not_yet(marker, row, username), again=True, stretch=_stretch(outside))
    if contracts := await _contracts(outside, row.address):
        return Verdict(False, _no_contract(row.address, contracts), by_transaction=True)
    evidence = {"marker": marker.value, "source": "OpenSea"}
    try:
        await ownership.keep(db, actor, row, WalletProof(METHOD, evidence, strong=marker is Marker.CODE))
    except ownership.HeldByAnother:
        return Verdict(
            False,
            _(
                "Somebody else verified this wallet before. To move it to you, add your own code {code} to the bio: "
                "a name alone is not enough for that."
            ).format(code=row.code),
            again=True,
        )
    except ownership.TooManyWallets as fault:
        return Verdict(False, str(fault))
    except ownership.AlreadySpent:
        return Verdict(False, _("That code has been used. Ask for a new one and try again."))
    except ownership.PersonGone:
        return Verdict(False, _(GONE))
    return Verdict(True, _(VERIFIED))


def _silent(fault: ProviderError) -> Verdict:
    said = _("{provider} does not answer as it should. Nothing was changed; please try again in a minute.")
    return Verdict(False, said.format(provider=fault.provider), again=True, wait=fault.retry_after or 0.0)


async def _contracts(outside: Gateways, address: str) -> list[str]:
    """Return the chains on which the address is known to be a contract; one that does not answer in time is left out.

    A profile does not say on which chain the account belongs to the person, and on another chain somebody else's
    account can have the same address.
    """
    chains = outside.transactions.chains()

    async def ask(chain: str) -> bool:
        async with asyncio.timeout(CODE_SECONDS):
            return address in (await outside.transactions.nonces(chain, [address], look_at_code=True)).contracts

    said = await asyncio.gather(*map(ask, chains), return_exceptions=True)
    for one in said:
        if isinstance(one, BaseException) and not isinstance(one, ProviderError | TimeoutError):
            raise one
    return [chain for chain, one in zip(chains, said, strict=True) if one is True]


def _no_contract(address: str, chains: Sequence[str]) -> str:
    where = listed(CHAINS[chain].title for chain in chains)
    return _(
        "{address} is a smart contract on {where}. A bio does not say on which chain it is yours, so it "
        "verifies no contract. You can verify a Safe or an ERC-4337 account by a transaction to itself: "
        "choose Transaction Proof. Any other contract can be delegated at delegate.xyz to a wallet of yours."
    ).format(address=shorten(address), where=where)


def busy(fault: ProviderBusy, outlook: Outlook) -> Verdict:
    """Return the verdict while OpenSea allows no read; `outlook` is the outlook for requested reads."""
    wait = max(1.0, fault.retry_after or 5.0)
    if outlook.wait <= 0 and fault.retry_after is not None and wait >= LONG_WAIT:
        said = _(
            "{provider} lets us look at few profiles right now, so we rarely check automatically. Once your code is "
            "saved, press the button to check it at once. {other_way}"
        ).format(provider=fault.provider, other_way=_(_OTHER_WAY))
    elif max(wait, outlook.wait) >= LONG_WAIT:
        when = in_time(max(wait, outlook.wait))
        said = _("{provider} lets us look at no more profiles right now. Please try again {time}. {other_way}").format(
            provider=fault.provider, time=when, other_way=_(_OTHER_WAY)
        )
    else:
        said = _("{provider} is busy. Please try again {time}.").format(provider=fault.provider, time=in_time(wait))
    return Verdict(False, said, again=True, wait=wait, stretch=outlook.stretch)


def shortage(outside: Gateways) -> str:
    """Return the remark shown with a code while OpenSea allows no read; empty if it allows one."""
    wait = outside.opensea.quota.outlook(Use.PROOF).wait
    if wait < LONG_WAIT:
        return ""
    return _("OpenSea lets us look at no more profiles right now; we can look again {time}. {other_way}").format(
        time=in_time(wait), other_way=_(_OTHER_WAY)
    )


def _stretch(outside: Gateways) -> float:
    return outside.opensea.quota.outlook(Use.AGAIN).stretch


def _linked(outside: Gateways, address: str, profile: Profile) -> Verdict:
    """Return the verdict on a wallet that OpenSea has linked to a profile of another address.

    That profile proves only the wallet that it names, no matter who linked this one to it.
    """
    mine, name = shorten(address), plain(profile.username or "", LONGEST_NAME)
    try:
        family, theirs = parse(profile.address)
    except AddressRefused:
        return Verdict(
            False,
            _("OpenSea answered with the profile of another wallet, so it does not verify {mine}. {other_way}").format(
                mine=mine, other_way=_(_OTHER_WAY)
            ),
            by_transaction=True,
        )
    # Translators: whose profile it is, as in "linked to the profile of carol (0x12…ab)".
    of_name = _("of {name} ({address})").format(name=name, address=shorten(theirs))
    # Translators: whose profile it is, as in "linked to the profile of 0x12…ab".
    whose = of_name if name else _("of {address}").format(address=shorten(theirs))
    other = _("To verify {mine} itself, choose Transaction Proof, or unlink it at OpenSea and try again.").format(
        mine=mine
    )
    if family != "evm":
        return Verdict(
            False,
            _("OpenSea has linked {mine} to the profile {whose}, which cannot verify it. {other}").format(
                mine=mine, whose=whose, other=other
            ),
            by_transaction=True,
        )
    said = _(
        "OpenSea has linked {mine} to the profile {whose}, and a bio verifies only the wallet that its "
        "profile names. To verify that one, enter {theirs} and put its code into the bio {whose}. {other}"
    ).format(mine=mine, whose=whose, theirs=theirs, other=other)
    return Verdict(False, said, linked=LinkedProfile(theirs, name, outside.opensea.profile_url(theirs)))


def _what_to_add(row: Challenge, username: str) -> str:
    return _("Add your code {code} or {marker} to the bio of that profile, save, and try again.").format(
        code=row.code, marker=handle_marker(username)
    )


def _not_yet(marker: Marker, row: Challenge, username: str) -> str:
    if marker is Marker.SPACED_HANDLE:
        return _("The bio has a space after “{prefix}:”. Write {marker} without a space, save, and try again.").format(
            prefix=prefix(), marker=handle_marker(username)
        )
    if marker is Marker.OTHER_CODE:
        return _("The bio has another code. Yours is {code} now: replace it, save, and try again.").format(
            code=row.code
        )
    add = _what_to_add(row, username)
    if marker is Marker.BARE_PRODUCT:
        return _("The bio only says {product}, which verifies nobody's wallet. {add}").format(
            product=settings().product_name, add=add
        )
    if marker is Marker.BARE_HANDLE:
        name = bare_name(username)
        return _("The bio only says {name}: anybody can take that name. It must read {prefix}:{name}. {add}").format(
            name=name, prefix=prefix(), add=add
        )
    return _("Your code was not found in the bio yet. {add} OpenSea can take some minutes to show a change.").format(
        add=add
    )
