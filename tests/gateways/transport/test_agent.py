"""The name by which our clients introduce themselves is one that can be sent, whatever the product is called."""

from collections.abc import Iterator

import h11
import pytest

from gateways.transport.connections import agent
from settings import settings


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    settings.cache_clear()
    agent.cache_clear()
    yield
    settings.cache_clear()
    agent.cache_clear()


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("Holdfast", "Holdfast"), ("Замок", "Holdfast"), ("Замок DAO", "DAO"), ("Schlüssel", "Schlssel"),
        ("Two\nlines\x7f", "Two lines"), ("  a   b ", "a b"),
    ],
)  # fmt: skip
def test_it_can_be_sent_under_any_name(monkeypatch: pytest.MonkeyPatch, name: str, sent: str) -> None:
    monkeypatch.setenv("PRODUCT_NAME", name)
    monkeypatch.setenv("PUBLIC_URL", "http://localhost:3000")
    assert agent() == f"{sent} (+http://localhost:3000)"
    h11.Request(method="GET", target="/", headers=[("Host", "x"), ("User-Agent", agent())])
