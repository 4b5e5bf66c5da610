"""Checks of the values that an operator sets: addresses and numbers. `settings.py` says what is wrong with them."""

import base64
import binascii
import re
import unicodedata
from collections import Counter
from functools import cache
from math import inf
from pathlib import Path
from urllib.parse import urlsplit

from dotenv.parser import parse_stream

SOONEST_LOOK = 0.1
"""Shortest time in seconds between two polls of a chain."""
USUAL_PORTS = {"http": 80, "https": 443}
"""The ports that addresses of these schemes leave out."""
POSTGRESQL = frozenset({"postgres", "postgresql", "postgresql+psycopg"})
NO_POSTGRESQL = (
    "DATABASE_URL is not the address of a PostgreSQL: postgresql://user:password@host/database. Write special "
    "characters of the password as in other addresses: % is %25, / is %2F, : is %3A, @ is %40."
)
SERVER = re.compile(r"(?:\[[^\]]*\]|[^\[\]:@]*)(?::\d*)?")
"""The server in the address of a database: a host, and perhaps its port."""
REDIS = frozenset({"redis", "rediss", "unix"})
"""What the addresses of a database and of a Redis begin with."""
WEB, SOCKET = frozenset({"http", "https"}), frozenset({"ws", "wss"})
"""What the addresses of a provider, and of a WebSocket that announces blocks, begin with."""
HOST = re.compile(r"[\w.:%~-]+")
"""A host's name, in any alphabet, or its number."""
NOT_ONE = re.compile(r"\s|,(?:https?|wss?)://")
"""What separates two addresses, or cuts one in two. The parser drops line breaks silently."""
KEY = re.compile(r"[!-~]*")
"""A provider's key: a header carries no other character."""


def as_browsers_write_it(url: str) -> str:
    """Return PUBLIC_URL in lower case, without its usual port or a slash at its end; a path stays, to be refused.

    Browsers leave both out of the Origin header, with which PUBLIC_URL is compared.
    """
    scheme, separator, rest = url.strip().partition("://")
    host, slash, path = rest.rstrip("/").partition("/")
    name, colon, port = host.lower().rpartition(":")
    if colon and (port == "" or (port.isascii() and port.isdigit())):
        usual = port == "" or int(port) == USUAL_PORTS.get(scheme.lower())
        host = name if usual else f"{name}:{int(port)}"
    return f"{scheme.lower()}{separator}{host.lower()}{slash}{path}"


def is_readable(url: str) -> bool:
    """Return whether a URL can be split into its parts at all."""
    try:
        _ = urlsplit(url).port
    except ValueError:
        return False
    return True


def is_address(url: str, schemes: frozenset[str] = WEB) -> bool:
    """Return whether a URL is one address with one of these schemes and a host."""
    if not is_readable(url) or NOT_ONE.search(url):
        return False
    parts = urlsplit(url)
    return parts.scheme in schemes and bool(HOST.fullmatch(parts.hostname or ""))


def is_postgresql(url: str) -> bool:
    """Return whether a URL is a database's address that psycopg and SQLAlchemy can split.

    Their errors repeat parts of the URL, and so of a password with characters that are not percent-encoded.
    """
    scheme, _, rest = url.partition("://")
    server = re.split(r"[/?]", rest, maxsplit=1)[0].split("@", 1)[-1]
    encoded = not re.search(r"%(?![0-9A-Fa-f]{2})|\s", url)
    return scheme in POSTGRESQL and encoded and bool(SERVER.fullmatch(server))


def psycopg_url(url: str) -> str:
    """Return a database's URL with psycopg 3 as its driver, whatever form the operator used."""
    for prefix in ("postgres://", "postgresql://"):
        if url.startswith(prefix):
            return "postgresql+psycopg://" + url.removeprefix(prefix)
    return url


def libpq_url(url: str) -> str:
    """Return a database's URL for libpq, for plain psycopg connections (LISTEN, advisory locks)."""
    return psycopg_url(url).replace("postgresql+psycopg://", "postgresql://", 1)


def is_an_origin(url: str) -> bool:
    """Return whether a URL names only a scheme, a host and perhaps a port, as a browser's Origin header does."""
    if not is_readable(url):
        return False
    parts = urlsplit(url)
    host = parts.netloc.isascii() and not {"@", " "} & set(parts.netloc) and bool(parts.hostname)
    return host and parts.scheme in {"http", "https"} and url.rstrip("/") == f"{parts.scheme}://{parts.netloc}"


def is_a_pace(text: str) -> bool:
    """Return whether a text is a valid number of seconds between two polls."""
    try:
        seconds = float(text)
    except ValueError:
        return False
    return seconds == 0 or SOONEST_LOOK <= seconds < inf


def bot_of(token: str) -> str | None:
    """Return the bot's id, which is the first part of a token in base64; None for a token of another form."""
    first, *rest = token.split(".")
    try:
        found = base64.b64decode(first + "=" * (-len(first) % 4), validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    return found if len(rest) == 2 and all(rest) and found.isdigit() else None


def set_twice(file: Path) -> list[str]:
    """Return the settings that an env file has more than once, in upper case."""
    with file.open(encoding="utf-8") as lines:
        found = Counter(one.key.upper() for one in parse_stream(lines) if one.key)
    return [name for name, times in found.items() if times > 1]


@cache
def distinct(urls: tuple[str, ...]) -> tuple[str, ...]:
    """Return the addresses in order, without those that lead to the same place as an earlier one.

    Unreadable ones stay, for `make doctor` to name; the settings refuse them.
    """
    found: dict[tuple[object, ...], str] = {}
    for url in urls:
        if not is_readable(url):
            found[(url,)] = url
            continue
        parts = urlsplit(url)
        port = parts.netloc.rpartition(":")[2]
        usual = str(USUAL_PORTS.get(parts.scheme, ""))
        place = (parts.scheme, parts.username, parts.hostname, port if port.isdigit() else usual)
        found.setdefault((*place, parts.path.rstrip("/"), parts.query), url)
    return tuple(found.values())


_OTHER_SETUPS = frozenset({"oauth", "production", "server"})
"""The words before `-setup` in the paths of other pages."""


def setup_path(product: str) -> str:
    """Return the path of the setup page of a product of this name, which may have any signs.

    Reflex builds no screens with a path of other signs than ASCII's letters and digits, _ and -, or with a path twice.
    """
    plain = unicodedata.normalize("NFKD", product.lower()).encode("ascii", "ignore").decode()
    word = re.sub(r"[^a-z0-9_-]", "-", plain).strip("-")
    return f"/{word if word and word not in _OTHER_SETUPS else 'product'}-setup"
