"""The Developers tab: API tokens and the webhook, secrets shown once, and odd arguments from a stranger."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from sqlmodel import select

from models import ApiToken, Webhook, WebhookDelivery, now, transaction
from services.accounts import sessions
from services.accounts.developers import api_tokens, webhooks
from services.core.errors import ProviderUnavailable
from state.core import retry
from state.core.toasts import ToastState
from state.server.api_tokens import ApiTokensState
from state.server.webhook import DELETE, NEW_SECRET, WebhookState
from tests.jobs.town import Town, a_town
from tests.state.conftest import SignIn
from tests.state.towns import opened

HOOK = "https://hooks.example.org/in"


@pytest.fixture
async def town(discord: None, sandbox_url: str) -> AsyncIterator[Town]:
    """A town owned by ada."""
    async with a_town(sandbox_url, "ada") as made:
        await made.see()
        yield made


async def test_a_token_is_shown_once_listed_and_revoked(sign_in: SignIn, town: Town) -> None:
    tab, _ = await sign_in(town.people["ada"]["username"])
    shown = await opened(tab, ApiTokensState, town.server_id, "developers")
    assert (shown.rows, shown.is_open, shown.token) == ([], False, "")
    shown.open_form()
    assert [(one.key, one.chosen) for one in shown.choices] == [("read", True), ("rules", False), ("members", False)]
    await tab.run(shown.create())
    assert (shown.fault_field, shown.fault_text) == ("name", "The name needs 1 to 50 characters.")
    shown.set_name("nightly report")
    shown.choose("read", False)
    await tab.run(shown.create())
    assert shown.fault_field == "scopes"
    shown.choose("read", True)
    shown.choose("members", True)
    shown.set_life("100000")
    shown.set_life("30")
    await tab.run(shown.create())
    assert (shown.fault_text, shown.is_open) == ("", False)
    async with transaction() as db:
        row = (await db.exec(select(ApiToken))).one()
    assert row.hash == sessions.hash_of(shown.token)
    assert abs(row.expires_at - now() - timedelta(days=30)) < timedelta(minutes=1)
    (listed,) = shown.rows
    assert (listed.name, listed.state, listed.scopes) == ("nightly report", "active", "Read the server and Members")
    assert (listed.use, shown.token not in str(shown.rows)) == ("Never used", True)
    shown.ask(listed.id + 1)
    await tab.run(shown.revoke())
    assert len(shown.rows) == 1, "no dialog is open for what is not listed"
    shown.ask(listed.id)
    assert shown.asked_name == "nightly report"
    await tab.run(shown.revoke())
    assert (shown.rows, shown.asked_id, shown.token) == ([], 0, "")


async def test_a_new_token_stays_until_it_is_copied_or_revoked_itself(sign_in: SignIn, town: Town) -> None:
    tab, _ = await sign_in(town.people["ada"]["username"])
    shown = await opened(tab, ApiTokensState, town.server_id, "developers")
    for name in ("old", "new"):
        shown.open_form()
        shown.set_name(name)
        await tab.run(shown.create())
    token = shown.token
    shown.ask(next(row.id for row in shown.rows if row.name == "old"))
    await tab.run(shown.revoke())
    shown.open_form()
    assert ([row.name for row in shown.rows], token != "", shown.token) == (["new"], True, token)
    shown.hide()
    await tab.run(shown.load())
    assert shown.token == ""


async def test_a_webhook_is_set_tested_changed_and_deleted_and_its_secret_shown_once(
    sign_in: SignIn, town: Town
) -> None:
    tab, _ = await sign_in(town.people["ada"]["username"])
    await opened(tab, ApiTokensState, town.server_id, "developers")
    shown = await tab.state(WebhookState)
    assert (shown.is_set, shown.editing) == (False, False)
    shown.ask(DELETE)
    assert shown.asked == "", "there is none"
    await tab.run(shown.edit())
    assert [one.key for one in shown.choices if one.chosen] == [
        "role.given", "role.taken", "rule.changed", "breaker.tripped",
    ]  # fmt: skip
    shown.set_typed("http://10.0.0.1/")
    await tab.run(shown.save())
    assert (shown.fault_field, shown.editing, shown.secret) == ("url", True, "")
    shown.set_typed(HOOK)
    shown.choose("role.given", False)
    await tab.run(shown.save())
    first = shown.secret
    assert (first[:6], shown.is_set, shown.url, shown.editing) == ("whsec_", True, HOOK, False)
    await tab.run(shown.save())
    assert shown.secret == first, "the second click of a double click leaves the secret, which nobody can read again"
    assert shown.events == ["Role taken", "Rule changed", "Removals held back"]
    assert shown.status == "Nothing waits to be delivered."

    await tab.run(shown.send_test())
    await tab.run(shown.send_test())
    assert [(one.event, one.state, one.detail) for one in shown.deliveries] == [("Test event", "Waits", "")]
    async with transaction() as db:
        row = (await db.exec(select(WebhookDelivery))).one()
        row.attempts, row.fault, row.next_at = 2, "HTTP 500", now()
        hook = await db.get_one(Webhook, town.server_id)
        hook.failing_since = now()
        db.add_all([row, hook])
    await tab.run(shown.read_again())
    (row,) = shown.deliveries
    assert (row.tone, row.state) == ("warning", "Waits for another attempt")
    assert row.detail.startswith("2 attempts · HTTP 500 · next on ")
    assert shown.trouble.startswith("Deliveries have failed since ")
    assert shown.status == "1 event waits to be delivered."

    await tab.run(shown.edit())
    assert (shown.typed, shown.secret) == (HOOK, first), "nobody has said that it is copied"
    shown.choose("role.given", True)
    await tab.run(shown.save())
    assert shown.secret == first, "a change makes no other secret"
    shown.ask(NEW_SECRET)
    await tab.run(shown.confirm())
    assert shown.secret not in {"", first}
    assert shown.overlap.startswith("Until ")
    shown.hide()
    shown.ask(DELETE)
    await tab.run(shown.confirm())
    assert (shown.is_set, shown.secret, shown.deliveries) == (False, "", [])
    toasts = await tab.state(ToastState)
    assert toasts.title == "Webhook deleted"
    shown.is_set, shown.asked = True, DELETE
    await tab.run(shown.confirm())
    assert (shown.is_set, toasts.text, toasts.title) == (False, "", "This server has no webhook.")


async def test_the_form_shows_the_webhook_as_another_admin_has_set_it_meanwhile(sign_in: SignIn, town: Town) -> None:
    tab, _ = await sign_in(town.people["ada"]["username"])
    await opened(tab, ApiTokensState, town.server_id, "developers")
    shown = await tab.state(WebhookState)
    await tab.run(shown.edit())
    shown.set_typed(HOOK)
    await tab.run(shown.save())
    async with transaction() as db:
        hook = await db.get_one(Webhook, town.server_id)
        hook.url, hook.events = f"{HOOK}/new", ["wallet.proved"]
        db.add(hook)
    await tab.run(shown.edit())
    assert (shown.typed, [one.key for one in shown.choices if one.chosen]) == (f"{HOOK}/new", ["wallet.proved"])


async def test_what_was_typed_stays_on_this_server_only(sign_in: SignIn, town: Town) -> None:
    tab, _ = await sign_in(town.people["ada"]["username"])
    shown = await opened(tab, ApiTokensState, town.server_id, "developers")
    webhook = await tab.state(WebhookState)
    await tab.run(webhook.edit())
    webhook.set_typed(HOOK * 1000)
    assert len(webhook.typed) == 2_000
    shown.open_form()
    shown.set_name("x" * 1000)
    assert len(shown.name) == 200
    await tab.run(shown.load())
    assert (webhook.editing, shown.is_open) == (True, True)
    webhook.secret = shown.token = "shown on another server"
    shown.shown_for = webhook._shown_for = town.server_id + 1
    await tab.run(shown.load())
    assert (webhook.editing, webhook.secret, shown.is_open, shown.token) == (False, "", False, "")
    async with transaction() as db:
        assert (await db.exec(select(Webhook))).all() == []


async def test_a_new_token_and_a_test_event_are_not_denied_because_the_list_could_not_be_read_after_them(
    sign_in: SignIn, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    tab, _ = await sign_in(town.people["ada"]["username"])
    shown = await opened(tab, ApiTokensState, town.server_id, "developers")
    hook = await tab.state(WebhookState)
    await tab.run(hook.edit())
    hook.set_typed(HOOK)
    await tab.run(hook.save())
    shown.open_form()
    shown.set_name("nightly report")
    monkeypatch.setattr(retry, "RETRY_SECONDS", 0)

    async def silent(*_: object, **__: object) -> None:
        raise ProviderUnavailable("Discord does not answer.")

    monkeypatch.setattr(api_tokens, "list_of", silent)
    monkeypatch.setattr(webhooks, "view", silent)
    monkeypatch.setattr(webhooks, "find", silent)
    for act in (shown.create, hook.send_test):
        await tab.run(act())
        assert not (await tab.state(ToastState)).destructive, await tab.toast()
    assert (bool(shown.token), shown.is_open, shown.working, hook.working) == (True, False, False, False)
    assert (await tab.toast()).startswith("Test event queued")
