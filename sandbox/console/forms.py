"""The console's forms, each named after the control call that it makes."""

from collections.abc import Iterable
from html import escape
from typing import Any

from sandbox.faults import KINDS, TARGETS


def all_forms(world: dict[str, Any]) -> str:
    """Every form of the console."""
    guilds = [guild["name"] for guild in world["guilds"]]
    users = [user["username"] for user in world["users"]]
    roles = sorted(
        {
            role["name"]
            for guild in world["guilds"]
            for role in guild["roles"]
            if not role["managed"] and role["position"]
        }
    )
    return (
        '<div class="grid">'
        + _form("Bot", "guilds", [_choice("guild", guilds), _choice("action", ["add_bot", "kick_bot"])])
        + _form(
            "Member",
            "members",
            [
                _choice("guild", guilds),
                _choice("user", users),
                _choice("action", ["add_role", "remove_role", "join", "leave"]),
                _choice("role", roles),
            ],
        )
        + _transfer(world)
        + _memo(world)
        + _form("Fault", "faults", [_choice("target", TARGETS), _choice("kind", KINDS), _field("seconds", "60")])
        + _form("End all faults", "faults", [])
        + _form("Put everything back to the start", "reset", [])
        + "</div>"
    )


def _transfer(world: dict[str, Any]) -> str:
    chains: dict[str, Any] = world["chains"]
    if not chains:
        return ""
    contracts = {
        f"{chain} {collection['contract']}": f"{chain}: {collection['name']}"
        for chain, known in chains.items()
        for collection in known["collections"]
    }
    wallets = {user["wallets"]["evm"]: f"{user['username']} (EVM)" for user in world["users"]}
    wallets |= {user["wallets"]["solana"]: f"{user['username']} (Solana)" for user in world["users"]}
    fields = [
        _options("collection", contracts),
        _field("token_id", ""),
        _options("from", wallets),
        _options("to", wallets),
    ]
    return _form("Transfer an NFT", "chains/{chain}/transfer", fields)


def _memo(world: dict[str, Any]) -> str:
    if "solana" not in world["chains"]:
        return ""
    wallets = {user["wallets"]["solana"]: user["username"] for user in world["users"]}
    return _form("Sign a memo on Solana", "chains/solana/send", [_options("from", wallets), _field("memo", "")])


def _form(title: str, path: str, fields: Iterable[str]) -> str:
    return (
        f'<section class="card"><h2>{escape(title)}</h2><form method="post" action="/console/do/{path}">'
        f"{''.join(fields)}<button>{escape(title)}</button></form></section>"
    )


def _choice(name: str, values: Iterable[str]) -> str:
    return _options(name, {value: value for value in values})


def _options(name: str, labels: dict[str, str]) -> str:
    options = "".join(f'<option value="{escape(value)}">{escape(label)}</option>' for value, label in labels.items())
    return f'<select name="{name}" aria-label="{name}">{options}</select>'


def _field(name: str, value: str) -> str:
    return f'<input name="{name}" aria-label="{name}" placeholder="{name}" value="{escape(value)}">'
