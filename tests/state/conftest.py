"""A browser's tab without a browser: the states of a signed-in person, at an address, on the real services."""

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, TypeVar
from urllib.parse import urlencode

import pytest
import reflex as rx

from services.accounts import sessions
from state.core.toasts import ToastState
from tests.app.api.browsers import Browser
from tests.app.api.conftest import brisk, browser, discord, new_browser, product

__all__ = ["brisk", "browser", "discord", "new_browser", "product"]

S = TypeVar("S", bound=rx.State)


class Tab:
    """The states behind one tab; `go` changes its address."""

    def __init__(self, session_id: str) -> None:
        self.root = rx.State()
        self._cookie = f"hf_session={session_id}"

    def go(self, path: str, **query: object) -> None:
        """Set the tab's address."""
        asked = {name: str(value) for name, value in query.items()}
        address = f"{path}?{urlencode(asked)}"
        headers = {"cookie": self._cookie}
        self.root._update_router_vars({"headers": headers, "pathname": path, "asPath": address, "query": asked}, {})

    async def state(self, kind: type[S]) -> S:
        """Return one of the tab's states."""
        return await self.root.get_state(kind)

    async def toast(self) -> str:
        """Return the title and text of the toast that shows."""
        toasts = await self.state(ToastState)
        return f"{toasts.title}: {toasts.text}"

    @staticmethod
    async def run(outcome: "AsyncGenerator[Any] | Awaitable[Any]") -> list[Any]:
        """Run a handler to completion and return what it yields or returns."""
        if inspect.isasyncgen(outcome):
            return [one async for one in outcome]
        assert inspect.isawaitable(outcome)
        return [await outcome]


class Beside:
    """A state as a background handler sees it: the lock is held only where the handler takes it."""

    def __init__(self, state: rx.State) -> None:
        self.__dict__["_state"], self.__dict__["_lock"] = state, asyncio.Lock()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._state, name, value)

    async def __aenter__(self) -> "Beside":
        await self._lock.acquire()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()


SignIn = Callable[[str], Awaitable[tuple[Tab, Browser]]]


@pytest.fixture
def sign_in(discord: None, new_browser: Callable[[], Browser]) -> SignIn:
    """A function that signs a person in and returns their tab, and their browser for calls."""

    async def signed_in(person: str) -> tuple[Tab, Browser]:
        visitor = new_browser()
        await visitor.sign_in(person)
        assert visitor.session_id is not None
        assert sessions.session_id_from_cookie_header(f"hf_session={visitor.session_id}") == visitor.session_id
        return Tab(visitor.session_id), visitor

    return signed_in
