"""Names and pictures of people and servers (specification sections 2 and 3)."""

import pytest

from services.accounts.users import avatar_url
from services.servers.servers import icon_url
from settings import settings
from state.core.session import display_name


@pytest.mark.parametrize(
    ("username", "shown"), [("ada", "ada"), ("ada#1234", "ada"), ("a#b#c", "a"), ("", "User"), ("#1234", "User")]
)
def test_a_name_loses_what_follows_its_hash_and_nobody_is_without_one(username: str, shown: str) -> None:
    assert display_name(username) == shown


def test_pictures_come_from_discords_own_places() -> None:
    cdn = settings().discord_cdn_url
    assert avatar_url("42", "abc") == f"{cdn}/avatars/42/abc.png?size=128"
    assert avatar_url("42", None) is None
    assert icon_url("77", "def") == f"{cdn}/icons/77/def.png?size=128"
