"""What the server writes into a screen's document before the socket connects."""

from pathlib import Path

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from app.http.html_pages import Documents, Route


async def nothing_else(scope: Scope, receive: Receive, send: Send) -> None:
    """Stands for the rest of the product, which no document reaches."""
    raise AssertionError(scope["path"])


@pytest.fixture
def documents(tmp_path: Path) -> Documents:
    """The documents of a build with two screens."""
    for name in ("oauth-error", "features"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").write_text('<!DOCTYPE html><html lang="en"></html>')
    return Documents(nothing_else, [Route("/oauth-error", False), Route("/features", False)], {}, tmp_path)


@pytest.mark.parametrize("packed", ["gzip", "identity"])
async def test_only_the_page_of_a_failed_login_is_told_that_it_failed(documents: Documents, packed: str) -> None:
    transport = httpx.ASGITransport(documents)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:3000") as client:

        async def told(path: str) -> bool:
            answer = await client.get(path, headers={"Accept-Encoding": packed})
            assert '<html data-audience="visitor"' in answer.text
            return 'data-error="auth_failed"' in answer.text

        assert await told("/oauth-error?error=auth_failed")
        assert not await told("/oauth-error")
        assert not await told("/oauth-error?error=other")
        assert not await told("/oauth-error?error=auth_failed%22")
        assert not await told("/features?error=auth_failed")
        assert await told("/oauth-error?x=1&error=auth_failed")


@pytest.mark.parametrize("half_written", ["", None])
async def test_while_the_screens_are_being_built_a_page_is_a_sentence_and_503(
    documents: Documents, tmp_path: Path, half_written: str | None
) -> None:
    if half_written is None:
        (tmp_path / "features" / "index.html").unlink()
    else:
        (tmp_path / "features" / "index.html").write_text(half_written)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(documents), base_url="http://localhost:3000") as client:
        answer = await client.get("/features", headers={"Accept-Encoding": "gzip"})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.text == "The service restarts. Please try again."
