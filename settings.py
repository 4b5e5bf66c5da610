"""The settings: read once from the environment and `.env`, and refused when they are incomplete."""

import os
import re
import sys
import tomllib
from functools import cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from string import Template
from types import TracebackType
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from dotenv import dotenv_values
from dotenv.parser import parse_stream
from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from setting_checks import (
    KEY,
    NO_POSTGRESQL,
    REDIS,
    SOCKET,
    SOONEST_LOOK,
    WEB,
    as_browsers_write_it,
    distinct,
    is_a_pace,
    is_address,
    is_an_origin,
    is_postgresql,
    is_readable,
)

ROOT = Path(__file__).resolve().parent
LONGEST_DAYS = 36_500
"""The longest time that a setting takes. PostgreSQL's calendar ends, and beyond it each job would fail."""
OF_A_CHAIN = re.compile(r"(rpc_ws_|rpc_|follow_seconds_)([a-z0-9]+)")
"""Settings that each chain has, in lower case. A chain's key has no underscore."""
SHARDS = re.compile(r"(?:(\d+)-(\d+)/)?(\d+)")
"""A number of shards, or those that one process runs: `0-7/32`."""
SHORTEST_KEY = 32
"""Minimum length of SECRET_KEY in characters. HKDF derives keys from it but does not make a short one hard to guess."""
ENV_FILE = Path(os.environ.get("HOLDFAST_HOME") or ROOT) / ".env"
"""The operator's settings: beside the code, or in the directory where an installed `holdfast` was started."""
SANDBOX = ROOT / "sandbox" / "product.env"
"""The settings of a start against the sandbox. Images and wheels lack it: they start live or not at all."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
CALLBACK_PATH = "/api/auth/discord/callback"
"""Where Discord sends people back to after signing in, below PUBLIC_URL; it is registered in the Developer Portal."""

ADDRESSES = (
    "discord_api_url", "discord_authorize_url", "discord_token_url", "discord_revoke_url", "discord_cdn_url",
    "opensea_api_url", "opensea_url", "alchemy_nft_url", "magiceden_api_url", "magiceden_url", "ipfs_gateway_url",
    "arweave_gateway_url", "solana_names_url",
)  # fmt: skip
"""Settings that are addresses of providers. Braces in one stand for a part of it."""
LINKS = ("support_invite", "hosting_dashboard")
"""Settings that are links on screens; one may lead to a page of our own."""
KEYS = ("discord_client_id", "discord_client_secret", "discord_bot_token", "opensea_api_key", "alchemy_api_key")
"""Settings that providers issued, which requests carry as they are."""
OUR_KEYS = frozenset({"SECRET_KEY", "SESSION_SECRET", "SECRET_KEY_PREVIOUS"})
"""Settings that encrypt what we store."""

# These have to be set together before Holdfast talks to the real Discord.
LIVE_CREDENTIALS = ("DISCORD_CLIENT_ID", "DISCORD_CLIENT_SECRET", "DISCORD_BOT_TOKEN")


@cache
def version() -> str:
    """Return the product's version, which only pyproject.toml contains."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])


def newest_migration() -> str:
    """Return the number of this version's newest migration, with which the name of its file begins."""
    return max(path.name.partition("_")[0] for path in (ROOT / "models/migrations/versions").glob("[0-9]*.py"))


class SettingsError(Exception):
    """Raised when settings are missing or contradict each other; the text says what to do."""


_usual_hook = sys.excepthook


def _say_what_to_do(kind: type[BaseException], fault: BaseException, trace: TracebackType | None) -> None:
    """Print refused settings as their sentence alone, whichever program they end; any other error as usual."""
    if isinstance(fault, SettingsError):
        print(fault, file=sys.stderr)
    else:
        _usual_hook(kind, fault, trace)


# Some modules read the settings when they are imported, before a program could catch the error.
sys.excepthook = _say_what_to_do


class Settings(BaseSettings):
    """One typed field per setting; the environment uses the same names in upper case."""

    # An empty variable counts as unset, in the environment and in `.env`: that is how people switch one off.
    model_config = SettingsConfigDict(env_file=ENV_FILE, env_ignore_empty=True, extra="ignore", frozen=True)

    product_name: str = "Holdfast"
    brand: str = "Holdfast Labs"
    brand_year: int = 2025
    support_invite: str = ""
    contact_address: str = ""
    hosting_dashboard: str = ""
    staging_url: str = "https://staging.holdfast.example"
    operator_pages: bool = True

    port: int = Field(default=3000, ge=1, le=65_535)
    bind: str = "127.0.0.1"
    public_url: str = ""
    trusted_proxies: str = ""
    data_dir: Path = Path("data")
    database_url: str | None = None
    redis_url: str | None = None
    secret_key: SecretStr | None = Field(default=None, validation_alias=AliasChoices("SECRET_KEY", "SESSION_SECRET"))
    secret_key_previous: SecretStr | None = None
    log_format: Literal["text", "json"] = "text"
    monitor_token: SecretStr | None = None

    discord_client_id: str = ""
    discord_client_secret: SecretStr = SecretStr("")
    discord_bot_token: SecretStr = SecretStr("")
    discord_api_url: str = "https://discord.com/api/v10"
    discord_authorize_url: str = "https://discord.com/oauth2/authorize"
    discord_token_url: str = "https://discord.com/api/v10/oauth2/token"
    discord_revoke_url: str = "https://discord.com/api/v10/oauth2/token/revoke"
    discord_cdn_url: str = "https://cdn.discordapp.com"
    members_intent: Literal["auto", "on", "off"] = "auto"
    bot_shards: str = "auto"

    opensea_api_url: str = "https://api.opensea.io"
    opensea_url: str = "https://opensea.io"
    opensea_api_key: SecretStr | None = None
    alchemy_nft_url: str = "https://{network}.g.alchemy.com/nft/v3"
    alchemy_api_key: SecretStr | None = None
    magiceden_api_url: str = "https://api-mainnet.magiceden.dev"
    magiceden_url: str = "https://magiceden.io"
    ipfs_gateway_url: str = "https://ipfs.io"
    arweave_gateway_url: str = "https://arweave.net"

    chains_file: Path | None = None
    # Gathered from RPC_<CHAIN>, RPC_WS_<CHAIN> and FOLLOW_SECONDS_<CHAIN>, which cannot be set under this name.
    by_chain: Annotated[dict[str, str], NoDecode] = Field(default_factory=dict[str, str], exclude=True)
    solana_names_url: str = ""

    limit_sign_ins: int = Field(default=60, ge=1)
    limit_writes: int = Field(default=240, ge=1)
    limit_proofs: int = Field(default=120, ge=1)
    limit_handovers: int = Field(default=10, ge=1)
    limit_lookups: int = Field(default=120, ge=1)
    limit_previews: int = Field(default=60, ge=1)
    limit_reads: int = Field(default=300, ge=1)
    previews_per_day: int = Field(default=100, ge=1)
    limit_rechecks: int = Field(default=60, ge=1)
    limit_events: int = Field(default=600, ge=1)
    limit_sockets: int = Field(default=60, ge=1)
    limit_interactions: int = Field(default=120, ge=1)
    wallets_per_person: int = Field(default=100, ge=1)
    rules_per_server: int = Field(default=100, ge=1)
    conditions_per_server: int = Field(default=400, ge=1)
    contracts_per_server: int = Field(default=200, ge=1)
    token_ids_per_server: int = Field(default=5_000, ge=1)
    addresses_per_server: int = Field(default=100_000, ge=1)

    log_days: int = Field(default=365, ge=0, le=LONGEST_DAYS)
    sweep_seconds: int = Field(default=86_400, ge=1, le=LONGEST_DAYS * 86_400)
    follow_seconds: float = Field(default=60.0, ge=SOONEST_LOOK, le=LONGEST_DAYS * 86_400)
    follow_wallets: int = Field(default=2_000, ge=1)
    solana_follow_requests: int = Field(default=1, ge=0)
    sandbox_port: int = Field(default=3210, ge=1, le=65_535)
    sandbox_url: str = ""

    @property
    def sandbox(self) -> bool:
        """Whether no Discord account is configured, so that everything runs against the local sandbox."""
        return bool(self.sandbox_url)

    def _of_chains(self, kind: str) -> dict[str, str]:
        """Return, per chain, the settings of one kind."""
        return {name.removeprefix(kind): text for name, text in self.by_chain.items() if _kind(name) == kind}

    @property
    def rpc(self) -> dict[str, tuple[str, ...]]:
        """Node URLs per chain, first choice first; a chain that is missing has none and is off.

        A repeated address is one node: it cannot confirm its own answers. The keys are as set: the table of chains
        decides which of them are chains.
        """
        return {chain: distinct(tuple(text.split())) for chain, text in self._of_chains("rpc_").items()}

    @property
    def rpc_repeated(self) -> dict[str, int]:
        """Number of repeated addresses per chain that `rpc` leaves out."""
        given = {chain: len(text.split()) for chain, text in self._of_chains("rpc_").items()}
        return {chain: given[chain] - len(urls) for chain, urls in self.rpc.items() if given[chain] > len(urls)}

    @property
    def rpc_ws(self) -> dict[str, str]:
        """URL per EVM chain of the WebSocket that announces new blocks, where one is set."""
        return {chain: text.strip() for chain, text in self._of_chains("rpc_ws_").items()}

    def follow_pace(self, chain: str) -> float:
        """Return the seconds between two polls of an EVM chain; 0 where the chain is not followed."""
        own = self.by_chain.get(f"follow_seconds_{chain}")
        return self.follow_seconds if own is None else float(own)

    def pause_between_looks(self, chain: str) -> float | None:
        """Return the seconds between two polls of a chain; None where only sweeps cover it."""
        if chain != "solana":
            return self.follow_pace(chain) or None
        return 60 / self.solana_follow_requests if self.solana_follow_requests else None

    @property
    def proxies(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """Networks of the proxies that are trusted to state the client's address."""
        return tuple(ip_network(text) for text in self.trusted_proxies.replace(",", " ").split())

    @property
    def own_links(self) -> tuple[str, ...]:
        """URL prefixes that metadata links may lead to even on a private network: the operator chose them."""
        ipfs = f"{self.ipfs_gateway_url.rstrip('/')}/ipfs"
        names = self.solana_names_url.partition("{name}")[0]
        return tuple(url for url in (ipfs, self.arweave_gateway_url, names, self.sandbox_url) if url)

    @property
    def https(self) -> bool:
        """Whether PUBLIC_URL is https, which decides the name and flags of cookies."""
        return self.public_url.startswith("https://")

    @property
    def local(self) -> bool:
        """Whether only this machine can open PUBLIC_URL."""
        return urlsplit(self.public_url).hostname in LOOPBACK

    @property
    def public_host(self) -> str:
        """The host that requests must name, with its port unless that is the scheme's default."""
        return urlsplit(self.public_url).netloc

    @property
    def bot_name(self) -> str:
        """The bot's name on screens."""
        return f"{self.product_name}Bot"

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Gather the settings of single chains. The set of known chains is not available here."""
        given = {name: value for name, text in given.items() if (value := _bare(name, text)) != ""}
        named = {**given, **{name.lower(): value for name, text in os.environ.items() if (value := _bare(name, text))}}
        found = {name: value for name, value in named.items() if isinstance(value, str) and _kind(name)}
        return {**given, "by_chain": found}

    @field_validator("data_dir")
    @classmethod
    def _in_a_home(cls, given: Path) -> Path:
        """Return the path with `~` as a home directory. Earlier versions made a directory of that name: it stays."""
        if not given.parts[:1] or given.parts[0][0] != "~" or (ROOT / given).exists():
            return given
        try:
            return given.expanduser()
        except RuntimeError:
            raise ValueError(f"{given.parts[0]} is no home here: write the whole path.") from None

    @field_validator("public_url")
    @classmethod
    def _as_browsers_write_it(cls, given: str) -> str:
        return as_browsers_write_it(given)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not is_an_origin(self.public_url):
            raise ValueError(
                f"PUBLIC_URL must be http(s)://host[:port] without a path, not {self.public_url!r}. "
                "A name with letters outside ASCII is written in its form that begins with xn--."
            )
        if self.sandbox and urlsplit(self.public_url).hostname not in LOOPBACK:
            raise ValueError(
                f"PUBLIC_URL is {self.public_url}, but the sandbox never serves beyond this machine. "
                "Set the Discord credentials for a live start, or leave PUBLIC_URL unset."
            )
        try:
            _ = ip_address(self.bind)
        except ValueError:
            raise ValueError("BIND takes the address of an interface: 127.0.0.1, 0.0.0.0 or ::, for example.") from None
        try:
            _ = self.proxies
        except ValueError as fault:
            raise ValueError(f"TRUSTED_PROXIES takes addresses and networks, separated by spaces: {fault}.") from None
        if self.database_url and not is_postgresql(self.database_url):
            raise ValueError(NO_POSTGRESQL)
        if self.redis_url and (not is_readable(self.redis_url) or self.redis_url.partition("://")[0] not in REDIS):
            raise ValueError("REDIS_URL is not the address of a Redis: redis://:password@host:6379/0, for example.")
        for name, text in self.by_chain.items():
            schemes = SOCKET if name.startswith("rpc_ws_") else WEB
            if name.startswith("rpc_") and not all(is_address(url, schemes) for url in text.split()):
                example = "a WebSocket's address, such as wss" if schemes is SOCKET else "an address, such as https"
                raise ValueError(
                    f"{name.upper()} has an entry that is not {example}://host/path. Separate several by spaces."
                )
        for name in (*ADDRESSES, *LINKS):
            url = re.sub(r"\{\w+\}", "x", str(getattr(self, name)))
            if url and not is_address(url) and not (name in LINKS and url.startswith("/")):
                raise ValueError(f"{name.upper()} is not an address, such as https://host/path.")
        for name in KEYS:
            key = getattr(self, name) or ""
            if not KEY.fullmatch(key.get_secret_value() if isinstance(key, SecretStr) else key):
                raise ValueError(
                    f"{name.upper()} has a character that no key has, such as a space or an invisible one. "
                    "Copy the key again."
                )
        for chain, pace in self._of_chains("follow_seconds_").items():
            if not is_a_pace(pace):
                raise ValueError(f"FOLLOW_SECONDS_{chain.upper()} must be 0, or at least {SOONEST_LOOK} seconds.")
        found = SHARDS.fullmatch(self.bot_shards)
        first, last, count = (int(number or 0) for number in found.groups()) if found else (0, 0, 0)
        if self.bot_shards != "auto" and not first <= last < count:
            raise ValueError(
                "BOT_SHARDS is auto, a number of shards such as 4, or a part of them such as 0-7/32, counted from 0."
            )
        if self.solana_names_url and "{name}" not in self.solana_names_url:
            raise ValueError("SOLANA_NAMES_URL must have {name} where the name goes, as in https://…/resolve/{name}.")
        if not self.sandbox and (self.secret_key is None or not self.secret_key.get_secret_value().strip()):
            raise ValueError("SECRET_KEY is missing: set it to a long random text (it encrypts Discord's tokens).")
        if not self.sandbox and self.secret_key is not None and len(self.secret_key.get_secret_value()) < SHORTEST_KEY:
            raise ValueError(f"SECRET_KEY is too short: it needs at least {SHORTEST_KEY} characters.")
        return self


def _bare(name: str, value: Any) -> Any:
    """Return a value without blanks and line breaks around it; they stay in a key that may have encrypted with them."""
    bare = value.strip() if isinstance(value, str) else value
    return value if bare and name.upper() in OUR_KEYS else bare


def _kind(name: str) -> str:
    """Return the prefix of a single chain's setting; empty for any other setting."""
    found = OF_A_CHAIN.fullmatch(name)
    return found[1] if found else ""


_SECRETS = (name.upper() for name, field in Settings.model_fields.items() if "SecretStr" in str(field.annotation))
SECRET_SETTINGS = frozenset({*_SECRETS, "SESSION_SECRET"})
"""Names of the environment variables whose values are secret."""


def environment() -> dict[str, str]:
    """Return the variables set in the environment, otherwise in `.env`, by upper-case name and unchecked.

    Raises SettingsError if there is a `.env` that cannot be read.
    """
    try:
        # Read as pydantic reads it, so that quotes and comments mean the same here.
        written = dotenv_values(ENV_FILE)
        unread = _unread_line()
    except UnicodeDecodeError as fault:
        line = fault.object.count(b"\n", 0, fault.start) + 1
        raise SettingsError(f"{ENV_FILE} is not UTF-8 text (line {line}): save it as UTF-8.") from None
    except OSError as fault:
        raise SettingsError(f"{ENV_FILE} cannot be read: {fault.strerror}.") from None
    if unread:
        raise SettingsError(
            f"{ENV_FILE} has a line that is not NAME=value, or a quote without its end (line {unread})."
        )
    values = {name.upper(): value for name, value in written.items() if value is not None}
    values.update({name.upper(): value for name, value in os.environ.items() if value})
    return {name: _bare(name, value) for name, value in values.items()}


def _unread_line() -> int:
    """Return the first line of `.env` that dotenv would leave out; 0 if none. What it reads begins with blank lines."""
    if not ENV_FILE.is_file():
        return 0
    with ENV_FILE.open(encoding="utf-8") as file:
        found = next((one.original for one in parse_stream(file) if one.error), None)
    return found.line + found.string[: -len(found.string.lstrip())].count("\n") if found else 0


def chains_file() -> Path | None:
    """Return the path in CHAINS_FILE, even if other settings are refused; a relative path starts beside the `.env`."""
    named = environment().get("CHAINS_FILE")
    return ENV_FILE.parent / named if named else None


def _sandbox_values(port: str, more: str) -> dict[str, str]:
    """Return the provider addresses and credentials from the sandbox's own file.

    Its line with `{chain}` applies to each of the product's own EVM chains, and to those that SANDBOX_EXTRA_CHAINS
    (`more`) adds to the sandbox.
    """
    text = SANDBOX.read_text()
    filled = Template(text).safe_substitute(SANDBOX_PORT=port)
    pairs = (line.split("=", 1) for line in filled.splitlines() if "=" in line and not line.lstrip().startswith("#"))
    values = {name.strip().lower(): value.strip().strip("'\"") for name, value in pairs}
    table = tomllib.loads((ROOT / "gateways" / "chains" / "chains.toml").read_text())
    chains = [key for key, chain in table.items() if chain.get("family", "evm") == "evm"]
    chains += [entry.partition(":")[0].strip() for entry in more.split(",") if ":" in entry]
    for name in [name for name in values if "{chain}" in name]:
        value = values.pop(name)
        values |= {name.replace("{chain}", chain): value.replace("{chain}", chain) for chain in chains}
    return values


def load() -> Settings:
    """Read the settings without the cache.

    Without any Discord credential everything runs against the sandbox, where there is one; with all of them, live.
    Raises SettingsError with one sentence per error, also when only some of the credentials are set.
    """
    found = environment()
    port = found.get("PORT") or "3000"
    values: dict[str, str] = {}
    if not found.get("PUBLIC_URL"):
        values["public_url"] = f"http://localhost:{port}"
    present = [name for name in LIVE_CREDENTIALS if found.get(name)]
    named = found.get("SANDBOX_PORT") or "3210", found.get("SANDBOX_EXTRA_CHAINS", "")
    has_sandbox = SANDBOX.exists()
    supplied = _sandbox_values(*named) if len(present) < 3 and has_sandbox else {}
    ours = [name for name in present if found[name] == supplied.get(name.lower())]
    if len(present) == len(ours) and has_sandbox:
        values.update({name: value for name, value in supplied.items() if not found.get(name.upper())})
    elif len(present) < len(LIVE_CREDENTIALS):
        missing = ", ".join(name for name in LIVE_CREDENTIALS if name not in present)
        raise SettingsError(f"A live start needs all of Discord's credentials. Missing: {missing}.")
    try:
        return Settings(**values)  # pyright: ignore[reportArgumentType]
    except ValidationError as fault:
        raise SettingsError("; ".join(map(_sentence, fault.errors()))) from None


def _sentence(fault: ErrorDetails) -> str:
    """Return what is wrong and with which variable. The value is left out because it may be a secret."""
    name = ".".join(str(part) for part in fault["loc"]).upper()
    message = str(fault["msg"]).removeprefix("Value error, ")
    return f"{name}: {message}" if name else message


@cache
def settings() -> Settings:
    """Return the settings of this process, read once."""
    return load()
