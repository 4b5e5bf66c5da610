"""Discord's tokens at rest: unreadable without the key, and readable through a change of it."""

from collections.abc import Callable, Iterator

import pytest

from services.accounts.encryption import UnreadableToken, seal, unseal
from settings import settings


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """A function that sets the current key and the previous one."""

    def say(present: str, previous: str = "") -> None:
        monkeypatch.setenv("SECRET_KEY", present)
        monkeypatch.setenv("SECRET_KEY_PREVIOUS", previous)
        settings.cache_clear()

    yield say
    settings.cache_clear()


def test_a_change_of_the_key_leaves_everything_readable_and_seals_with_the_new_one(keys: Callable[..., None]) -> None:
    keys("the first")
    before = seal("a token")
    assert b"a token" not in before
    keys("the second", "the first")
    assert unseal(before) == "a token"
    after = seal("a token")
    keys("the second")
    assert unseal(after) == "a token", "what was sealed since needs the old key no more"
    with pytest.raises(UnreadableToken):
        unseal(before)


def test_without_the_right_key_or_with_a_byte_changed_nothing_is_read(keys: Callable[..., None]) -> None:
    keys("the first")
    sealed = seal("a token")
    with pytest.raises(UnreadableToken):
        unseal(sealed[:-2] + b"AA")
    keys("another")
    with pytest.raises(UnreadableToken, match="SECRET_KEY_PREVIOUS"):
        unseal(sealed)


def test_the_same_token_never_looks_the_same(keys: Callable[..., None]) -> None:
    keys("the first")
    assert seal("a token") != seal("a token")
