"""Who this browser is signed in as, and the copy of the session's id in its local storage."""

import time
from typing import cast

import reflex as rx
from reflex.event import EventSpec
from reflex.state import BaseState

from services.accounts import sessions
from state.core.gate import actor_of, handshake_session_id, public
from state.core.timing import USER_STALE_SECONDS
from state.core.toasts import ToastState

STORAGE_KEY = sessions.STORAGE_KEY
"""Under which the browser's local storage has the id."""
UNKNOWN, VISITOR, MEMBER, LEFT = "", "visitor", "member", "left"
"""The audiences: not known before the socket is up; signed out; signed in; signed out while the screen was open."""
SESSION_PARAMETER = "session"


class SessionState(rx.State):
    """The audience of this page. The actor of a handler never comes from here, see `state.core.gate.signed_in`."""

    session_id: str = rx.LocalStorage("", name=STORAGE_KEY)
    audience: str = UNKNOWN
    name: str = ""
    handed_over: int = 0
    """How many addresses with a session in them were seen; each is cleaned by the page (components/layout/audience)."""
    visit: int = 0
    """Another number for each page load, but the same one when only the connection was lost in between."""
    _of_user: int = 0
    _shown: str = ""
    """By which cookie (its hash) this state's person was met; a state is nobody else's."""
    _met_at: float = 0.0
    _same_page: str = ""
    """The address at which a browser has just come back to a page that it never left."""

    async def _meet(self) -> None:
        """Say who is signed in by the handshake's cookie; another person than before finds everything empty."""
        actor = await actor_of(self)
        user_id = 0 if actor is None else actor.user_id
        if user_id != self._of_user:
            self._get_root_state().reset()
        self._of_user, self._met_at, self._shown = user_id, time.monotonic(), _shown_by(self)
        self.audience = VISITOR if actor is None else MEMBER
        self.name = "" if actor is None else display_name(actor.username)

    @public
    async def settle(self) -> EventSpec | None:
        """On every page load: keep the id in local storage true to the cookie, and `?session=` out of the address.

        A foreign link's id equals no cookie of this browser, so nothing of it is ever stored.
        """
        if time.monotonic() - self._met_at >= USER_STALE_SECONDS:
            await self._meet()
        if self._same_page != str(self.router.url):
            self.visit += 1
        self._same_page = ""
        cookie = handshake_session_id(self) if await actor_of(self) is not None else None
        given = self.router.url.query_parameters.get(SESSION_PARAMETER)
        if given is not None and given == cookie:
            self.session_id = given
        elif cookie is not None and self.session_id != cookie:
            self.session_id = cookie
        if given is not None:
            self.handed_over += 1
        return rx.remove_local_storage(STORAGE_KEY) if cookie is None and self.session_id else None

    @public
    def left(self) -> None:
        """The session ended while the screen was open."""
        if self.audience == MEMBER:
            self.audience = LEFT


async def arrive(state: BaseState, came_back: bool) -> None:
    """What the gate does for each (re)connecting browser, before it is sent anything."""
    session = cast(SessionState, await state.get_state(SessionState))
    await session._meet()
    session._same_page = str(session.router.url) if came_back else ""
    # A toast is for the moment: a page that is loaded anew does not repeat what was said on it before.
    toasts = cast(ToastState, await state.get_state(ToastState))
    toasts.title = toasts.text = ""


async def recognise(state: BaseState) -> None:
    """What the gate does before any other event: who shows another cookie than the person met is met first.

    Else somebody who knows the name of another's tab could have what it shows without that cookie.
    """
    session = cast(SessionState, await state.get_state(SessionState))
    if session._shown != _shown_by(session):
        await session._meet()


def _shown_by(state: BaseState) -> str:
    shown = handshake_session_id(state)
    return "" if shown is None else sessions.hash_of(shown).hex()


def display_name(username: str) -> str:
    """A Discord username without the number that old ones carry after a #."""
    return username.split("#", 1)[0] or "User"
