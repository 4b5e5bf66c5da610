"""Headers that depend on the address at which the site is reached."""

import httpx
import pytest
from starlette.responses import PlainTextResponse

from app.http.headers import SecurityHeaders
from settings import settings


@pytest.mark.parametrize(("public_url", "wanted"), [("https://roles.example", True), ("http://localhost:3000", False)])
async def test_browsers_are_told_to_stay_on_https_where_it_is_https(
    monkeypatch: pytest.MonkeyPatch, public_url: str, wanted: bool
) -> None:
    for name in ("DISCORD_CLIENT_ID", "DISCORD_CLIENT_SECRET", "DISCORD_BOT_TOKEN", "SECRET_KEY"):
        monkeypatch.setenv(name, "x" * 32)
    monkeypatch.setenv("PUBLIC_URL", public_url)
    settings.cache_clear()
    try:
        transport = httpx.ASGITransport(app=SecurityHeaders(PlainTextResponse("a")))
        async with httpx.AsyncClient(transport=transport, base_url=public_url) as browser:
            answer = await browser.get("/")
    finally:
        settings.cache_clear()
    told = answer.headers.get("strict-transport-security", "")
    assert (told.startswith("max-age=31536000")) is wanted


@pytest.mark.parametrize(
    ("address", "policy"),
    [
        ("/dashboard?session=secret", "no-referrer"),
        ("/dashboard?a=1&%73ession=secret", "no-referrer"),
        ("/dashboard?sessions=2", "strict-origin-when-cross-origin"),
        ("/dashboard", "strict-origin-when-cross-origin"),
    ],
)
async def test_an_address_with_a_session_is_in_no_referer(address: str, policy: str) -> None:
    transport = httpx.ASGITransport(app=SecurityHeaders(PlainTextResponse("a")))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:3000") as browser:
        answer = await browser.get(address)
    assert answer.headers["referrer-policy"] == policy
