"""The bot answers in the language of the member's Discord."""

from tests.bot.conftest import Club, Said
from tests.system.whole.people import until


def said(club: Club, command: str, locale: str, who: str = "carol") -> Said:
    """Return what a member with this Discord locale reads."""
    return Said(club.act(who, "command", name=command, locale=locale))


def test_each_member_is_answered_in_their_language(club: Club) -> None:
    assert said(club, "wallets", "ja").title == "あなたのウォレット"
    assert said(club, "wallets", "es-419").title == "Tus billeteras"
    assert said(club, "wallets", "pt-BR").title == "Suas carteiras"
    assert said(club, "wallets", "zh-CN").title == "你的钱包"
    assert said(club, "wallets", "de").title == said(club, "wallets", "en-US").title == "Your wallets"


def test_help_names_the_commands_as_the_members_discord_does(club: Club) -> None:
    assert "**/理由**" in said(club, "help", "ja").text
    assert "**/why**" in said(club, "help", "zh-TW").text


def test_a_form_and_its_answer_are_in_one_language(club: Club) -> None:
    form = club.act("carol", "command", name="verify", locale="es-ES")["modal"]
    assert form["title"] == "Verificar una billetera"
    fields = {"address": club.wallet("carol"), "method": "opensea_bio"}
    asked = Said(club.act("carol", "modal", custom_id=form["custom_id"], fields=fields, locale="es-ES"))
    assert "Comprobar ahora" in asked.text
    pressed = club.act("carol", "button", custom_id=asked.button("Comprobar ahora"), locale="ja")
    assert Said(pressed).title == "まだ見つかりません"


def test_a_rule_and_what_is_held_are_said_in_the_members_language(club: Club) -> None:
    club.make_rule()
    club.prove("carol")
    # Until the new wallet has been read, its holdings are unknown.
    until(lambda: "必要1、保有0" in said(club, "why", "ja").text)
    why = said(club, "why", "ja")
    assert why.title == "あなたのロール"
    assert "Holder：ありません" in why.text
    assert "のトークンを1個以上" in why.text
    assert "必要1" not in said(club, "why", "en-US").text
