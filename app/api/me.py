"""The caller's own sessions."""

from datetime import datetime

from fastapi import APIRouter, Response

from app.api.auth import unset_session
from app.api.caller import Caller
from app.api.shapes import Answer, Done, Text
from gateways import gateways
from models import transaction
from services import sessions, sign_in, users

router = APIRouter(prefix="/me", tags=["me"])


class SessionAnswer(Answer):
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
    async with transaction() as db:
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
