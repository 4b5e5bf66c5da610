"""The caller's own affairs: where they are signed in, what is stored about them, where their wallets count."""

from datetime import datetime
from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from pydantic import StrictBool

from app.api.auth import unset_session
from app.api.requests.caller import Caller
from app.api.requests.shapes import ApiAnswer, Done, PathId, Payload, Text
from gateways import gateways
from models import reading, transaction
from services.accounts import sessions, sign_in, users
from services.privacy import preferences
from settings import settings

router = APIRouter(prefix="/me", tags=["me"])


class SessionAnswer(ApiAnswer):
    """A signed-in browser; `current` is the one that asks."""

    id: str
    user_agent: str
    created_at: datetime
    seen_at: datetime
    expires_at: datetime
    current: bool


@router.get("/sessions")
async def signed_in(caller: Caller) -> list[SessionAnswer]:
    """Where the caller is signed in, last used first."""
    async with reading() as db:
        return [SessionAnswer.model_validate(session) for session in await sessions.list_of(db, caller)]


@router.delete("/sessions")
async def sign_out_everywhere(caller: Caller, answer: Response) -> Done:
    """Sign the caller out everywhere, here too."""
    async with transaction() as db:
        await sessions.close_all(db, caller)
        token = await users.let_go(db, caller.user_id)
    await sign_in.revoke(gateways(), token)
    unset_session(answer)
    return Done()


@router.delete("/sessions/{session}")
async def sign_out_one(caller: Caller, session: Text) -> Done:
    """Sign one of the caller's browsers out."""
    async with transaction() as db:
        await sessions.close_one(db, caller, session)
    return Done()


class ChoiceAnswer(ApiAnswer):
    """A server that the caller is a member of: whether their wallets count there, and whether its admins see them."""

    server_id: int
    discord_id: str
    name: str
    use_wallets: bool
    share_wallets: bool
    roles: list[str]


class ChoicePayload(Payload):
    """What the caller decides; what is absent stays as it is."""

    use_wallets: StrictBool | None = None
    share_wallets: StrictBool | None = None


class EndingRoleAnswer(ApiAnswer):
    """A role that the caller has from us, and what becomes of it."""

    server_name: str
    role_name: str
    role_color: str
    end: preferences.RoleEnd
    hours: int
    text: str


class ForgottenAnswer(Done):
    """That everything is deleted, and what becomes of each role."""

    roles: list[EndingRoleAnswer]


@router.get("/servers")
async def choices(caller: Caller) -> list[ChoiceAnswer]:
    """The servers with the bot where the caller is a member, and what they decided there."""
    async with transaction() as db:
        return [ChoiceAnswer.model_validate(choice) for choice in await preferences.choices(db, caller)]


@router.put("/servers/{server_id}")
async def choose(caller: Caller, server_id: PathId, payload: ChoicePayload) -> ChoiceAnswer:
    """Decide whether wallets count in a server, and whether its admins may see them, shortened."""
    async with transaction() as db:
        chosen = await preferences.choose(
            db, caller, server_id, use_wallets=payload.use_wallets, share_wallets=payload.share_wallets
        )
    return ChoiceAnswer.model_validate(chosen)


@router.get("/export")
async def export(caller: Caller) -> JSONResponse:
    """Everything that is stored about the caller, as a file to keep."""
    async with transaction() as db:
        document: dict[str, Any] = await preferences.export(db, caller)
    name = f"{settings().product_name.lower()}-my-data.json"
    return JSONResponse(
        document, headers={"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    )


@router.get("/forget")
async def consequences(caller: Caller) -> list[EndingRoleAnswer]:
    """What would become of each of the caller's roles if they were forgotten; changes nothing."""
    async with transaction() as db:
        return [EndingRoleAnswer.model_validate(role) for role in await preferences.consequences(db, caller)]


@router.delete("")
async def forget(caller: Caller, answer: Response) -> ForgottenAnswer:
    """Delete everything about the caller and sign them out; their roles follow each rule's removal policy."""
    async with transaction() as db:
        forgotten = await preferences.forget(db, caller)
    await sign_in.revoke(gateways(), forgotten.token)
    unset_session(answer)
    return ForgottenAnswer(roles=[EndingRoleAnswer.model_validate(role) for role in forgotten.roles])
