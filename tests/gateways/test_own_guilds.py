"""The lists of guilds that people read with their own tokens."""

import asyncio

import pytest

from gateways import own_guilds
from gateways.errors import ProviderBusy
from gateways.own_guilds import Listing, OwnGuilds


class Discord:
    """Answers with the number of the request, or refuses it."""

    def __init__(self, window: float = 0.05) -> None:
        self.asked = 0
        self.window = window
        self.busy = False

    async def ask(self) -> Listing:
        """One request."""
        self.asked += 1
        number = self.asked
        if self.busy:
            raise ProviderBusy("Discord", "not yet", retry_after=0.01)
        await asyncio.sleep(0.01)
        return Listing(number, self.window)


@pytest.fixture
def discord(monkeypatch: pytest.MonkeyPatch) -> Discord:
    monkeypatch.setattr(own_guilds, "PATIENCE", 0.1)
    return Discord()


async def test_a_window_has_one_request_for_each_token(discord: Discord) -> None:
    lists = OwnGuilds()
    discord.window = 3_600.0
    assert await asyncio.gather(*(lists.of("token", discord.ask, fresh=bool(n % 2)) for n in range(5))) == [1] * 5
    assert await lists.of("token", discord.ask, fresh=True) == 1
    assert await lists.of("another", discord.ask) == 2


@pytest.mark.parametrize("fresh", [True, False])
async def test_while_discord_allows_none_the_last_answer_is_for_what_no_rights_depend_on(
    discord: Discord, *, fresh: bool
) -> None:
    lists = OwnGuilds()
    discord.window = 0.0
    assert await lists.of("token", discord.ask) == 1
    discord.busy = True
    if fresh:
        with pytest.raises(ProviderBusy):
            await lists.of("token", discord.ask, fresh=True)
    else:
        assert await lists.of("token", discord.ask) == 1
    discord.busy = False
    assert await lists.of("token", discord.ask, fresh=fresh) == discord.asked
