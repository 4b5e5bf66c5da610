"""Views of stored rules."""

import pytest

from locales import speaking
from models import transaction
from services.rules import views
from tests.support.builders import a_rule, a_server


@pytest.mark.usefixtures("database")
async def test_a_role_whose_name_is_unknown_is_named_in_the_readers_language() -> None:
    async with transaction() as db:
        rule = await a_rule(db, await a_server(db), "77")
        rule.role_name = ""
        assert (await views.of_rule(db, rule)).role_name == "Unknown Role"
        with speaking("es"):
            assert (await views.of_rule(db, rule)).role_name == "Rol desconocido"
