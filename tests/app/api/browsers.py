"""Browsers for tests: each has its own cookies and talks to the product, and signs in at the sandbox's Discord."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

PUBLIC_URL = "http://localhost:3000"


class Browser:
    """A browser with its own cookies that talks to the product; Discord's pages are the sandbox's."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client

    @property
    def session_id(self) -> str | None:
        """The value of the session cookie."""
        return self.client.cookies.get("hf_session")

    async def leave(self, start: str = "/api/auth/discord", headers: dict[str, str] | None = None) -> str:
        """Begin a sign-in, and return the address of Discord's page."""
        answer = await self.client.get(start, headers=headers)
        assert answer.status_code == 302, answer.text
        return answer.headers["location"]

    async def agree(self, address: str, person: str) -> str:
        """Agree on Discord's page as a person, and return where Discord sends the browser, as path and query."""
        return await agreed(address, person)

    async def come_back(self, path: str) -> httpx.Response:
        """Follow Discord's redirect to the product, and no further."""
        return await self.client.get(path)

    async def sign_in(self, person: str, start: str = "/api/auth/discord") -> str:
        """Sign in completely, and return the session's id from the redirect."""
        answer = await self.come_back(await self.agree(await self.leave(start), person))
        assert answer.status_code == 302, answer.text
        shown = parse_qs(urlsplit(answer.headers["location"]).query)
        assert "session" in shown, answer.headers["location"]
        return shown["session"][0]


async def agreed(address: str, person: str) -> str:
    """Agree on Discord's page as a person, and return where Discord sends the browser, as path and query."""
    async with httpx.AsyncClient(verify=False) as discord:  # plain http, so no certificates are loaded
        answer = await discord.get(f"{address}&as={person}")
    assert answer.status_code in {302, 303, 307}, answer.text
    back = urlsplit(answer.headers["location"])
    assert f"{back.scheme}://{back.netloc}" == PUBLIC_URL
    return f"{back.path}?{back.query}"


_worlds: dict[str, dict[str, Any]] = {}


async def seeded_world(sandbox: str) -> dict[str, Any]:
    """Return a sandbox's world as it was when this process first read it, which takes the sandbox 30 ms.

    It is for the ids, contracts and wallets that the sandbox begins with: no test changes these.
    """
    if sandbox not in _worlds:
        async with httpx.AsyncClient(base_url=sandbox, verify=False) as control:
            _worlds[sandbox] = (await control.get("/control/world")).json()
    return _worlds[sandbox]
