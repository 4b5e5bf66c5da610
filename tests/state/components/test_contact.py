"""The contact page and the policies show the operator's settings, and nobody else's address."""

import pytest

from components.pages.public import contact, policies
from components.pages.rule_form.rule_form import rule_form
from settings import settings


@pytest.mark.parametrize(
    ("address", "invite", "said", "unsaid"),
    [
        ("", "", ("No address yet",), ("mailto:", "Open Discord")),
        ("", "https://discord.gg/x", ("Open Discord",), ("mailto:", "No address yet")),
        ("help@roles.example", "", ("mailto:help@roles.example",), ("Open Discord", "No address yet")),
    ],
)  # fmt: skip
def test_only_what_is_set_is_named(
    address: str, invite: str, said: tuple[str, ...], unsaid: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = settings().model_copy(update={"contact_address": address, "support_invite": invite})
    for module in (contact, policies):
        monkeypatch.setattr(module, "settings", lambda: chosen)
    page = str(contact.contact())
    assert all(words in page for words in said)
    assert not any(words in page for words in unsaid)
    policy = str(policies.privacy_policy()) + str(policies.terms_of_service())
    assert ("mailto:" in policy) is bool(address)
    assert ('"/contact"' in policy) is (not address)


def test_a_screen_has_one_main_heading() -> None:
    assert str(rule_form()).count('jsx("h1"') == 1
