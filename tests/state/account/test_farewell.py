"""The farewell after everything about a person was deleted: the screen is one of a session that has ended."""

import time
from collections.abc import AsyncIterator

import pytest

from services.core.errors import NotSignedIn
from state.account.my_data import MyDataState
from state.core.session import LEFT, MEMBER, SessionState
from tests.jobs.town import Town, a_town
from tests.state.conftest import SignIn


@pytest.fixture
async def town(discord: None, sandbox_url: str) -> AsyncIterator[Town]:
    async with a_town(sandbox_url, "carol") as made:
        yield made


async def test_a_page_knows_its_person_also_on_a_machine_that_has_just_started(
    sign_in: SignIn, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    tab, _ = await sign_in(town.people["carol"]["username"])
    tab.go("/account")
    session = await tab.state(SessionState)
    monkeypatch.setattr(time, "monotonic", lambda: 5.0)
    await tab.run(session.settle())
    assert session.audience == MEMBER


async def test_a_second_press_does_not_hide_the_farewell(sign_in: SignIn, town: Town) -> None:
    tab, _ = await sign_in(town.people["carol"]["username"])
    tab.go("/account")
    session, data = await tab.state(SessionState), await tab.state(MyDataState)
    await tab.run(session.settle())
    await tab.run(data.ask_forget())
    await tab.run(data.type_confirmation("delete"))
    await tab.run(data.forget())
    assert data.forgotten
    assert (session.audience, session.name) == (LEFT, "")
    with pytest.raises(NotSignedIn):
        await tab.run(data.forget())
    session.left()  # which is what the error leads to
    assert (session.audience, data.forgotten) == (LEFT, True)
