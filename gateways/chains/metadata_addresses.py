"""Where a token's metadata is: each form of link that contracts give becomes a URL to fetch or a document to read."""

import base64
import binascii
import re
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes

LONGEST_DOCUMENT = 1_000_000
LONGEST_LINK = 2 * LONGEST_DOCUMENT
"""Characters of a link that carries its document; packed, it takes more than the document itself."""
_CID = re.compile(r"[A-Za-z0-9]{40,120}")
_ARWEAVE_ID = re.compile(r"[A-Za-z0-9_-]{43}")
_ID = "{id}"
_PLAIN = "%:@!$&'()*+,;=~"
"""Characters that stay unescaped in a path or a query (RFC 3986 §3.3), and `%`, so that escapes stay as they are."""


class LinkUnusable(Exception):
    """The link leads to nothing that can be read; the text says why."""


@dataclass(frozen=True, slots=True)
class ContentGateways:
    """The gateways that content-addressed links are read through, as `https://host[/path]`."""

    ipfs: str
    arweave: str


def with_id(link: str, token_id: int) -> str:
    """Return the link with `{id}` filled in as ERC-1155 defines it: 64 lower-case hexadecimal digits without 0x.

    Empty for a link that would then be larger than a document may be: it can consist of such places.
    """
    digits = f"{token_id:064x}"
    longest = len(link) + link.count(_ID) * (len(digits) - len(_ID))
    return link.replace(_ID, digits) if longest <= LONGEST_LINK else ""


def located(link: str, gateways: ContentGateways) -> str | bytes:
    """Return the address to fetch a document from, or the document itself where the link carries it.

    A link may be https://, http:// (which the fetcher refuses later), ipfs:// or ar:// (read through their gateways), a
    data: URL (base64 or percent-encoded) or bare JSON. Raises LinkUnusable for anything else.
    """
    given = link.strip()
    scheme = given.partition(":")[0].lower()
    if not given:
        raise LinkUnusable("the contract gives no link")
    try:
        # A loop over 2 million characters would block the process for a tenth of a second.
        given.encode()
    except UnicodeEncodeError:
        raise LinkUnusable("the link has half a character") from None  # JSON can hold one, but no encoding can
    if given.startswith("{"):
        return _small(given.encode())
    if scheme == "data":
        return _carried(given)
    if scheme == "ipfs":
        return f"{gateways.ipfs.rstrip('/')}/ipfs/{_content_path(given[len('ipfs:') :], _CID)}"
    if scheme == "ar":
        return f"{gateways.arweave.rstrip('/')}/{_content_path(given[len('ar:') :], _ARWEAVE_ID)}"
    if scheme in {"https", "http"}:
        return given
    raise LinkUnusable("links of that kind are not read")


def _content_path(rest: str, identifier: re.Pattern[str]) -> str:
    """Return `//<id>/<path>` as the path below a gateway, without the second ipfs in ipfs://ipfs/<id>, an old error."""
    path, _, query = rest.lstrip("/").partition("?")
    segments = path.split("/")
    if len(segments) > 1 and segments[0].lower() == "ipfs":
        segments = segments[1:]
    if not identifier.fullmatch(segments[0]) or any(part in {"..", "."} for part in segments):
        raise LinkUnusable("the link names no content")
    shown = "/".join(quote(part, safe=_PLAIN) for part in segments)
    return f"{shown}?{quote(query, safe=_PLAIN)}" if query else shown


def _carried(link: str) -> bytes:
    """Return the content of a data: URL (RFC 2397)."""
    head, comma, body = link.partition(",")
    if not comma:
        raise LinkUnusable("the data: link carries nothing")
    if head.lower().endswith(";base64"):
        if len(body) > LONGEST_LINK:
            raise LinkUnusable("the document is too large")
        packed = unquote_to_bytes(body).translate(bytes.maketrans(b"-_", b"+/"), b"\r\n\t =")
        try:
            return _small(base64.b64decode(packed + b"=" * (-len(packed) % 4), validate=True))
        except (binascii.Error, ValueError):
            raise LinkUnusable("the data: link is not base64") from None
    return _small(unquote_to_bytes(body))


def _small(document: bytes) -> bytes:
    if len(document) > LONGEST_DOCUMENT:
        raise LinkUnusable("the document is too large")
    return document
