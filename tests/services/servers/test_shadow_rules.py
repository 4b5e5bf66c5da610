"""Members see no rule in shadow, neither in `/why` nor after a re-check."""

from bot.messages import sentences
from models import transaction
from services.rules import views
from services.servers import explain, recheck_report
from tests.services.privacy.test_preferences import somebody
from tests.support.builders import a_rule


async def test_a_member_is_told_of_no_rule_in_shadow(database: str) -> None:
    async with transaction() as db:
        one = await somebody(db)
        hidden = await a_rule(db, one.server, "7999", state="shadow")
        hidden.name, hidden.role_name = "Secret drop of May", "Secret role"
        db.add(hidden)
    server_id = one.server.id or 0
    async with transaction() as db:
        shown = (await views.of_servers(db, [server_id]))[server_id]
        seen = await explain.own(db, one.actor, server_id)
        report = await recheck_report.report_since(db, one.actor, server_id, frozenset())
    assert "Secret" not in str(sentences.rules(shown))
    told = {"why": str(sentences.why(seen)), "recheck": str(sentences.outcome(report, "Looked again"))}
    assert {name: "Secret" in text for name, text in told.items()} == {"why": False, "recheck": False}, told
