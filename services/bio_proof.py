"""Proving a wallet by what its marketplace profile says."""

from gateways import Gateways
from gateways.errors import NotThere, ProviderBusy, ProviderError
from models import Challenge
from models.database import release
from models.session import AsyncSession
from services import claims
from services.actors import Actor
from services.addresses import shorten
from services.ages import in_seconds
from services.claims import VERIFIED, Proof, Verdict
from services.proof import Marker, bare_name, handle_marker, judge, prefix
from settings import settings

METHOD = "opensea_bio"
LONG_WAIT = 20
"""Seconds from which on the other way to prove a wallet is offered instead of waiting."""


async def verify(db: AsyncSession, outside: Gateways, actor: Actor, row: Challenge) -> Verdict:
    """Look at the profile of the challenge's address and, if it carries the member's own marker, keep the wallet."""
    if row.family != "evm":
        return Verdict(
            False,
            "The OpenSea bio proves wallets whose address starts with 0x. This one is on Solana: "
            "choose Transaction Proof.",
        )
    username = actor.username
    await release(db)
    try:
        # Fresh from Discord: whoever took over a name must not prove wallets with it.
        username = (await outside.discord.user(actor.discord_id)).username
        bio = await _bio(outside, row.address)
    except NotThere as fault:
        add = _what_to_add(row, username)
        return Verdict(False, f"{fault.provider} has no profile for {shorten(row.address)} yet. {add}", again=True)
    except ProviderBusy as fault:
        return busy(fault)
    except ProviderError as fault:
        return Verdict(
            False, f"{fault.provider} does not answer as it should. Nothing was changed; please try again in a minute.",
            again=True,
        )  # fmt: skip
    if bio is None:
        return Verdict(False, "OpenSea answered with another wallet's profile, so this one is not proved by it.")
    marker = judge(bio, row.code, username)
    if marker not in {Marker.CODE, Marker.HANDLE}:
        return Verdict(False, _not_yet(marker, row, username), again=True)
    evidence = {"marker": marker.value, "source": "OpenSea"}
    try:
        await claims.keep(db, actor, row, Proof(METHOD, evidence, strong=marker is Marker.CODE))
    except claims.HeldByAnother:
        return Verdict(
            False,
            f"Somebody else proved this wallet before. To move it to you, add your own code {row.code} to the bio: "
            "a name alone is not enough for that.",
            again=True,
        )
    except claims.AlreadySpent:
        return Verdict(False, "That code has been used. Ask for a new one and try again.")
    return Verdict(True, VERIFIED)


def busy(fault: ProviderBusy) -> Verdict:
    """Return what a member is told while OpenSea takes no question."""
    seconds = max(1, round(fault.retry_after or 5))
    other = " Or choose Transaction Proof, which does without it." if seconds >= LONG_WAIT else ""
    return Verdict(False, f"{fault.provider} is busy. Please try again {in_seconds(seconds)}.{other}", again=True)


async def _bio(outside: Gateways, address: str) -> str | None:
    profile = await outside.opensea.profile(address)
    # A profile may link several wallets: only one that names the claimed address speaks for it.
    return profile.bio if profile.address.lower() == address else None


def _what_to_add(row: Challenge, username: str) -> str:
    return f"Add your code {row.code} or {handle_marker(username)} to the bio of that profile, save, and try again."


def _not_yet(marker: Marker, row: Challenge, username: str) -> str:
    add = _what_to_add(row, username)
    if marker is Marker.BARE_PRODUCT:
        return f"The bio only says {settings().product_name}, which proves nobody's wallet. {add}"
    if marker is Marker.BARE_HANDLE:
        name = bare_name(username)
        return f"The bio only says {name}: anybody can take that name. It must read {prefix()}:{name}. {add}"
    return f"Your code was not found in the bio yet. {add} OpenSea can take some minutes to show a change."
