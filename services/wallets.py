"""Wallets: proved without ever being connected, listed, and removed by their owner."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col, select

from gateways import Gateways
from gateways.errors import NotThere, ProviderBusy, ProviderError
from models import Challenge, Notice, User, Wallet, now
from models.database import AsyncSession
from services import due, events
from services.actors import Actor
from services.addresses import AddressRefused, parse, shorten
from services.challenges import ChallengeView, challenge, current
from services.errors import WalletNotFound
from services.proof import Marker, bare_name, handle_marker, judge, prefix
from settings import settings

__all__ = [
    "METHODS", "ChallengeView", "Verdict", "WalletView", "challenge", "list_wallets", "remove", "verify",
]  # fmt: skip

BIO = "opensea_bio"
METHODS = (BIO,)

VERIFIED = "Your wallet has been successfully verified!"


@dataclass(frozen=True, slots=True)
class WalletView:
    """One of a person's own wallets."""

    id: int
    wallet_address: str
    blockchain: str
    verification_method: str
    created_at: datetime

    @property
    def short_address(self) -> str:
        """The first 6 and the last 4 characters."""
        return shorten(self.wallet_address)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a proof; `again` says that looking once more by itself may succeed."""

    success: bool
    message: str
    again: bool = False


def _view(wallet: Wallet) -> WalletView:
    chain = "ethereum" if wallet.family == "evm" else "solana"
    return WalletView(wallet.id or 0, wallet.address, chain, wallet.method, wallet.created_at)


async def list_wallets(db: AsyncSession, actor: Actor) -> list[WalletView]:
    """The person's own wallets, oldest first."""
    rows = await db.exec(select(Wallet).where(Wallet.user_id == actor.user_id).order_by(col(Wallet.id)))
    return [_view(row) for row in rows.all()]


async def remove(db: AsyncSession, actor: Actor, wallet_id: int) -> None:
    """Remove one of the person's own wallets; their roles follow each rule's removal policy.

    Raises WalletNotFound.
    """
    wallet = await db.get(Wallet, wallet_id) if 0 < wallet_id < 2**31 else None
    if wallet is None or wallet.user_id != actor.user_id:
        raise WalletNotFound
    await db.delete(wallet)
    await events.record(db, events.line("wallet.removed", actor=actor.discord_id, subject=actor.discord_id))
    await due.mark_everywhere(db, actor.discord_id, due.WAITING)


async def verify(db: AsyncSession, outside: Gateways, actor: Actor, address: str, method: str) -> Verdict:
    """Look at the profile of the claimed address and, if it carries the member's own marker, keep the wallet.

    Everything that a person can mend is a Verdict with a sentence, never an exception; a provider in trouble is
    "try again", never a verdict on the wallet.
    """
    if not address.strip():
        return Verdict(False, "Please enter a wallet address.")
    if method not in METHODS:
        return Verdict(False, "This verification method is not available here. Choose OpenSea Profile Bio.")
    try:
        family, parsed = parse(address)
    except AddressRefused as fault:
        return Verdict(False, str(fault))
    if family != "evm":
        return Verdict(False, "The OpenSea bio proves wallets whose address starts with 0x. This one is on Solana.")
    row = await current(db, actor, family, parsed)
    username = actor.username
    try:
        # Fresh from Discord: whoever took over a name must not prove wallets with it.
        username = (await outside.discord.user(actor.discord_id)).username
        bio = await _bio(outside, parsed)
    except NotThere as fault:
        add = _what_to_add(row, username)
        return Verdict(False, f"{fault.provider} has no profile for {shorten(parsed)} yet. {add}", again=True)
    except ProviderBusy as fault:
        seconds = max(1, round(fault.retry_after or 5))
        return Verdict(False, f"{fault.provider} is busy. Please try again in {seconds} seconds.", again=True)
    except ProviderError as fault:
        return Verdict(
            False, f"{fault.provider} does not answer as it should. Nothing was changed; please try again in a minute.",
            again=True,
        )  # fmt: skip
    if bio is None:
        return Verdict(False, "OpenSea answered with another wallet's profile, so this one is not proved by it.")
    marker = judge(bio, row.code, username)
    if marker in {Marker.CODE, Marker.HANDLE}:
        return await _keep(db, actor, parsed, marker, row)
    return Verdict(False, _not_yet(marker, row, username), again=True)


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


async def _keep(db: AsyncSession, actor: Actor, address: str, marker: Marker, row: Challenge) -> Verdict:
    await db.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:address, 1))"), {"address": f"evm:{address}"})
    former = (await db.exec(select(Wallet).where(Wallet.family == "evm", Wallet.address == address))).first()
    if former is not None and former.user_id == actor.user_id:
        await _use_up(db, row)
        await due.mark_everywhere(db, actor.discord_id, due.WAITING)
        return Verdict(True, VERIFIED)
    if former is not None and marker is not Marker.CODE:
        return Verdict(
            False,
            f"Somebody else proved this wallet before. To move it to you, add your own code {row.code} to the bio: "
            "a name alone is not enough for that.",
            again=True,
        )
    moved_from = await _take_over(db, former) if former is not None else None
    evidence = {"marker": marker.value, "source": "OpenSea", "movedFrom": moved_from}
    wallet = {
        "user_id": actor.user_id, "family": "evm", "address": address, "method": BIO, "evidence": evidence,
        "created_at": now(),
    }  # fmt: skip
    await db.execute(insert(Wallet).values(**wallet))
    await _use_up(db, row)
    await events.record(
        db, events.line("wallet.proved", actor=actor.discord_id, subject=actor.discord_id,
                        data={"method": BIO, "marker": marker.value}),
    )  # fmt: skip
    await due.mark_everywhere(db, actor.discord_id, due.WAITING)
    return Verdict(True, VERIFIED)


async def _take_over(db: AsyncSession, former: Wallet) -> str:
    """Let the former holder go: they are told, and their roles follow the removal policy."""
    holder = await db.get_one(User, former.user_id)
    await db.delete(former)
    await db.flush()
    db.add(Notice(discord_id=holder.discord_id, kind="wallet.moved", data={"address": shorten(former.address)}))
    await events.record(db, events.line("wallet.moved", subject=holder.discord_id))
    await due.mark_everywhere(db, holder.discord_id, due.WAITING)
    return holder.discord_id


async def _use_up(db: AsyncSession, row: Challenge) -> None:
    row.used_at = now()
    db.add(row)
    await db.flush()
