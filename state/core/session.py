"""The audience of this browser, and the copy of its session id in local storage."""

import time
from math import inf

import reflex as rx
from reflex.event import EventSpec
from reflex.state import BaseState, StateUpdate

from locales import N_, _
from services.accounts import sessions
from state.core.gate import actor_of, handshake_session_id, public
from state.core.timing import USER_STALE_SECONDS
from state.core.toasts import ToastState

STORAGE_KEY = sessions.STORAGE_KEY
"""The key of the session id in local storage."""
UNKNOWN, VISITOR, MEMBER, LEFT = "", "visitor", "member", "left"
"""The audiences: unknown before the socket connects; signed out; signed in; signed out while the screen was open."""
SESSION_PARAMETER = "session"
DATABASE_AWAY = N_("The database does not answer right now. Please try again in a few seconds.")


class SessionState(rx.State):
    """The audience of this page. Handlers never take the actor from here, see `state.core.gate.signed_in`."""

    session_id: str = rx.LocalStorage("", name=STORAGE_KEY)
    audience: str = UNKNOWN
    name: str = ""
    handed_over: int = 0
    """Number of URLs with a session id so far; the page removes each (components/layout/audience)."""
    visit: int = 0
    """A number for each page load; it stays the same after a mere reconnect."""
    _of_user: int = 0
    _shown: str = ""
    """The hash of the cookie that this state belongs to."""
    _met_at: float = -inf
    """When the person was last read, on a clock that may have started a moment ago with the machine."""
    _same_page: str = ""
    """The URL of a page that only reconnected."""
    _ended: bool = False
    """Whether this page load found the stored id of a session that has ended."""
    _left_in: int = -1
    """The visit in which the session ended while the screen was open."""

    async def _meet(self) -> None:
        """Set the audience by the handshake's cookie. If it is another person than before, reset every field."""
        actor = await actor_of(self)
        user_id = 0 if actor is None else actor.user_id
        if user_id != self._of_user:
            self._get_root_state().reset()
        self._of_user, self._met_at, self._shown = user_id, time.monotonic(), _shown_by(self)
        self.audience = VISITOR if actor is None else MEMBER
        self.name = "" if actor is None else display_name(actor.username)

    @public
    async def settle(self) -> EventSpec | None:
        """Match local storage with the cookie, and remove `?session=` from the URL; runs on every page load.

        The id in a foreign link matches no cookie of this browser, so it is never stored.
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
        self._ended = cookie is None and bool(self.session_id)
        return rx.remove_local_storage(STORAGE_KEY) if self._ended else None

    @public
    async def say_ended(self) -> None:
        """Say why a screen of members' shows the landing page, if it does because their session has ended.

        A log-out removes the stored id first, so that it says nothing.
        """
        if self._ended:
            toasts = await self.get_state(ToastState)
            toasts._say(_("Please log in"), _("Your session has ended. Log in again to continue."))

    @public
    def left(self) -> None:
        """Show that the session ended while the screen was open."""
        if self.audience == MEMBER:
            self.audience, self.name = LEFT, ""
            self._left_in = self.visit


async def arrive(state: BaseState, came_back: bool) -> None:
    """Set the audience, and clear the toast of an earlier page; the gate runs this for each (re)connecting browser.

    It runs before the browser's state is sent.
    """
    session = await state.get_state(SessionState)
    await session._meet()
    session._same_page = str(session.router.url) if came_back else ""
    if not came_back:
        # A page that is loaded again must not repeat an old toast.
        toasts = await state.get_state(ToastState)
        toasts.title = toasts.text = ""


async def recognise(state: BaseState) -> None:
    """Read the session again if the cookie differs from this state's; the gate runs this before any other event.

    Otherwise a stranger who knows a tab's name could read its screen without the cookie.
    """
    session = await state.get_state(SessionState)
    if session._shown != _shown_by(session):
        await session._meet()


async def say_unread(state: BaseState) -> StateUpdate:
    """Return the toast about a database that does not answer, for a browser that cannot be recognised now."""
    toasts = await state.get_state(ToastState)
    toasts._say(_("Error"), _(DATABASE_AWAY), destructive=True)
    root = state._get_root_state()
    delta = await root._get_resolved_delta()
    root._clean()
    return StateUpdate(delta=delta)


def _shown_by(state: BaseState) -> str:
    shown = handshake_session_id(state)
    return "" if shown is None else sessions.hash_of(shown).hex()


def display_name(username: str) -> str:
    """Return a Discord username without the #number of old accounts."""
    return username.split("#", 1)[0] or _("User")
