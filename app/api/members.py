"""A server's members for those who run it, and why each has or lacks a role."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query

from app.api.requests.caller import Caller
from app.api.requests.shapes import AcceptedAnswer, ApiAnswer, PathId, Text
from gateways import gateways
from models import transaction
from services.servers import explain, member_list
from services.servers.member_list import MembersPage
from services.triggers import rechecks

router = APIRouter(prefix="/servers/{server_id}/members", tags=["members"])


class MemberRoleAnswer(ApiAnswer):
    """A role that rules are about, and whether the member has it."""

    role_id: str
    role_name: str
    role_color: str
    held: bool
    granted_by_us: bool


class MemberAnswer(ApiAnswer):
    """A member; wallets are shortened, and empty without the member's consent for this server."""

    discord_id: str
    name: str
    avatar_url: str | None
    verified: bool
    wallet_count: int
    wallets: list[str]
    roles: list[MemberRoleAnswer]


class MembersAnswer(ApiAnswer):
    """One page of the members; `total` counts all that the query finds."""

    members: list[MemberAnswer]
    page: int
    page_size: int
    total: int


class RequirementAnswer(ApiAnswer):
    """One requirement: what is needed, what was last seen, and by whom and when."""

    text: str
    needed: int
    held: int | None
    wallet: str | None
    chain: str
    block: int | None
    source: str | None
    observed_at: datetime | None
    outcome: str
    reason: str | None


class RuleWhyAnswer(ApiAnswer):
    """What one rule says of the member: `yes`, `no` or `unknown`."""

    id: int
    name: str
    state: str
    outcome: str
    requirements: list[RequirementAnswer]


class RoleWhyAnswer(ApiAnswer):
    """One role, what its rules say, and what happens next."""

    role_id: str
    role_name: str
    rules: list[RuleWhyAnswer]
    held: bool
    granted_by_us: bool
    next: str


class WhyAnswer(ApiAnswer):
    """Every role that a rule or the ledger names for the member."""

    discord_id: str
    name: str
    roles: list[RoleWhyAnswer]
    protected: bool


@router.get("")
async def of_server(
    caller: Caller, server_id: PathId, query: Text = "", page: Annotated[int, Query(ge=1, le=1_000_000)] = 1
) -> MembersAnswer:
    """The members in the order of their names; `query` is part of a name or a whole Discord id."""
    async with transaction() as db:
        found = await member_list.list_members(db, gateways(), caller, server_id, query, page)
    return members_answer(found)


def members_answer(found: MembersPage) -> MembersAnswer:
    """A page as it goes over the wire. Members share what their roles look like, so each look is checked once."""
    looks = {id(role): role for member in found.members for role in member.roles}
    roles = {number: MemberRoleAnswer.model_validate(role) for number, role in looks.items()}
    members = [
        MemberAnswer(
            discord_id=member.discord_id,
            name=member.name,
            avatar_url=member.avatar_url,
            verified=member.verified,
            wallet_count=member.wallet_count,
            wallets=list(member.wallets),
            roles=[roles[id(role)] for role in member.roles],
        )
        for member in found.members
    ]
    return MembersAnswer(members=members, page=found.page, page_size=found.page_size, total=found.total)


@router.post("/{discord_id}/recheck", status_code=202)
async def recheck(caller: Caller, server_id: PathId, discord_id: Text) -> AcceptedAnswer:
    """Look at one member again, soon."""
    async with transaction() as db:
        await rechecks.of_member(db, gateways(), caller, server_id, discord_id)
    return AcceptedAnswer(message="This member is being checked again.")


@router.get("/{discord_id}/why")
async def why(caller: Caller, server_id: PathId, discord_id: Text) -> WhyAnswer:
    """Why the member has or lacks each role, from the rules, the ledger and the newest readings."""
    async with transaction() as db:
        return WhyAnswer.model_validate(await explain.why(db, gateways(), caller, server_id, discord_id))
