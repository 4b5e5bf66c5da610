"""How long a read waits for Discord when an older answer exists, and which answer it then uses."""

import asyncio

import pytest

from gateways.transport.errors import ProviderDown
from services.guilds import permission_cache
from services.guilds.permission_cache import PermissionCache


async def silence() -> None:
    await asyncio.Event().wait()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time limits that were set; each one expires at once."""
    found: list[float] = []
    timeout = asyncio.timeout

    def over(seconds: float) -> asyncio.Timeout:
        found.append(seconds)
        return timeout(0.0)

    monkeypatch.setattr(permission_cache.asyncio, "timeout", over)
    return found


async def in_vain(cache: PermissionCache, person: str) -> None:
    with pytest.raises(ProviderDown):
        async with cache.limit(person, brief=True):
            await silence()


async def test_after_a_wait_in_vain_the_same_person_waits_hardly_at_all_and_others_as_before(
    waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = PermissionCache()
    for person in ("1", "1", "2", "1"):
        await in_vain(cache, person)
    first, after = permission_cache.FIRST_SECONDS, permission_cache.NEXT_SECONDS
    assert waits == [first, after, first, after]
    monkeypatch.setattr(permission_cache, "IMPATIENT_SECONDS", 0.0)
    await in_vain(cache, "1")
    assert waits[-1] == first, "now and then a proper try shows that Discord is back, however slow it is"


async def test_an_answer_ends_the_impatience() -> None:
    cache = PermissionCache()
    cache._in_vain["1"] = asyncio.get_running_loop().time()
    async with cache.limit("1", brief=True):
        pass
    assert cache._in_vain == {}


async def test_where_nothing_older_would_do_discord_is_waited_for(waits: list[float]) -> None:
    async with PermissionCache().limit("1", brief=False):
        pass
    assert waits == []


async def test_a_screen_with_four_reads_shows_within_three_seconds() -> None:
    assert permission_cache.FIRST_SECONDS + 4 * permission_cache.NEXT_SECONDS <= 2.5


async def test_the_answers_kept_are_limited_in_number_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permission_cache, "KEPT", 3)
    cache = PermissionCache()
    for server in range(5):
        cache.keep("1", server)
    assert [server for server in range(5) if cache.stands("1", server)] == [2, 3, 4]
    cache.drop("1", 4)
    assert not cache.stands("1", 4)
    assert not cache.stands("2", 3)
    monkeypatch.setattr(permission_cache, "KEPT_SECONDS", 0.0)
    assert not cache.stands("1", 3)
