"""How often a screen retries before it gives up."""

from contextlib import nullcontext

import pytest
import reflex as rx

from services.core.errors import HoldfastError, NotConnected, NotSignedIn, ProviderUnavailable
from services.runtime import rate_limits
from services.servers import servers
from state.core import gate, retry
from state.core.retry import ask
from state.core.timing import QUERY_ATTEMPTS
from state.core.toasts import ToastState
from state.dashboard import server_form
from state.dashboard.server_form import ServerFormState
from tests.state.conftest import Tab
from tests.state.rule_form.filling import somebody


class Asked:
    """A call that fails so many times, then answers."""

    def __init__(self, *faults: Exception) -> None:
        self.faults, self.times = list(faults), 0

    async def read(self, *_: object) -> str:
        self.times += 1
        if self.faults:
            raise self.faults.pop(0)
        return "answer"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "RETRY_SECONDS", 0)
    monkeypatch.setattr(retry, "transaction", nullcontext)


async def test_what_is_answered_is_asked_for_once() -> None:
    asked = Asked()
    assert await ask(asked.read) == "answer"
    assert asked.times == 1


@pytest.mark.parametrize("fault", [OSError("the database is away"), ProviderUnavailable("Discord does not answer")])
async def test_what_fails_is_asked_for_again_while_attempts_are_under_two(fault: Exception) -> None:
    asked = Asked(fault)
    assert await ask(asked.read) == "answer"
    given_up = Asked(*[fault] * 9)
    with pytest.raises(type(fault)):
        await ask(given_up.read)
    assert (asked.times, given_up.times, QUERY_ATTEMPTS) == (2, 2, 2)


@pytest.mark.parametrize("answer", [NotSignedIn(), NotConnected()])
async def test_unauthorized_and_other_answers_are_not_asked_for_again(answer: HoldfastError) -> None:
    asked = Asked(answer)
    with pytest.raises(type(answer)):
        await ask(asked.read)
    assert asked.times == 1


async def test_a_change_that_fails_is_not_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(ProviderUnavailable("Discord does not answer"))
    monkeypatch.setattr(gate, "actor_of", somebody)
    monkeypatch.setattr(rate_limits, "spend", Asked().read)
    monkeypatch.setattr(server_form, "transaction", nullcontext)
    monkeypatch.setattr(server_form, "gateways", lambda: None)
    monkeypatch.setattr(servers, "add", asked.read)
    form = await rx.State().get_state(ServerFormState)
    await Tab.run(form.create({"discordServerId": "7", "serverName": "Cool Holders Club"}))
    assert (await form.get_state(ToastState)).text == "Discord does not answer"
    assert asked.times == 1
