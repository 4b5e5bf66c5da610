"""Members see no rule in shadow, neither in `/why` nor after a re-check; admins see that it changes nothing."""

from bot.messages import sentences
from models import transaction
from services.rules import views
from services.servers import explain, recheck_report
from tests.services.privacy.test_preferences import somebody
from tests.support.builders import a_rule


async def test_a_member_is_shown_no_rule_in_shadow(database: str) -> None:
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


async def test_an_admin_reads_that_a_rule_in_shadow_changes_nothing(database: str) -> None:
    async with transaction() as db:
        one = await somebody(db)
        await a_rule(db, one.server, "7999", state="shadow")
        await a_rule(db, one.server, "7998", state="paused")
    async with transaction() as db:
        seen = await explain._of(db, one.server.id or 0, one.actor.discord_id, show_wallets=False)
    assert {role.role_id: role.next for role in seen.roles if role.role_id in {"7998", "7999"}} == {
        "7998": "Nothing changes while its rules are paused.",
        "7999": "Nothing changes while its rules are in shadow.",
    }
