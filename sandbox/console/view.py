"""What the console shows: people, servers with members and roles, running faults, what was done and why."""

from html import escape
from typing import Any

from sandbox.house import Sandbox

ENTRIES = 12
MESSAGES = 5


def said(text: str | None) -> str:
    """What the last form answered."""
    return f'<p class="card" role="status">{escape(text)}</p>' if text else ""


def live(sandbox: Sandbox, world: dict[str, Any]) -> str:
    """The part that renews itself."""
    guilds = "".join(_guild(guild) for guild in world["guilds"])
    return f'{_faults(sandbox)}<div class="grid">{guilds}</div>{_activity(sandbox)}'


def _faults(sandbox: Sandbox) -> str:
    running = sandbox.faults.running()
    chips = "".join(
        f'<span class="chip">{escape(target)}: {escape(kind)}, {left:.0f} s</span>'
        for target, (kind, left) in running.items()
    )
    return f"<p>{chips}</p>" if chips else '<p class="dim">No fault is running.</p>'


def _guild(guild: dict[str, Any]) -> str:
    names = {role["id"]: role["name"] for role in guild["roles"]}
    members = "".join(
        f"<tr><td>{escape(member['nick'] or member['username'])}</td><td>{_chips(member, names)}</td></tr>"
        for member in guild["members"]
    )
    order = " · ".join(escape(role["name"]) for role in guild["roles"])
    bot = "bot added" if guild["bot_added"] else "without the bot"
    channels = "".join(_channel(channel) for channel in guild["channels"])
    return (
        f'<section class="card" data-guild="{guild["id"]}"><h2>{escape(guild["name"])}</h2>'
        f'<p class="dim">{bot} · {guild["id"]}</p><table>{members}</table>'
        f'<p class="dim">Roles from the bottom: {order}</p>{channels}</section>'
    )


def _chips(member: dict[str, Any], names: dict[str, str]) -> str:
    chips: list[str] = [str(names.get(role_id, role_id)) for role_id in member["roles"]]
    chips += ["pending"] if member["pending"] else []
    return "".join(f'<span class="chip">{escape(chip)}</span>' for chip in chips)


def _channel(channel: dict[str, Any]) -> str:
    lines = "".join(
        f"<li><b>{escape(message['author']['username'])}</b> {escape(_summary(message))}</li>"
        for message in channel["messages"][-MESSAGES:]
    )
    return f'<p class="dim">#{escape(channel["name"])}</p>' + (f"<ul>{lines}</ul>" if lines else "")


def _summary(message: dict[str, Any]) -> str:
    titles = [embed.get("title") or embed.get("description") or "" for embed in message["embeds"]]
    buttons = [f"[{each.get('label', '…')}]" for row in message["components"] for each in row.get("components", [])]
    return " ".join([message["content"], *titles, *buttons])


def people(world: dict[str, Any]) -> str:
    """Everybody, their profiles, and what they held when the page was made."""
    rows = "".join(
        f"<tr><td>{escape(user['username'])}</td>"
        f"<td>{_profile('opensea', 'OpenSea', user['wallets']['evm'])}</td>"
        f"<td>{_profile('magiceden', 'Magic Eden', user['wallets']['solana'])}</td>"
        f"<td>{_holdings(world, set(user['wallets'].values()))}</td></tr>"
        for user in world["users"]
    )
    return f'<section class="card"><h2>People</h2><table>{rows}</table></section>'


def _holdings(world: dict[str, Any], wallets: set[str]) -> str:
    """What the wallets hold, folded up, as in "base: Lantern Foxes 1, 2"."""
    lower = {wallet.lower() for wallet in wallets}
    lines: list[str] = []
    for chain, known in world["chains"].items():
        for collection in known["collections"]:
            ids = [t["id"] for t in collection["tokens"] if lower & {owner.lower() for owner in t["owners"]}]
            if ids:
                lines.append(f"<li>{escape(chain)}: {escape(collection['name'])} {escape(', '.join(ids))}</li>")
    if not lines:
        return "holds nothing"
    return f"<details><summary>holds of {len(lines)} collections</summary><ul>{''.join(lines)}</ul></details>"


def _profile(path: str, name: str, address: str) -> str:
    return f'<a href="/{path}/{address}">{name} profile</a> <code>{address}</code>'


def _activity(sandbox: Sandbox) -> str:
    world = sandbox.discord.world
    entries = list(world.audit.values())[-ENTRIES:]
    rows = "".join(
        f"<tr><td>{escape(_name(sandbox, entry.actor_id))}</td><td>{escape(entry.action)}</td>"
        f"<td>{escape(_name(sandbox, entry.target))}</td><td>{escape(entry.reason or '')}</td></tr>"
        for entry in reversed(entries)
    )
    return f'<section class="card"><h2>Audit log</h2><table>{rows}</table></section>' if rows else ""


def _name(sandbox: Sandbox, identity: str) -> str:
    user = sandbox.discord.world.users.get(identity)
    return user.username if user else identity
