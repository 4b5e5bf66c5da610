"""A server's members, for people who run it, and why each has or lacks a role."""

from app.api.requests.caller import Caller
from app.api.requests.routers import calls
from app.api.requests.shapes import AcceptedAnswer, PageNumber, PathId, Text
from gateways import gateways
from locales import _
from models import transaction
from services.servers import explain, member_list
from services.servers.explain import MemberWhy
from services.servers.member_list import MembersPage
from services.triggers import rechecks

router = calls("/servers/{server_id}/members", tags=["members"])


@router.get("")
async def list_members(caller: Caller, server_id: PathId, query: Text = "", page: PageNumber = 1) -> MembersPage:
    """Return the members by name; `query` is part of a name or a whole Discord id.

    A member who joins or leaves moves the pages after their own; `members.csv` has each member once.
    """
    async with transaction() as db:
        return await member_list.list_members(db, gateways(), caller, server_id, query, page)


@router.post("/{discord_id}/recheck", status_code=202)
async def recheck_member(caller: Caller, server_id: PathId, discord_id: Text) -> AcceptedAnswer:
    """Queue one member to be checked again soon."""
    async with transaction() as db:
        await rechecks.of_member(db, gateways(), caller, server_id, discord_id)
    return AcceptedAnswer(message=_("This member is being checked again."))


@router.get("/{discord_id}/why")
async def explain_member(caller: Caller, server_id: PathId, discord_id: Text) -> MemberWhy:
    """Return why the member has or lacks each role, from the rules, the ledger and the newest readings."""
    async with transaction() as db:
        return await explain.why(db, gateways(), caller, server_id, discord_id)
