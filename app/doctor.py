"""Check what a live start with your own Discord application still needs: `python -m app.doctor`."""

import asyncio
import contextlib
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import inf, isfinite
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from app.postgres.addresses import is_unreadable
from app.supervisor.installed import check_of, command_of
from app.supervisor.processes import tilde_warning
from app.supervisor.system import escape_output
from gateways.chains import catalogue
from gateways.chains.catalogue import CHAINS, OWN, evm_chains
from gateways.chains.chain_file import ChainsRefused
from gateways.chains.node_providers import domain_of
from gateways.evm.rpc.pool import NodePool
from gateways.provider_plans import FREE_BY_DOMAIN
from gateways.transport.errors import ProviderError
from locales import listed
from models.db import rights
from services.guilds.gateway import identifies
from services.health.following_cost import calls_a_day
from services.roles import writer_lease
from setting_checks import as_browsers_write_it, bot_of, distinct, is_address, is_readable, set_twice
from settings import (
    CALLBACK_PATH,
    ENV_FILE,
    LIVE_CREDENTIALS,
    LOOPBACK,
    OF_A_CHAIN,
    ROOT,
    SHORTEST_KEY,
    Settings,
    SettingsError,
    environment,
    load,
    newest_migration,
    version,
)

PORTAL = "https://discord.com/developers/applications"
FEWEST_LETTERS = 12
RIGHT, ADVICE, LACKING = "ok", "advice", "lacking"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: `ok`, `advice` (the product starts without it) or `lacking`, with the finding and how to fix it."""

    level: str
    name: str
    text: str
    how: str = ""


def examine(values: Mapping[str, str]) -> list[Finding]:
    """Return the findings about a live start from the settings alone (upper-case names, empty ones left out)."""
    return [
        *_application(values), _token(values), _address(values), *_bind(values), _proxy(values), _redirect(values),
        _intent(values), _key(values), *_providers(values), *_chains_file(values), *_chains(values), *_pace(values),
        *_names(values), *_misspelt(values), _sandbox(values),
    ]  # fmt: skip


def _application(values: Mapping[str, str]) -> Iterator[Finding]:
    identity, secret = values.get("DISCORD_CLIENT_ID", ""), values.get("DISCORD_CLIENT_SECRET", "")
    if identity.isdigit() and 17 <= len(identity) <= 20:
        yield Finding(RIGHT, "Discord application", "DISCORD_CLIENT_ID is set.")
    else:
        text = "DISCORD_CLIENT_ID is not an id (17 to 20 digits)." if identity else "DISCORD_CLIENT_ID is not set."
        how = f"Make an application at {PORTAL}; its OAuth2 page shows the Client ID."
        yield Finding(LACKING, "Discord application", text, how)
    if secret:
        yield Finding(RIGHT, "Client secret", "DISCORD_CLIENT_SECRET is set.")
    else:
        how = "On the application's OAuth2 page: Reset Secret, and copy what appears."
        yield Finding(LACKING, "Client secret", "DISCORD_CLIENT_SECRET is not set.", how)


def _misspelt(values: Mapping[str, str]) -> Iterator[Finding]:
    """Yield advice for each variable that nothing reads, and whose name is almost that of a setting."""
    names = [name.upper() for name in Settings.model_fields]
    for name in sorted(set(values) - set(names)):
        if OF_A_CHAIN.fullmatch(name.lower()) is None and (meant := get_close_matches(name, names, 1, cutoff=0.88)):
            yield Finding(ADVICE, "Names of settings", f"Nothing reads {name}.", f"Is {meant[0]} meant?")


def _token(values: Mapping[str, str]) -> Finding:
    token = values.get("DISCORD_BOT_TOKEN", "")
    how = "On the application's Bot page: Reset Token, and copy what appears. It is shown once."
    if not token:
        return Finding(LACKING, "Bot token", "DISCORD_BOT_TOKEN is not set.", how)
    bot = bot_of(token)
    if bot is None:
        return Finding(LACKING, "Bot token", "DISCORD_BOT_TOKEN does not look like a bot's token.", how)
    return Finding(RIGHT, "Bot token", f"DISCORD_BOT_TOKEN is set, of the bot {bot}.")


def _address(values: Mapping[str, str]) -> Finding:
    name, url = "Public address", values.get("PUBLIC_URL", "")
    how = "Set PUBLIC_URL to what people type, https://…, with a proxy for TLS in front (docs/operating.md)."
    if not url:
        return Finding(LACKING, name, "PUBLIC_URL is not set, so only this machine could sign in.", how)
    if not is_readable(url):
        return Finding(LACKING, name, "PUBLIC_URL is not an address.", how)
    parts = urlsplit(url)
    if parts.hostname in LOOPBACK:
        return Finding(LACKING, name, f"PUBLIC_URL is {url}, which only this machine can open.", how)
    if parts.scheme != "https":
        return Finding(LACKING, name, f"PUBLIC_URL is {url}, so cookies would travel unencrypted.", how)
    return Finding(RIGHT, name, f"PUBLIC_URL is {url}.")


def _bind(values: Mapping[str, str]) -> Iterator[Finding]:
    bind = values.get("BIND") or "127.0.0.1"
    if bind not in LOOPBACK and not _is_image():  # an image sets it, because what it publishes decides who gets in
        text = f"BIND is {bind}: anybody who reaches the port bypasses the proxy, its TLS and its limits."
        yield Finding(ADVICE, "Interface", text, "Leave BIND unset, or let only the proxy reach the port (firewall).")


def _proxy(values: Mapping[str, str]) -> Finding:
    if values.get("TRUSTED_PROXIES"):
        return Finding(RIGHT, "Proxy", "TRUSTED_PROXIES names the proxy.")
    beside = "the gateway of the container's network (`docker network inspect`)" if _is_image() else "127.0.0.1"
    how = f"Set TRUSTED_PROXIES to the proxy's address; {beside} for one on this machine."
    text = "TRUSTED_PROXIES is not set: behind a proxy everybody counts as one address and shares its limits."
    return Finding(ADVICE, "Proxy", text, how)


def _redirect(values: Mapping[str, str]) -> Finding:
    url = as_browsers_write_it(values.get("PUBLIC_URL", "")) or "<PUBLIC_URL>"
    how = f"On the application's OAuth2 page › Redirects, exactly: {url}{CALLBACK_PATH}"
    return Finding(ADVICE, "Redirect URI", f"Discord must know where sign-ins return; {_live_check()} looks.", how)


def _intent(values: Mapping[str, str]) -> Finding:
    name, chosen = "Server Members Intent", values.get("MEMBERS_INTENT", "auto")
    how = "On the application's Bot page: Privileged Gateway Intents › Server Members Intent."
    if chosen == "off":
        return Finding(RIGHT, name, "MEMBERS_INTENT is off: the bot does not ask for it.")
    if chosen == "on":
        text = f"Without this switch Discord closes the bot's connection (4014) and it waits; {_live_check()} looks."
        return Finding(ADVICE, name, text, how)
    text = f"Without this switch the bot goes on without it, and knows fewer people; {_live_check()} looks."
    return Finding(ADVICE, name, text, f"{how} docs/privileged-intents.md has what is different.")


def _is_image() -> bool:
    return command_of(ROOT, "doctor") is None


def _live_check() -> str:
    return f"`{check_of(ROOT, 'live-check')}`"


def _key(values: Mapping[str, str]) -> Finding:
    key = values.get("SECRET_KEY") or values.get("SESSION_SECRET") or ""
    how = 'Set SECRET_KEY to what this prints: python3 -c "import secrets; print(secrets.token_urlsafe(48))"'
    if not key:
        return Finding(LACKING, "Secret key", "SECRET_KEY is not set.", how)
    if len(key) < SHORTEST_KEY or len(set(key)) < FEWEST_LETTERS:
        return Finding(LACKING, "Secret key", "SECRET_KEY can be guessed: it is short or repeats itself.", how)
    if key in {values.get(name) for name in LIVE_CREDENTIALS}:
        return Finding(LACKING, "Secret key", "SECRET_KEY is one of Discord's own secrets.", how)
    return Finding(RIGHT, "Secret key", "SECRET_KEY is long and random enough.")


def _providers(values: Mapping[str, str]) -> Iterator[Finding]:
    if values.get("OPENSEA_API_KEY"):
        yield Finding(RIGHT, "OpenSea key", "OPENSEA_API_KEY is set.")
    else:
        text = "OPENSEA_API_KEY is not set: nobody can verify a wallet by its bio, and traits come from metadata alone."
        how = (
            "Take a key from OpenSea's developer portal (https://docs.opensea.io/reference/api-keys); the one that its "
            "API gives at once ends after seven days."
        )
        yield Finding(LACKING, "OpenSea key", text, how)
    if values.get("MONITOR_TOKEN"):
        yield Finding(RIGHT, "Monitors", "MONITOR_TOKEN is set.")
    else:
        how = "Set MONITOR_TOKEN to a long random text, and send it as Authorization: Bearer …"
        yield Finding(ADVICE, "Monitors", "Without MONITOR_TOKEN nobody sees /health/deep and /metrics.", how)


def _names(values: Mapping[str, str]) -> Iterator[Finding]:
    """Yield advice if no contact address is set, or if the setup page would show the callback URL of an example."""
    if not values.get("CONTACT_ADDRESS"):
        text = "CONTACT_ADDRESS is not set: the contact page and the policies name no e-mail address."
        yield Finding(ADVICE, "Contact address", text, "Set CONTACT_ADDRESS to an address that somebody reads.")
    shown = values.get("OPERATOR_PAGES", "").lower() not in {"0", "false", "no", "off"}
    if shown and not values.get("STAGING_URL"):
        text = "STAGING_URL is not set: the setup page shows the callback URL of an example."
        yield Finding(ADVICE, "Staging address", text, "Set STAGING_URL, or leave the page out with OPERATOR_PAGES=0.")


def _chains_file(values: Mapping[str, str]) -> Iterator[Finding]:
    """Yield whether CHAINS_FILE is valid, which chains it adds, and which settings name an unknown chain."""
    how = "docs/operating.md has an example of the file."
    try:
        catalogue.check()
    except ChainsRefused as fault:
        yield Finding(LACKING, "Chains of your own", str(fault), how)
    for key, chain in CHAINS.items():
        if key not in OWN:
            text = f"CHAINS_FILE adds {chain.title} ({key}, chain id {chain.chain_id})."
            yield Finding(RIGHT, "Chains of your own", text)
    named = {name: found[2] for name in values if (found := OF_A_CHAIN.fullmatch(name.lower()))}
    for name, key in named.items():
        if key not in CHAINS:
            yield Finding(ADVICE, "Chains of your own", f"{name} is set, and no chain is called {key}.", how)


async def added_nodes(values: Mapping[str, str]) -> list[Finding]:
    """Ask each node of the chains that CHAINS_FILE adds whether it serves that chain, and for its newest block."""
    given = {chain: values.get(f"RPC_{chain.upper()}", "").split() for chain in CHAINS if chain not in OWN}
    urls = {chain: distinct(tuple(filter(is_readable, one))) for chain, one in given.items()}
    pool = NodePool(urls)
    found: list[Finding] = []
    try:
        for node in pool.all():
            name = f"Chain {node.chain.key}"
            try:
                head = await node.head()
            except ProviderError as fault:
                how = f"Look at chain_id in CHAINS_FILE, and at RPC_{node.chain.key.upper()}."
                found.append(Finding(LACKING, name, f"{fault}.", how))
            else:
                text = f"{node.name} serves chain {node.chain.chain_id}; its newest block is {head.block}."
                found.append(Finding(RIGHT, name, text))
    finally:
        await pool.close()
    return found


def _chains(values: Mapping[str, str]) -> Iterator[Finding]:
    nodes = {chain: values.get(f"RPC_{chain.upper()}", "").split() for chain in CHAINS}
    if not any(nodes.values()):
        how = "Set RPC_… to the JSON-RPC addresses of nodes, two independent ones a chain (docs/settings.md)."
        yield Finding(LACKING, "Nodes", "No chain has a node, so no rule can be made.", how)
    for chain, given in nodes.items():
        name, variable = f"Chain {chain}", f"RPC_{chain.upper()}"
        urls = distinct(tuple(given))
        if len(urls) < len(given):
            text = f"{variable} has an address twice: that is one node, which cannot confirm its own answers."
            yield Finding(ADVICE, name, text, "Remove it, or take the address of another node.")
        if not urls:
            yield Finding(ADVICE, name, f"{variable} is not set: the chain is off.", f"Set {variable} to its nodes.")
        elif wrong := [url for url in urls if not is_address(url)]:
            how = "Separate several by spaces; each is an https:// address."
            yield Finding(LACKING, name, f"{variable} has {len(wrong)} entries that are not addresses.", how)
        elif len(urls) == 1:
            text = (
                f"{variable} has one node: it confirms a removal itself at a later block, so only a few members a day "
                "lose a role without an admin."
            )
            how = "Add a second, independent node. It confirms removals, and is there when one fails."
            yield Finding(ADVICE, name, text, how)
        elif shared := _shared_provider(urls):
            text = f"{variable} has several nodes of {shared}: they may fail, or err, together."
            yield Finding(
                ADVICE, name, text, "Take the second node from another provider: those of one provider count as one."
            )
        else:
            yield Finding(RIGHT, name, f"{variable} has {len(urls)} nodes.")


def _shared_provider(urls: Sequence[str]) -> str | None:
    """Return the domain or address of a provider that runs more than one of the nodes; None if there is none."""
    owners = Counter(domain_of(_host(url)) for url in urls)
    return next((owner for owner, count in owners.items() if count > 1), None)


def _host(url: str) -> str:
    """Return the host of an address; an empty text if it has none or cannot be read."""
    return (urlsplit(url).hostname or "") if is_readable(url) else ""


def _pace(values: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a finding for each free plan that following alone would use up (docs/first-contact.md)."""
    for owner, costs in _following(values).items():
        plan = FREE_BY_DOMAIN[owner]
        spent, allowed = sum(costs.values()), plan.a_day or inf
        if spent <= allowed:
            continue
        chains, dearest = listed(sorted(costs)), max(costs, key=lambda chain: (costs[chain], chain))
        lasting, period = allowed / spent * plan.days, "month" if plan.days > 1 else "day"
        lasts = f"{lasting:.1f} days" if lasting >= 1 else f"{24 * lasting:.1f} hours"
        text = (
            f"If rules name collections on {chains}, following takes {100 * spent / allowed:.0f} % of {plan.title}, "
            f"which would last {lasts} of a {period}."
        )
        how = (
            f"On such a plan set FOLLOW_SECONDS higher, or FOLLOW_SECONDS_{dearest.upper()}=0 for the chain that costs "
            "most, and sweep more often; docs/first-contact.md has what each pace costs."
        )
        yield Finding(ADVICE, f"Pace at {plan.provider}", text, how)
    requests = values.get("SOLANA_FOLLOW_REQUESTS", "1")
    hosts = (_host(url) for url in values.get("RPC_SOLANA", "").split())
    found = sorted({plan.provider for host in hosts if (plan := FREE_BY_DOMAIN.get(domain_of(host)))})
    if found and requests not in {"0", "1"}:
        text = (
            f"A free plan of {' or '.join(found)} is too small for {requests} requests a minute for following Solana."
        )
        how = "On a free plan set SOLANA_FOLLOW_REQUESTS=1; docs/first-contact.md has what it costs."
        yield Finding(ADVICE, "Pace on Solana", text, how)


def _following(values: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """Return what following each EVM chain costs a day, by the provider's domain; a chain's nodes take turns."""
    found: dict[str, dict[str, float]] = {}
    for chain in evm_chains():
        urls = distinct(tuple(values.get(f"RPC_{chain.upper()}", "").split()))
        socket = bool(values.get(f"RPC_WS_{chain.upper()}"))
        for owner, nodes in Counter(domain_of(_host(url)) for url in urls).items():
            if plan := FREE_BY_DOMAIN.get(owner):
                calls = calls_a_day(CHAINS[chain], _seconds(values, chain), plan.log_blocks, socket=socket)
                found.setdefault(owner, {})[chain] = plan.cost(calls) * nodes / len(urls)
    return found


def _seconds(values: Mapping[str, str], chain: str) -> float:
    """Return the seconds between two polls of a chain; 0 for anything but a finite number: settings refuse it."""
    usual = str(Settings.model_fields["follow_seconds"].default)
    pace = values.get(f"FOLLOW_SECONDS_{chain.upper()}") or values.get("FOLLOW_SECONDS") or usual
    try:
        seconds = float(pace)
    except ValueError:
        return 0.0
    return seconds if isfinite(seconds) else 0.0


def env_file(file: Path) -> Iterator[Finding]:
    """Yield advice if other accounts may open the file of the settings, and for each setting that it has twice."""
    if file.exists() and (mode := file.stat().st_mode & 0o777) & 0o077:
        text = f"Other accounts of this machine may open {file} (mode {mode:o}), which has your secrets."
        yield Finding(ADVICE, "Settings file", text, f"chmod 600 {file}")
    for name in set_twice(file) if file.is_file() else []:
        text = f"{file} sets {name} more than once: only the last line counts, even an empty one."
        yield Finding(ADVICE, "Settings file", text, "Remove the others.")


def data_directory(values: Mapping[str, str]) -> Iterator[Finding]:
    """Yield advice if the data lies in a directory that is named `~`."""
    if warning := tilde_warning(Path(values.get("DATA_DIR") or "")):
        yield Finding(ADVICE, "Data", warning)


async def database(url: str) -> Finding:
    """Ask the database whether it keeps session state such as locks and lets us store data; return the finding."""
    how = "Let a pooler such as PgBouncer work in session mode (pool_mode = session), or connect without one."
    try:
        kept = await writer_lease.keeps_sessions(url)
        found = await rights.read(url)
    except psycopg.Error as fault:
        if is_unreadable(fault):
            how = "Set it to postgresql://user:password@host/database, and leave out what other programs add to it."
            return Finding(LACKING, "Database", "DATABASE_URL is not the address of a PostgreSQL.", how)
        reason = (str(fault).splitlines() or ["no answer"])[0]
        return Finding(LACKING, "Database", f"DATABASE_URL does not let us in: {reason}", "Is it running, and right?")
    if not kept:
        text = "DATABASE_URL leads to a pooler in transaction mode: locks and LISTEN are lost between statements."
        return Finding(LACKING, "Database", text, how)
    if found.read_only:
        text = "DATABASE_URL leads to a read-only database, such as a replica: nothing can be stored there."
        return Finding(LACKING, "Database", text, "Name the server that takes writes.")
    if not found.makes_tables:
        text = f"The account {found.account} of DATABASE_URL may not make tables."
        how = f'As an administrator of the database: GRANT CREATE ON SCHEMA public TO "{found.account}"'
        return Finding(LACKING, "Database", text, how)
    if found.others_tables:
        text = f"Tables in the database belong to another account than {found.account}, so no update can change them."
        return Finding(
            LACKING, "Database", text, "Let DATABASE_URL name that account, or give it to this one as a role."
        )
    if found.encoding != "UTF8":
        text = f"The database's encoding is {found.encoding}, which has no place for many people's names."
        return Finding(LACKING, "Database", text, "Create it again with ENCODING 'UTF8'.")
    if found.migration > newest_migration():
        text = f"The database is of a newer version than {version()}: its migration {found.migration} is unknown here."
        return Finding(LACKING, "Database", text, "Install that version, or restore a backup from before it.")
    return Finding(RIGHT, "Database", "DATABASE_URL works, keeps locks and LISTEN, and lets us make tables.")


async def connections(url: str) -> list[Finding]:
    """Return how many new connections of the bot Discord allows today, according to what the bot has stored."""
    with contextlib.suppress(psycopg.Error):
        if (left := await identifies.budget_at(url)) is not None:
            if left.is_scarce:
                how = "A bot that connects again and again has a reason, which its log says."
                return [Finding(ADVICE, "Bot's connections", identifies.warning_text(left), how)]
            return [Finding(RIGHT, "Bot's connections", f"{left.left:,} of {left.total:,} are left today.")]
    return []


def _sandbox(values: Mapping[str, str]) -> Finding:
    if values.get("SANDBOX_URL"):
        how = "Remove SANDBOX_URL from the environment and from .env."
        return Finding(LACKING, "Sandbox", "SANDBOX_URL is set, which makes every start one of the sandbox.", how)
    return Finding(RIGHT, "Sandbox", "SANDBOX_URL is not set.")


def refused() -> Finding | None:
    """Return the product's own error if it refuses to start; None if it starts."""
    try:
        load()
    except SettingsError as fault:
        return Finding(LACKING, "Start", f"Holdfast refuses to start: {fault}", "Fix the settings named above.")
    return None


def main() -> int:
    """Print every finding; return 0 if nothing is lacking, otherwise 1."""
    escape_output()
    values = environment()
    found = [*examine(values), *env_file(ENV_FILE), *data_directory(values)]
    if url := values.get("DATABASE_URL"):
        found += [asyncio.run(database(url)), *asyncio.run(connections(url))]
    found += asyncio.run(added_nodes(values))
    start = refused()
    for one in [*found, *([start] if start else [])]:
        print(f"{one.level:<8} {one.name}: {one.text}")
        if one.how:
            print(f"{'':<8} → {one.how}")
    lacking = sum(one.level == LACKING for one in found) or int(start is not None)
    print(f"\n{conclusion(lacking, refused=start is not None)}")
    return 1 if lacking else 0


def conclusion(lacking: int, *, refused: bool) -> str:
    """Return the last line: how much a live start lacks, and what a start does until then."""
    if lacking == 0:
        return f"Nothing is lacking; {_live_check()} asks the providers themselves."
    counted = f"{lacking} things are" if lacking > 1 else "1 thing is"
    if refused:
        return f"{counted} lacking for a live start, and nothing starts until then."
    now = "uses the sandbox" if load().sandbox else "is live, and works without it as far as it can"
    return f"{counted} lacking for a live start. Until then a start {now}."


if __name__ == "__main__":
    sys.exit(main())
