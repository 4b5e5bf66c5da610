"""Check with reads alone that the real providers answer as the product expects: `python -m app.live_check`.

Only the operator can run it, because it needs the operator's keys. The product's own clients read the answers, and
they reject any unexpected shape. What the nodes support is stored for the product's processes.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from sqlalchemy.exc import DBAPIError

from app.supervisor.installed import check_of
from app.supervisor.system import escape_output
from gateways import Gateways, close_gateways, gateways
from gateways.chains import catalogue
from gateways.chains.catalogue import CHAINS
from gateways.chains.read_point import ReadPoint
from gateways.evm.rpc.block_ranges import WIDEST_SPAN
from gateways.evm.rpc.node_limits import NodeLimits
from gateways.transport.errors import NotThere, ProviderError, ProviderRefused, Unauthorized
from models import use
from services.guilds import members_intent
from services.guilds.gateway import identifies
from services.health import readiness
from services.runtime import node_limit_sharing, rate_limits
from settings import CALLBACK_PATH, ROOT, Settings, SettingsError, settings

NOBODY = "0x000000000000000000000000000000000000dead"
NOBODY_ON_SOLANA = "1nc1nerator11111111111111111111111111111111"
ODD_CODE = "not-a-code-of-anybody"
BLOCKS = 5

Check = Callable[[], Awaitable[str]]


class Wrong(Exception):
    """Raised when a provider answered but something is not as required; the text says what to do."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check; `text` is what was found, or what went wrong."""

    name: str
    good: bool
    text: str


async def ask_all(outside: Gateways, chosen: Settings) -> list[CheckResult]:
    """Run every check in order and return the results."""
    checks: list[tuple[str, Check]] = [
        ("Discord: the bot's token", lambda: _bot(outside)),
        ("Discord: the application", lambda: _application(outside, chosen)),
        ("Discord: client id and secret", lambda: _secret(outside, chosen)),
        ("Discord: the bot's servers", lambda: _guilds(outside)),
        ("Discord: the bot's connections", lambda: _connections(outside)),
        ("OpenSea: a profile", lambda: _profile(outside)),
    ]
    if chosen.redis_url:
        checks.append(("Redis", _redis))
    for chain in CHAINS:
        for place in range(outside.chains.endpoints(chain)):
            checks.append((f"{chain}: node {place + 1}", _node(outside, chain, place)))
            if CHAINS[chain].family == "evm":
                checks.append((f"{chain}: node {place + 1} gives", _limits(outside, chain, place)))
    return [await _asked(name, check) for name, check in checks]


async def _asked(name: str, check: Check) -> CheckResult:
    try:
        return CheckResult(name, True, await check())
    except (ProviderError, Wrong) as fault:
        return CheckResult(name, False, str(fault))


async def _bot(outside: Gateways) -> str:
    bot = await outside.discord.me()
    if not bot.bot:
        raise Wrong("The token is a person's, not a bot's.")
    return f"it is {bot.username} ({bot.id})"


async def _application(outside: Gateways, chosen: Settings) -> str:
    found = await outside.discord.application()
    if found.id != chosen.discord_client_id:
        raise Wrong(f"The bot's token belongs to the application {found.id}, DISCORD_CLIENT_ID is another.")
    if not found.members_intent and chosen.members_intent != "off":
        raise Wrong(
            "Server Members Intent is off: switch it on on the application's Bot page, or set MEMBERS_INTENT=off to do "
            "without (docs/privileged-intents.md)."
        )
    if found.needs_code_grant:
        raise Wrong("'Requires OAuth2 Code Grant' is on: the bot could not be added. Switch it off on the Bot page.")
    callback = chosen.public_url.rstrip("/") + CALLBACK_PATH
    if found.redirects and callback not in found.redirects:
        raise Wrong(f"Sign-ins could not return: add {callback} on the application's OAuth2 page › Redirects.")
    told = f"Server Members Intent is {'on' if found.members_intent else 'off, as chosen'}"
    return f"{told}, {callback} is known" if found.redirects else f"{told}; see that {callback} is among its redirects"


async def _secret(outside: Gateways, chosen: Settings) -> str:
    """Send an invalid code: Discord refuses it as such only after checking id and secret. Nothing is created."""
    try:
        await outside.oauth.exchange(ODD_CODE, ODD_CODE * 3, chosen.public_url.rstrip("/") + CALLBACK_PATH)
    except Unauthorized:
        raise Wrong("DISCORD_CLIENT_ID and DISCORD_CLIENT_SECRET do not belong together.") from None
    except ProviderRefused as refused:
        if "invalid_grant" in str(refused):
            return "they belong together"
        raise
    raise Wrong("Discord accepted a code that it never issued.")


async def _guilds(outside: Gateways) -> str:
    guilds = await outside.discord.bot_guilds()
    if not guilds:
        return "it is in none yet"
    bot, first = await outside.discord.me(), guilds[0].id
    roles = await outside.discord.roles(first)
    own = await outside.discord.member(first, bot.id)
    users = members_intent.review_warning(sum(guild.members for guild in guilds))
    read = f"it is in {len(guilds)}; of the first, {len(roles)} roles and its own {len(own.roles)} were read"
    return f"{read}. {users}" if users else read


async def _connections(outside: Gateways) -> str:
    found = await outside.discord.session_starts()
    if found.remaining <= identifies.KEPT_BACK:
        hours = round(found.reset_after / 3600)
        raise Wrong(f"Only {found.remaining} of {found.total} new connections are left for {hours} hours; see its log.")
    return f"{found.remaining} of {found.total} are left today; Discord recommends shards: {found.shards}"


async def _profile(outside: Gateways) -> str:
    try:
        profile = await outside.opensea.profile(NOBODY)
    except NotThere:
        return "the key is accepted; nobody has this profile"
    if profile.address.lower() != NOBODY:
        raise Wrong("OpenSea answered with another account than the one asked for.")
    return "a profile was read"


async def _redis() -> str:
    if not await rate_limits.redis_answers():
        raise Wrong("It does not answer at REDIS_URL: no screen would get beyond Loading.")
    return "it answers"


def _node(outside: Gateways, chain: str, place: int) -> Check:
    async def ask() -> str:
        head = await outside.chains.head(chain, place)
        if CHAINS[chain].family == "evm":
            first = max(0, head.block - BLOCKS)
            moved = (await outside.transfers.of_contracts(chain, [NOBODY], first, head.block, place)).transfers
            return f"the right chain, its newest block is {head.block}; its logs were read ({len(moved)} transfers)"
        held = await outside.chains.anything(chain, [NOBODY_ON_SOLANA], at=ReadPoint(place))
        return f"the right network, its newest slot is {head.block}; the index of assets answers at {held.block}"

    return ask


def _limits(outside: Gateways, chain: str, place: int) -> Check:
    async def ask() -> str:
        return limits_said(await outside.node_probe.limits(chain, place))

    return ask


def limits_said(found: NodeLimits) -> str:
    """Describe what a node supports; a limit that could not be found out is described as unknown."""
    blocks = f"logs of {found.log_blocks or WIDEST_SPAN:,} block{'' if found.log_blocks == 1 else 's'} at a time"
    if found.logs_need_address:
        blocks += ", of named contracts only"
    batch = f"batches of {found.batch}" if found.batch != 1 else "no batches"
    override = {True: "state override", False: "no state override", None: "unknown whether state override"}
    finalized = {True: "the finalized block", False: "no finalized block", None: "unknown whether a finalized block"}
    states = "unknown how much old state"
    if found.states is not None:
        states = f"the state of the last {found.states:,} blocks" if found.states else "no state but the newest"
    said = (blocks, batch if found.batch else "batches", override[found.state_override], states)
    return "; ".join((*said, finalized[found.finalized]))


async def store_limits() -> str:
    """Store what the nodes support, for later starts of the product's processes; return a sentence about the result.

    Needs a running product, or DATABASE_URL.
    """
    try:
        await use(readiness.running_database())
        await node_limit_sharing.exchange()
    except readiness.NotRunning:
        return "What the nodes give is not kept: Holdfast does not run here, and DATABASE_URL is not set."
    except DBAPIError as fault:
        return f"What the nodes give is not kept: {str(fault.orig).splitlines()[0]}"
    finally:
        await use(None)
    return "What the nodes give is kept: processes that start from now on begin with it."


async def _run() -> tuple[list[CheckResult], str]:
    try:
        return await ask_all(gateways(), settings()), await store_limits()
    finally:
        await rate_limits.forget()
        await close_gateways()


def refusal(reason: str) -> str:
    """Return what is printed where the settings are refused."""
    return f"{reason}\n`{check_of(ROOT, 'doctor')}` says how to get each thing."


def main() -> int:
    """Print the result of every check; return 0 if all succeeded, otherwise 1."""
    escape_output()
    try:
        catalogue.check()
        where = "the sandbox" if settings().sandbox else "the real providers"
    except SettingsError as fault:
        print(refusal(str(fault)))
        return 1
    print(f"Asking {where}, reading only.")
    results, kept = asyncio.run(_run())
    for one in results:
        print(f"{'ok' if one.good else 'WRONG':<6} {one.name}: {one.text}")
    off = [chain for chain in CHAINS if not settings().rpc.get(chain)]
    if off:
        print(f"off    Without a node, and so not asked: {', '.join(off)}")
    print(kept)
    return 0 if all(one.good for one in results) else 1


if __name__ == "__main__":
    sys.exit(main())
