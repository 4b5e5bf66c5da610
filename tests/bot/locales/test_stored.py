"""Texts stored in English and shown in any language."""

import pytest

from locales import N_, speaking
from locales.stored_texts import said, storable, storable_count, with_token_hidden, within

GONE = N_("Your transaction is no longer on {chain}. It is looked for again.")


def test_a_stored_text_is_read_in_the_language_of_each_reader() -> None:
    with speaking("es"):
        kept = storable(GONE, chain="Base")
    with speaking("ja"):
        assert "Base" in said(kept)
        assert said(kept) != GONE.format(chain="Base")
    assert said(kept) == "Your transaction is no longer on Base. It is looked for again."


@pytest.mark.parametrize(("count", "end"), [(1, "1 is missing."), (3, "3 are missing.")])
def test_a_stored_number_takes_the_form_of_each_language(count: int, end: str) -> None:
    kept = storable_count(
        "Your transaction is on {chain} and has {had} of {needed} confirmations; {count} is missing.",
        "Your transaction is on {chain} and has {had} of {needed} confirmations; {count} are missing.",
        count, chain="Base", had=2, needed=5,
    )  # fmt: skip
    assert said(kept).endswith(end)
    with speaking("pt-BR"):
        assert said(kept).endswith(("falta 1.", "faltam 3."))


def test_a_stored_text_may_hold_another_one_but_looks_up_no_name() -> None:
    inner = storable("Discord refused to give the role ({error}).", error="Rules")
    kept = storable("{reason} ({chain})", reason=inner, chain="Members")
    with speaking("ja"):
        assert said(kept) == "Discordがロールの付与を拒否しました（Rules）。（Members）"


def test_a_stored_text_in_another_one_is_looked_up_too() -> None:
    doubt = within(N_("the contract gave no answer"))
    kept = storable("token {token}: {reason}", token="7", reason=doubt)
    assert said(kept) == "token 7: the contract gave no answer"
    with speaking("ja"):
        assert said(kept) == "トークン7：コントラクトが応答しませんでした"
    assert within(kept) == kept
    outer = storable("{chain}: {reason}", chain="Base", reason=kept)
    assert said(with_token_hidden(outer)) == "Base: token …: the contract gave no answer"


@pytest.mark.parametrize("text", ["", "not read yet", '{"text": ', '{"text": 1}', '{"text": "x", "values": []}'])
def test_a_text_without_a_token_stays_as_it_is(text: str) -> None:
    assert with_token_hidden(text) == text


@pytest.mark.parametrize(
    "text",
    ["", "Written by an older version.", '{"text": ', '{"text": 1}', '{"text": "{x}", "values": {}}', '{"text": []}'],
)
def test_anything_else_appears_as_it_is(text: str) -> None:
    for language in ("en", "ja"):
        with speaking(language):
            assert said(text) == text
