"""Section 9 of the specification: every constant of the screens, and of the services behind them, with its value."""

import ast

import pytest

from services.core import addresses, discord_text
from services.core.chain_names import form_order
from services.rules import draft, wording
from services.servers import servers
from state.core import timing
from tests.house.test_rules import modules_of

CONSTANTS = {
    "user query stale": (timing.USER_STALE_SECONDS, 1800),
    "servers stale": (timing.SERVERS_STALE_SECONDS, 0),
    "analytics stale and refetched": (timing.ANALYTICS_STALE_SECONDS, 86_400),
    "refetch after the tab becomes visible": (timing.VISIBLE_AGAIN_SECONDS, 2),
    "attempts of a query": (timing.QUERY_ATTEMPTS, 2),
    "health poll": (timing.HEALTH_POLL_MILLISECONDS, 5000),
    "copy confirmation": (timing.COPIED_SECONDS, 2),
    "a slow screen offers to try again": (timing.PATIENCE_MILLISECONDS, 2000),
    "loading screen": (timing.LOADING_MILLISECONDS, 1000),
    "collection URL debounce": (timing.URL_DEBOUNCE_MILLISECONDS, 500),
    "a toast shows": (timing.TOAST_MILLISECONDS, 5000),
    "a dismissed toast is removed": (timing.TOAST_REMOVED_MILLISECONDS, 1_000_000),
    "swipe threshold": (timing.TOAST_SWIPE_PIXELS, 50),
    "toast hotkey": (timing.TOAST_HOTKEY, "F8"),
    "toast width": (timing.TOAST_WIDTH_PIXELS, 420),
    "tooltip delay": (timing.TOOLTIP_DELAY_MILLISECONDS, 700),
    "tooltip skip delay": (timing.TOOLTIP_SKIP_MILLISECONDS, 300),
    "an address, shortened": (addresses.shorten("0x0123456789abcdef0123456789abcdef01234567"), "0x0123...4567"),
    "default role colour": (discord_text.DEFAULT_COLOR, "#5865F2"),
    "selectable chains": (len(form_order()), 8),
    "token ids in a name": (wording.NAMED_TOKEN_IDS, 3),
    "rule types": (draft.TYPES[:4], ("basic", "trait", "token_id", "any_nft")),
    "permissions of the navigation's invite": (servers.NAVIGATION_PERMISSIONS, 268_439_808),
    "permissions of a server's invite": (servers.SERVER_PERMISSIONS, 2_416_004_112),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_a_constant_has_its_value(name: str) -> None:
    found, wanted = CONSTANTS[name]
    assert found == wanted


def test_every_constant_of_the_screens_is_used_by_one() -> None:
    used = {
        node.attr if isinstance(node, ast.Attribute) else node.id
        for module in modules_of(["components", "state", "app"])
        if module.path != "state/core/timing.py"
        for node in module.nodes
        if isinstance(node, ast.Attribute | ast.Name)
    }
    assert {name for name in vars(timing) if name.isupper()} - used == set()
