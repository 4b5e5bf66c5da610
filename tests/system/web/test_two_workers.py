"""Two web workers on one database and one Redis: a person served by both notices no difference."""

from collections.abc import Iterator
from uuid import uuid4

import httpx
import pytest

from tests.system.web.conftest import Web, running_web, sign_in, web_database
from tests.system.web.sockets import socket

RULE_FORM = "reflex___state____state.state___rule_form___rule_form____rule_form_state"
PROOFS_A_MINUTE = 3


@pytest.fixture(scope="module")
def workers(postgres_url: str, template_url: str, sandbox_url: str, redis_url: str) -> Iterator[tuple[Web, Web]]:
    """Two workers under one public address, as behind a proxy; each also answers on its own port."""
    database = web_database(postgres_url, "two_workers")
    shared = {"REDIS_URL": redis_url, "WEB_CONCURRENCY": "1", "LIMIT_PROOFS": str(PROOFS_A_MINUTE)}
    with (
        running_web(database, sandbox_url, shared) as one,
        running_web(database, sandbox_url, {**shared, "PUBLIC_URL": one.url}) as other,
    ):
        yield one, other


async def test_a_session_and_a_tabs_state_go_on_at_the_other_worker(workers: tuple[Web, Web]) -> None:
    one, other = workers
    session, tab = sign_in(one.url, "ada"), str(uuid4())
    async with socket(one, session, tab=tab) as ada:
        await ada.until('"member"')
        await ada.event(f"{RULE_FORM}.add_tokens", {"form": {"tokenEntry": "41"}})
        assert '["41"]' in await ada.until("token_ids")
    async with socket(other, session, tab=tab, origin=one.url) as ada:
        await ada.event(f"{RULE_FORM}.add_tokens", {"form": {"tokenEntry": "42"}})
        assert '["41","42"]' in await ada.until('"42"')


def test_a_session_that_ended_at_one_worker_has_ended_at_the_other(workers: tuple[Web, Web]) -> None:
    one, _ = workers
    session = sign_in(one.url, "bob")
    for worker in workers:
        assert _call(worker, session, "/api/auth/user").status_code == 200
    assert _call(one, session, "/api/auth/logout", "POST").is_success
    for worker in workers:
        assert _call(worker, session, "/api/auth/user").status_code == 401


def test_both_workers_count_together_how_often_somebody_may_do_something(workers: tuple[Web, Web]) -> None:
    session = sign_in(workers[0].url, "carol")
    address = "0x" + "ab" * 20
    told = [
        _call(workers[number % 2], session, f"/api/wallet-challenge?address={address}").status_code
        for number in range(PROOFS_A_MINUTE + 2)
    ]
    assert told == [*[200] * PROOFS_A_MINUTE, 429, 429]


def _call(worker: Web, session: str, path: str, method: str = "GET") -> httpx.Response:
    return httpx.request(method, f"{worker.url}{path}", headers={"x-session-id": session}, timeout=30)
