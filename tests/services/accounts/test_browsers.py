"""The names under which people see their browsers."""

import pytest

from services.accounts.sessions import name_of

_MOZILLA = "Mozilla/5.0"


@pytest.mark.parametrize(
    ("told", "name"),
    [
        (f"{_MOZILLA} (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"),
        (
            f"{_MOZILLA} (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36",
            "Chrome on Windows",
        ),
        (f"{_MOZILLA} (Windows NT 10.0) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0", "Edge on Windows"),
        (f"{_MOZILLA} (Macintosh; Intel Mac OS X 14_5) AppleWebKit/605.1 Version/17.5 Safari/605.1", "Safari on macOS"),
        (f"{_MOZILLA} (iPhone; CPU iPhone OS 17_5 like Mac OS X) Version/17.5 Safari/604.1", "Safari on iPhone"),
        (f"{_MOZILLA} (Linux; Android 14) AppleWebKit/537.36 Chrome/140.0 Mobile Safari/537.36", "Chrome on Android"),
        ("python-httpx/0.28", "python-httpx/0.28"),
        ("", "A program without a name"),
    ],
)
def test_a_browser_is_named(told: str, name: str) -> None:
    assert name_of(told) == name
