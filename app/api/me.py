"""The caller's own data: their sessions, everything stored about them, and where their wallets count."""

from collections.abc import AsyncGenerator
from tempfile import SpooledTemporaryFile

from fastapi import Request, Response
from pydantic import StrictBool, StrictInt
from starlette.responses import StreamingResponse

from app.api.auth import unset_session
from app.api.requests.caller import Caller
from app.api.requests.head_requests import wants_body
from app.api.requests.routers import calls
from app.api.requests.shapes import Done, Loose, PathId, Payload, Text, attachment
from gateways import gateways
from models import reading, transaction
from services.accounts import sessions, sign_in, users
from services.accounts.sessions import SessionView
from services.core.actors import Actor
from services.privacy import erasure, export, preferences, wallet_handover
from services.privacy.erasure import EndingRole
from services.privacy.preferences import ChoiceView
from services.privacy.wallet_handover import HandoverCode, HandoverView
from settings import settings

router = calls("/me", tags=["me"])
KEPT_IN_MEMORY = 1 << 20
"""Characters of a download that are in memory at a time."""


@router.get("/sessions")
async def list_sessions(caller: Caller) -> list[SessionView]:
    """Return the caller's sessions, last used first."""
    async with reading() as db:
        return await sessions.list_of(db, caller)


@router.delete("/sessions")
async def sign_out_everywhere(caller: Caller, answer: Response) -> Done:
    """Sign the caller out everywhere, in this browser too."""
    async with transaction() as db:
        await sessions.close_all(db, caller)
        token = await users.drop_discord_grant(db, caller.user_id)
    await sign_in.revoke(gateways(), token)
    unset_session(answer)
    return Done()


@router.delete("/sessions/{session}")
async def sign_out_session(caller: Caller, session: Text) -> Done:
    """Sign out one of the caller's browsers."""
    async with transaction() as db:
        token = await sign_in.sign_out_one(db, caller, session)
    await sign_in.revoke(gateways(), token)
    return Done()


class ChoicePayload(Payload):
    """The caller's choices; those that are left out stay as they are."""

    use_wallets: StrictBool | None = None
    share_wallets: StrictBool | None = None
    payout_wallet_id: StrictInt | None = None
    """The wallet for payouts; null withdraws it."""


class ForgottenAnswer(Done):
    """The deletion, and what happens to each role."""

    roles: tuple[EndingRole, ...]


@router.get("/servers")
async def list_preferences(caller: Caller) -> list[ChoiceView]:
    """Return the servers with the bot where the caller is a member, and their choices there."""
    async with transaction() as db:
        return await preferences.choices(db, caller)


@router.put("/servers/{server_id}")
async def set_preferences(caller: Caller, server_id: PathId, payload: ChoicePayload) -> ChoiceView:
    """Set whether wallets count in a server, whether its admins may see them, and the address for payouts."""
    payout = (
        preferences.PayoutChoice(payload.payout_wallet_id) if "payout_wallet_id" in payload.model_fields_set else None
    )
    async with transaction() as db:
        return await preferences.choose(
            db, caller, server_id, use_wallets=payload.use_wallets, share_wallets=payload.share_wallets, payout=payout
        )


class HandoverPayload(Payload):
    """The wallet to hand over; without one, all of them."""

    wallet_id: StrictInt | None = None


class HandoverCodePayload(Payload):
    """The code that the other account made."""

    code: Loose = ""


@router.post("/handover", status_code=201)
async def offer_handover(caller: Caller, payload: HandoverPayload) -> HandoverCode:
    """Return a code that hands wallets over to another account of the caller's; it works once, within ten minutes."""
    async with transaction() as db:
        return await wallet_handover.offer(db, caller, payload.wallet_id)


@router.delete("/handover")
async def withdraw_handover(caller: Caller) -> Done:
    """Make the caller's code invalid."""
    async with transaction() as db:
        await wallet_handover.withdraw(db, caller)
    return Done()


@router.post("/handover/look")
async def preview_handover(caller: Caller, payload: HandoverCodePayload) -> HandoverView:
    """Return which wallets a code would give to the caller, and from which account; changes nothing."""
    async with transaction() as db:
        return await wallet_handover.preview(db, caller, payload.code)


@router.post("/handover/take")
async def take_handover(caller: Caller, payload: HandoverCodePayload) -> HandoverView:
    """Give the wallets of a code to the caller; roles follow, the caller's first."""
    async with transaction() as db:
        return await wallet_handover.take(db, caller, payload.code)


@router.get("/export")
async def export_me(caller: Caller, request: Request) -> StreamingResponse:
    """Return everything that is stored about the caller, as a file."""
    document = _document(caller)
    if wants_body(request):
        await anext(document)
    return attachment(document, f"{settings().product_name.lower()}-my-data.json", "application/json")


async def _document(caller: Actor) -> AsyncGenerator[str]:
    """Yield an empty text once everything was read, and then the document.

    It is written to a file first, so that a slow client keeps no connection to the database.
    """
    with SpooledTemporaryFile(KEPT_IN_MEMORY, "w+", encoding="utf-8") as file:
        async with transaction() as db:
            async for piece in export.export(db, caller):
                file.write(piece)
        file.seek(0)
        yield ""
        while piece := file.read(KEPT_IN_MEMORY):
            yield piece


@router.get("/forget")
async def preview_forget(caller: Caller) -> tuple[EndingRole, ...]:
    """Return what would happen to each of the caller's roles if their data were deleted; changes nothing."""
    async with transaction() as db:
        return await erasure.consequences(db, caller)


@router.delete("")
async def forget_me(caller: Caller, answer: Response) -> ForgottenAnswer:
    """Delete everything about the caller and sign them out; their roles follow each rule's removal policy."""
    async with transaction() as db:
        forgotten = await erasure.forget(db, caller)
    await sign_in.revoke(gateways(), forgotten.token)
    unset_session(answer)
    return ForgottenAnswer(roles=forgotten.roles)
