"""Prove wallets, and list and remove one's own."""

import math
from datetime import datetime
from typing import Annotated

from fastapi import Query

from app.api.requests.caller import Caller
from app.api.requests.routers import calls
from app.api.requests.shapes import ApiAnswer, Done, Loose, PathId, Payload, Text
from gateways import gateways
from locales import _
from models import reading, transaction
from services.core.actors import Actor
from services.core.errors import Conflict, FieldRefused, Forbidden, NotConnected, ProviderUnavailable
from services.wallets import wallets
from services.wallets.ownership import LinkedProfile
from services.wallets.transaction_check import ChainAsk
from services.wallets.wallets import WalletView

router = calls(tags=["wallets"])


class Resolved(ApiAnswer):
    """The address that a claim is about, and the name that led to it, if any."""

    name: str | None
    address: str


class TransactionAnswer(ApiAnswer):
    """The transaction to send instead: on any one of the chains, or on Solana with this memo."""

    chains: tuple[ChainAsk, ...]
    memo: str | None


class ChallengeAnswer(ApiAnswer):
    """What to write into the bio or to send from the wallet, and the address that it is for."""

    code: str
    handle_marker: str
    address: str
    profile_url: str
    expires_at: datetime
    transaction: TransactionAnswer
    resolved: Resolved


class ProofPayload(Payload):
    """A claim to a wallet. `transactionHash` is a hash or an explorer's link; without it the chains are searched."""

    user_id: int | str | None = None
    wallet_address: Loose = ""
    verification_method: Loose = "opensea_bio"
    transaction_hash: Loose = ""


class VerdictAnswer(ApiAnswer):
    """Whether the wallet is proved, with a sentence; `again` means that another check may succeed.

    A transaction that is not confirmed yet has `confirmations` of `needed`. After the claim of a name, `resolved` is
    the address to claim. While OpenSea's limit allows no check, `retryAfter` is the number of seconds until it does.
    `linked` is the profile to which OpenSea has linked the wallet, if that profile names another wallet.
    """

    success: bool
    message: str
    again: bool = False
    confirmations: int = 0
    needed: int = 0
    resolved: Resolved | None = None
    retry_after: int = 0
    linked: LinkedProfile | None = None


@router.get("/wallet-challenge")
async def get_challenge(caller: Caller, address: Text = "") -> ChallengeAnswer:
    """Return what to show in the profile of the address, or to send from it; it is valid for a day.

    The chains are watched for the transaction from now on.
    """
    async with transaction() as db:
        view = await wallets.challenge(db, gateways(), caller, address)
    async with transaction() as db:
        await wallets.follow(db, gateways(), caller, view.address)
    return ChallengeAnswer(
        code=view.code,
        handle_marker=view.handle_marker,
        address=view.address,
        profile_url=view.profile_url,
        expires_at=view.expires_at,
        transaction=TransactionAnswer(chains=view.chains, memo=view.memo),
        resolved=Resolved(name=view.name, address=view.address),
    )


@router.post("/verify-wallet")
async def verify_wallet(caller: Caller, payload: ProofPayload) -> VerdictAnswer:
    """Check whether the wallet is the caller's. A problem that a person can solve answers 200 with `success: false`."""
    _own(caller, payload.user_id)
    try:
        async with transaction() as db:
            verdict = await wallets.verify(
                db, gateways(), caller, payload.wallet_address, payload.verification_method, payload.transaction_hash
            )
    except (FieldRefused, Conflict, NotConnected) as refused:
        return VerdictAnswer(success=False, message=refused.message)
    except ProviderUnavailable as fault:
        return VerdictAnswer(success=False, message=fault.message, again=True)
    resolved = Resolved(name=verdict.resolved[0], address=verdict.resolved[1]) if verdict.resolved else None
    return VerdictAnswer(
        success=verdict.success,
        message=verdict.message,
        again=verdict.again,
        confirmations=verdict.confirmations,
        needed=verdict.needed,
        resolved=resolved,
        retry_after=math.ceil(verdict.wait),
        linked=verdict.linked,
    )


@router.get("/wallet-verifications")
async def list_wallets(
    caller: Caller, user_id: Annotated[Text | None, Query(alias="userId")] = None
) -> list[WalletView]:
    """Return the caller's proved wallets."""
    _own(caller, user_id)
    async with reading() as db:
        return await wallets.list_wallets(db, caller)


@router.delete("/wallet-verifications/{wallet_id}")
async def remove_wallet(caller: Caller, wallet_id: PathId) -> Done:
    """Remove a wallet; roles that it alone earned follow their rules' removal policy."""
    async with transaction() as db:
        await wallets.remove(db, caller, wallet_id)
    return Done()


def _own(caller: Actor, user_id: int | str | None) -> None:
    """Refuse a request that names another person; the session alone decides who the caller is."""
    if user_id is not None and str(user_id) != str(caller.user_id):
        raise Forbidden(_("This session belongs to another user."))
