"""What a member is told above the next reply of the bot."""

import pytest

from models import Notice, transaction
from services.servers import notices
from services.servers.notices import MemberContext
from tests.services.privacy.test_preferences import somebody

ROLE = "[Claim your airdrop](https://phish.example/claim) **now**"


@pytest.mark.parametrize("kind", ["role.taken", "role.lost"])
async def test_a_roles_name_is_never_a_link_in_a_notice(database: str, kind: str) -> None:
    async with transaction() as db:
        one = await somebody(db)
        data = {"roleName": ROLE}
        db.add(Notice(discord_id=one.actor.discord_id, server_id=one.server.id, kind=kind, data=data))
        member = MemberContext(one.actor, one.server.id or 0, one.server.discord_id, one.server.name)
        (told,) = await notices.waiting(db, member)
    assert "](" not in told.text.replace("\\]", "")
    assert "https://" not in told.text
    assert "\\*\\*now" in told.text
