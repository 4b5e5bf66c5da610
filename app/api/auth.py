"""Sign in with Discord, sign out, and read the signed-in person."""

import logging
from typing import Annotated

from fastapi import Query, Request, Response
from starlette.responses import RedirectResponse

from app.api.requests.caller import Caller, shown_session_id
from app.api.requests.routers import calls
from app.api.requests.shapes import Done, Text
from app.http.languages import set_cookie
from app.http.origins import asked_for_by_us
from gateways import gateways
from locales import _, browser_language
from models import transaction
from services.accounts import sessions, sign_in, users
from services.accounts.return_paths import path_of_referrer
from services.accounts.users import UserView
from services.core.errors import Forbidden, HoldfastError, SignInFailed
from services.servers import servers
from settings import settings

router = calls("/auth", tags=["auth"])
_log = logging.getLogger(__name__)
_FAILED = "/oauth-error?error=auth_failed"
_UNSEEN = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}


@router.get("/user")
async def get_user(caller: Caller) -> UserView:
    """Return the signed-in person."""
    async with transaction() as db:
        return await users.view(db, gateways(), caller)


@router.get("/discord", status_code=302, response_class=RedirectResponse)
async def begin_sign_in(
    request: Request, return_path: Annotated[Text | None, Query(alias="return")] = None
) -> Response:
    """Redirect to Discord to sign in, and return to the path in `return`, or to the members' screen that asked."""
    asked = return_path or path_of_referrer(request.headers.get("referer"))
    return await _leave(sign_in.SIGN_IN, asked, None)


@router.get("/discord/connect", status_code=302, response_class=RedirectResponse)
async def renew_grant(request: Request, return_path: Annotated[Text | None, Query(alias="return")] = None) -> Response:
    """Redirect to Discord to renew its grant; a person who is signed out signs in this way."""
    async with transaction() as db:
        actor = await sessions.actor_of(db, sessions.session_id_from_cookie_header(request.headers.get("cookie")))
    purpose = sign_in.SIGN_IN if actor is None else sign_in.CONNECT
    return await _leave(purpose, return_path, None if actor is None else actor.user_id)


async def _leave(purpose: str, return_path: str | None, user_id: int | None) -> Response:
    cookie = sign_in.new_login_cookie()
    async with transaction() as db:
        address = await sign_in.begin(
            db, gateways(), purpose=purpose, return_path=return_path, login_cookie=cookie, user_id=user_id
        )
    answer = RedirectResponse(address, status_code=302, headers=_UNSEEN)
    _set(answer, sessions.login_cookie_name(), cookie, int(sign_in.SIGN_IN_LIFE.total_seconds()))
    return answer


@router.get("/discord/callback", status_code=302, response_class=RedirectResponse)
async def finish_sign_in(request: Request, state: Text = "", code: Text = "", error: Text = "") -> Response:
    """Handle the return from Discord: start a session for this browser, or redirect to /oauth-error."""
    cookies = request.headers.get("cookie")
    login_cookie = sessions.cookie_from_header(cookies, sessions.login_cookie_name())
    async with transaction() as db:
        journey = await sign_in.take(db, state=state, login_cookie=login_cookie)
    try:
        if journey is None or error or not code:
            raise SignInFailed
        proof = await sign_in.ask(gateways(), journey, code)
        async with transaction() as db:
            signed_in = await sign_in.finish(
                db,
                journey,
                proof,
                old_session_id=sessions.session_id_from_cookie_header(cookies),
                user_agent=request.headers.get("user-agent", ""),
            )
            chosen = browser_language.chosen_in(cookies)
            if chosen is not None:
                await users.choose_language(db, signed_in.user_id, chosen)
            language = chosen or await users.language_of(db, signed_in.user_id)
    except SignInFailed:
        answer = RedirectResponse(_FAILED, status_code=302, headers=_UNSEEN)
        _unset(answer, sessions.login_cookie_name())
        return answer
    await sign_in.revoke(gateways(), signed_in.former_token)
    await _learn_servers(signed_in)
    answer = RedirectResponse(signed_in.return_path, status_code=302, headers=_UNSEEN)
    _set(answer, sessions.cookie_name(), signed_in.session_id, int(sessions.SESSION_LIFE.total_seconds()))
    _unset(answer, sessions.login_cookie_name())
    if language is not None:
        set_cookie(answer, language)
    return answer


async def _learn_servers(signed_in: sign_in.SignedIn) -> None:
    """Read the person's servers from Discord. If Discord does not answer, they are signed in anyway and can refresh."""
    async with transaction() as db:
        actor = await sessions.actor_of(db, signed_in.session_id)
    if actor is None:
        return
    try:
        async with transaction() as db:
            await servers.sync(db, gateways(), actor)
    except HoldfastError as fault:
        _log.warning("signed in without the list of servers reason=%s", fault)
        async with transaction() as db:
            await servers.look_for(db, actor)


@router.post("/logout")
async def log_out(request: Request, answer: Response) -> Done:
    """Sign out. Without a session this does nothing."""
    await _sign_out(request, answer)
    return Done()


@router.get("/logout", status_code=302, response_class=RedirectResponse)
async def log_out_and_leave(request: Request) -> Response:
    """Sign out and redirect to the landing page, whose script deletes a stored session id that has no cookie."""
    if not asked_for_by_us(request.headers):
        raise Forbidden(_("Log out from the site itself, not by a link from elsewhere."))
    answer = RedirectResponse("/", status_code=302, headers=_UNSEEN)
    await _sign_out(request, answer)
    return answer


async def _sign_out(request: Request, answer: Response) -> None:
    session_id = shown_session_id(request.headers)
    async with transaction() as db:
        token = await sign_in.sign_out(db, session_id)
    await sign_in.revoke(gateways(), token)
    unset_session(answer)


def unset_session(answer: Response) -> None:
    """Delete the browser's session cookie."""
    _unset(answer, sessions.cookie_name())


def _set(answer: Response, name: str, value: str, seconds: int) -> None:
    answer.set_cookie(name, value, max_age=seconds, path="/", secure=settings().https, httponly=True, samesite="lax")


def _unset(answer: Response, name: str) -> None:
    answer.delete_cookie(name, path="/", secure=settings().https, httponly=True, samesite="lax")
