"""What a member's re-check reports when Discord's events come late."""

from sqlmodel import select

from models import Grant, Member, transaction
from services.core import audit
from services.servers import recheck_report
from tests.services.privacy.test_preferences import somebody


async def test_a_late_event_hides_no_role_that_is_taken_meanwhile(database: str) -> None:
    async with transaction() as db:
        one = await somebody(db)
        member = (await db.exec(select(Member).where(Member.discord_id == one.actor.discord_id))).one()
        member.roles = []  # the event of an earlier removal, stored after our record of the role
        db.add(member)
    server_id = one.server.id or 0
    async with transaction() as db:
        before = await recheck_report.held_role_ids(db, one.actor, server_id)
        report = await recheck_report.report_since(db, one.actor, server_id, before)
        assert [[line.name for line in part] for part in (report.stays, report.removed)] == [["Role"], []]
        await db.delete((await db.exec(select(Grant))).one())
        await db.flush()
        report = await recheck_report.report_since(db, one.actor, server_id, before)
        assert [[line.name for line in part] for part in (report.stays, report.removed)] == [[], ["Role"]]


async def test_a_late_event_shows_no_role_that_is_taken_already(database: str) -> None:
    async with transaction() as db:
        one = await somebody(db)
    server_id = one.server.id or 0
    async with transaction() as db:
        before = await recheck_report.held_role_ids(db, one.actor, server_id)
        (grant,) = (await db.exec(select(Grant))).all()
        member = (await db.exec(select(Member).where(Member.discord_id == one.actor.discord_id))).one()
        member.roles = [grant.role_id]  # the event of the giving, stored after our record of the removal
        db.add(member)
        taken = audit.line("role.taken", server_id=server_id, subject=one.actor.discord_id, role_id=grant.role_id)
        await audit.record(db, taken)
        await db.delete(grant)
        await db.flush()
        report = await recheck_report.report_since(db, one.actor, server_id, before)
        assert [[line.name for line in part] for part in (report.stays, report.removed)] == [[], ["Role"]]
