"""Names of the Solana Name Service (carol.sol), through a resolver that the operator chose."""

import re
from typing import cast
from urllib.parse import quote

import orjson

from gateways.evm.ens import NameInvalid
from gateways.transport.base58 import is_address
from gateways.transport.errors import NotThere, ProviderConfused, ProviderDown
from gateways.transport.json_shape import Shape
from gateways.transport.safe_fetch import Fetcher

PROVIDER = "Solana names"
ENDING = ".sol"
PLACE = "{name}"
LARGEST = 10_000
_LABELS = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})?")
"""One label, or two with a subdomain. Look-alike letters of other scripts are refused."""


class SolanaNames:
    """SNS's REST proxy (docs/facts.md#solana-names): `{"s": "ok", "result": "<owner>"}`.

    `url` has {name} in place of the name without its ending. If it is empty, there is no resolver, and every question
    raises ProviderDown.
    """

    def __init__(self, url: str, fetching: Fetcher) -> None:
        self._url, self._fetching = url, fetching

    @property
    def on(self) -> bool:
        """Whether there is a resolver to ask."""
        return bool(self._url)

    async def resolve(self, name: str) -> tuple[str, str]:
        """Return the name in its normal form, and its owner's address as given.

        Raises NameInvalid for a text that cannot be such a name, NotThere for a name that nobody has, and another
        ProviderError when the owner is unknown.
        """
        normal = name.strip().lower()
        label = normal.removesuffix(ENDING)
        if not normal.endswith(ENDING) or not _LABELS.fullmatch(label):
            raise NameInvalid("that is not a name of Solana")
        if not self._url:
            raise ProviderDown(PROVIDER, "no resolver is set")
        said = await self._fetching.get(self._url.replace(PLACE, quote(label, safe="")), largest=LARGEST)
        try:
            answer = Shape(cast("object", orjson.loads(said)), "the answer", PROVIDER)
        except orjson.JSONDecodeError:
            raise ProviderConfused(PROVIDER, "the answer is not JSON") from None
        result = answer.text_or_none("result") or ""
        if answer.text("s") != "ok":
            # Older proxies answer 200 for an unknown name; newer ones 404, which the client has raised already.
            if "not found" in result.lower():
                raise NotThere(PROVIDER, "nobody has this name")
            raise ProviderConfused(PROVIDER, "it could not look the name up")
        if not is_address(result):
            raise ProviderConfused(PROVIDER, "the owner is not an address")
        return normal, result
