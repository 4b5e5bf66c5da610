"""Proving wallets, listing and removing one's own."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query

from app.api.caller import Caller
from app.api.shapes import Answer, Done, Loose, PathId, Payload, Text
from gateways import gateways
from models import transaction
from services import wallets
from services.actors import Actor
from services.errors import (
    Conflict,
    FieldRefused,
    Forbidden,
    NotConnected,
    ProviderUnavailable,
)

router = APIRouter(tags=["wallets"])


class WalletAnswer(Answer):
    """A proved wallet."""

    id: int
    wallet_address: str
    blockchain: str
    verification_method: str
    created_at: datetime


class Resolved(Answer):
    """The address that a claim is about, and the name that led to it, if any."""

    name: str | None
    address: str


class ChallengeAnswer(Answer):
    """What the member's bio is to say, and for which address."""

    code: str
    handle_marker: str
    address: str
    profile_url: str
    expires_at: datetime
    transaction: None = None
    resolved: Resolved


class ProofPayload(Payload):
    """A claim to a wallet."""

    user_id: int | str | None = None
    wallet_address: Loose = ""
    verification_method: Loose = "opensea_bio"


class VerdictAnswer(Answer):
    """Whether the wallet is proved, in a sentence; `again` means that looking again by itself is worth while."""

    success: bool
    message: str
    again: bool = False


@router.get("/wallet-challenge")
async def challenge(caller: Caller, address: Text = "") -> ChallengeAnswer:
    """What to show in the profile of the address, good for a day."""
    async with transaction() as db:
        view = await wallets.challenge(db, gateways(), caller, address)
    return ChallengeAnswer(
        code=view.code,
        handle_marker=view.handle_marker,
        address=view.address,
        profile_url=view.profile_url,
        expires_at=view.expires_at,
        resolved=Resolved(name=None, address=view.address),
    )


@router.post("/verify-wallet")
async def verify(caller: Caller, payload: ProofPayload) -> VerdictAnswer:
    """Look whether the wallet is the caller's. Whatever a person can mend is a 200 with `success: false`."""
    _own(caller, payload.user_id)
    try:
        async with transaction() as db:
            verdict = await wallets.verify(db, gateways(), caller, payload.wallet_address, payload.verification_method)
    except (FieldRefused, Conflict, NotConnected) as refused:
        return VerdictAnswer(success=False, message=refused.message)
    except ProviderUnavailable as fault:
        return VerdictAnswer(success=False, message=fault.message, again=True)
    return VerdictAnswer.model_validate(verdict)


@router.get("/wallet-verifications")
async def proved(caller: Caller, user_id: Annotated[Text | None, Query(alias="userId")] = None) -> list[WalletAnswer]:
    """The caller's proved wallets."""
    _own(caller, user_id)
    async with transaction() as db:
        return [WalletAnswer.model_validate(wallet) for wallet in await wallets.list_wallets(db, caller)]


@router.delete("/wallet-verifications/{wallet_id}")
async def remove(caller: Caller, wallet_id: PathId) -> Done:
    """Give a wallet up; the roles that only it earned follow their rules' removal policy."""
    async with transaction() as db:
        await wallets.remove(db, caller, wallet_id)
    return Done()


def _own(caller: Actor, user_id: int | str | None) -> None:
    """Refuse a request that speaks of somebody else; the session alone decides who it is."""
    if user_id is not None and str(user_id) != str(caller.user_id):
        raise Forbidden("This session belongs to another user.")
