"""A page keeps what was filled in as long as it stays open, whatever happens to its connection."""

import pytest
from reflex.state import StateUpdate
from reflex_base.event import Event
from reflex_base.utils.format import format_event_handler
from sqlmodel import select

import models
from models import User, transaction
from state.account.my_data import MyDataState
from state.account.profile import AccountState
from state.account.wallet_proof import WalletProofState
from state.core.gate import Gate
from state.core.session import DATABASE_AWAY, MEMBER, UNKNOWN, SessionState, arrive, recognise, say_unread
from state.core.toasts import ToastState
from state.rule_form.preview import RulePreviewState
from state.rule_form.rule_form import RuleFormState
from tests.state.conftest import SignIn, Tab
from tests.state.towns import with_rule

FIRST, AGAIN = {"hashes": ["a", "b"]}, {}
"""What a browser sends with a page that it has just loaded, and with one that it never left."""


async def connected(tab: Tab, payload: dict[str, list[str]]) -> None:
    """Connect the tab's socket and begin the page's loads, as Reflex does."""
    event = Event(name="reflex___state____state.hydrate_and_load", payload=payload)
    assert await Gate(arrive, recognise, say_unread).preprocess(None, tab.root, event) is None  # pyright: ignore[reportArgumentType]
    await tab.run((await tab.state(SessionState)).settle())


async def form(tab: Tab) -> RuleFormState:
    state = await tab.state(RuleFormState)
    await tab.run(state.load())
    return state


async def test_the_rule_form_outlives_its_connection_but_not_its_page(sign_in: SignIn) -> None:
    tab, browser = await sign_in("ada")
    rule = await with_rule(browser)
    tab.go("/add-verification-rule", serverId=rule["serverId"])
    await connected(tab, FIRST)
    state = await form(tab)
    await state.enter_min_tokens(state.open, 7)
    await state.choose_role(rule["roleId"])
    state.pending = True
    await connected(tab, AGAIN)
    await form(tab)
    assert (state.min_tokens, state.role_id, state.pending) == ("7", rule["roleId"], False)
    await tab.run((await tab.state(SessionState)).settle())
    await form(tab)
    assert (state.min_tokens, state.role_id) == ("1", ""), "somebody went away and came back"
    await state.enter_min_tokens(state.open, 7)
    await connected(tab, FIRST)
    await form(tab)
    assert state.min_tokens == "1", "the page was loaded anew"


async def test_a_connection_that_comes_back_to_another_page_is_another_visit(sign_in: SignIn) -> None:
    tab, browser = await sign_in("ada")
    rule = await with_rule(browser)
    tab.go("/add-verification-rule", serverId=rule["serverId"])
    await connected(tab, FIRST)
    state = await form(tab)
    await state.enter_min_tokens(state.open, 7)
    event = Event(name="reflex___state____state.hydrate_and_load", payload=AGAIN)
    await Gate(arrive, recognise, say_unread).preprocess(None, tab.root, event)  # pyright: ignore[reportArgumentType]
    tab.go("/add-verification-rule", serverId=rule["serverId"], ruleId=rule["id"])
    await tab.run((await tab.state(SessionState)).settle())
    await form(tab)
    assert (state.rule_id, state.min_tokens) == (rule["id"], str(rule["minTokens"]))


@pytest.mark.parametrize(("payload", "kept"), [(AGAIN, "0x12"), (FIRST, "")])
async def test_who_comes_back_from_a_wallet_finds_the_form_as_it_was(
    sign_in: SignIn, payload: dict[str, list[str]], kept: str
) -> None:
    tab, _ = await sign_in("dave")
    tab.go("/wallet-verification")
    await connected(tab, FIRST)
    state = await tab.state(WalletProofState)
    await tab.run(state.load())
    state.address = "0x12"
    await connected(tab, payload)
    await tab.run(state.load())
    assert state.address == kept


async def test_a_bio_is_checked_again_after_the_process_that_checked_it_is_gone(sign_in: SignIn) -> None:
    tab, _ = await sign_in("dave")
    tab.go("/wallet-verification")
    await connected(tab, FIRST)
    state = await tab.state(WalletProofState)
    await tab.run(state.load())
    state.address, state.looking = "0x12", True
    await connected(tab, AGAIN)
    (check,) = await tab.run(state.load())
    assert check.handler.fn.__name__ == "look_again"
    state.looking = False
    await connected(tab, AGAIN)
    assert await tab.run(state.load()) == []


async def test_a_preview_is_read_again_after_the_process_that_read_it_is_gone(sign_in: SignIn) -> None:
    tab, browser = await sign_in("ada")
    rule = await with_rule(browser)
    tab.go("/add-verification-rule", serverId=rule["serverId"], ruleId=rule["id"])
    await connected(tab, FIRST)
    state, impact = await form(tab), await tab.state(RulePreviewState)
    await tab.run(state.preview())
    assert impact.busy
    await connected(tab, AGAIN)
    (again,) = await tab.run(state.load())
    assert again.fn.__name__ == "watch"
    await connected(tab, FIRST)
    await form(tab)
    assert not impact.busy, "the form that is opened next has not asked"


@pytest.mark.parametrize("cookie", [None, "mallory"])
async def test_a_tab_is_empty_for_a_browser_with_another_cookie_even_without_a_greeting(
    sign_in: SignIn, cookie: str | None
) -> None:
    tab, _ = await sign_in("ada")
    tab.go("/account")
    await connected(tab, FIRST)
    account = await tab.state(AccountState)
    await tab.run(account.load())
    assert account.discord_username == "ada"
    other = (await sign_in(cookie))[1].session_id if cookie else ""
    tab._cookie = f"hf_session={other}" if other else ""
    tab.go("/account")
    event = Event(name=format_event_handler(MyDataState.event_handlers["close_dialog"]), payload={"is_open": False})
    assert await Gate(arrive, recognise, say_unread).preprocess(None, tab.root, event) is None  # pyright: ignore[reportArgumentType]
    assert account.discord_username == ""
    session = await tab.state(SessionState)
    assert (session.name, session.audience) == (("mallory", "member") if cookie else ("", "visitor"))


async def greeted(tab: Tab, name: str, payload: dict[str, object]) -> StateUpdate | None:
    """Return the gate's answer to an event before its handler runs."""
    event = Event(name=name, payload=payload)
    return await Gate(arrive, recognise, say_unread).preprocess(None, tab.root, event)  # pyright: ignore[reportArgumentType]


async def test_a_browser_that_comes_while_the_database_is_away_is_told_so_and_no_event_follows(
    sign_in: SignIn, database_url: str
) -> None:
    tab, _ = await sign_in("ada")
    tab.go("/account")
    await models.use("postgresql+psycopg://nobody@/nothing?host=/nowhere")
    shown = format_event_handler(ToastState.event_handlers["show"])
    toast = {"title": "a", "text": "b", "destructive": True}
    for name, payload in (("reflex___state____state.hydrate_and_load", FIRST), (shown, toast)):
        told = await greeted(tab, name, dict(payload))
        assert told is not None
        assert DATABASE_AWAY in str(told.delta)
        assert told.events == [], "an event would come here again, and fail again"
    assert (await tab.state(SessionState)).audience == UNKNOWN
    await models.use(database_url)
    assert await greeted(tab, "reflex___state____state.hydrate_and_load", dict(FIRST)) is None
    assert (await tab.state(SessionState)).audience == MEMBER


async def test_arriving_at_the_wallet_form_sends_no_field_that_is_empty_already(sign_in: SignIn) -> None:
    tab, _ = await sign_in("carol")
    tab.go("/wallet-verification")
    await connected(tab, FIRST)
    state = await tab.state(WalletProofState)
    state.dirty_vars.clear()
    await tab.run(state.load())
    # What somebody types before the answer comes would be overwritten.
    assert not {"address", "method"} & state.dirty_vars


async def test_the_last_session_that_ends_on_the_account_screen_ends_the_grant(sign_in: SignIn) -> None:
    tab, _ = await sign_in("ada")
    mine = await tab.state(MyDataState)
    tab.go("/account")
    await tab.run(mine.load())
    (session,) = [one.id for one in mine.sessions]
    # As two browsers that log each other out at the same moment: the last one's own session ends too.
    await tab.run(mine.sign_out(session))
    async with transaction() as db:
        assert (await db.exec(select(User.access_token))).all() == [None]
