"""Whether a node's refusal of eth_getLogs means that a request for fewer blocks may pass."""

import re

from gateways.evm.rpc.errors import NeedsAddress, NodeTimedOut, TooMuch
from gateways.transport.errors import ProviderBusy, ProviderError, ProviderRefused, Unauthorized

INTERNAL_ERROR = -32603
_METHOD = re.compile(r"(eth_)?getLogs", re.IGNORECASE)
"""The method's name, which messages repeat; it says nothing about a size."""
_ABOUT_SIZE = re.compile(r"range|results|blocks|logs|size", re.IGNORECASE)
_ABOUT_RANGE = re.compile(r"range|blocks", re.IGNORECASE)
_ABOUT_CONTENT = re.compile(r"results|size|too large|logs", re.IGNORECASE)
_INTERNAL = re.compile(r"internal (server |json-rpc )?error", re.IGNORECASE)


def too_much(fault: ProviderError) -> bool:
    """Return whether a request for the logs of fewer blocks may pass; nodes agree on no code for it.

    See docs/facts.md#limits-of-eth_getlogs.
    """
    if isinstance(fault, Unauthorized | NeedsAddress):
        return False
    if isinstance(fault, NodeTimedOut | TooMuch):
        return True
    words = _METHOD.sub("", str(fault))
    if isinstance(fault, ProviderBusy):
        return bool(_ABOUT_SIZE.search(words))
    if not isinstance(fault, ProviderRefused):
        return False
    # An internal error may have any cause; only its words can say that it was the size.
    internal = fault.code == INTERNAL_ERROR or _INTERNAL.search(words) is not None
    return not internal or _ABOUT_SIZE.search(words) is not None


def about_range(fault: ProviderError) -> bool:
    """Return whether the node refused the number of blocks as such, whatever is in them."""
    words = _METHOD.sub("", str(fault))
    return _ABOUT_RANGE.search(words) is not None and _ABOUT_CONTENT.search(words) is None
