"""The constants of the screens: how long things wait, show and stay fresh, each in this one place.

They are those of docs/specification.md#section-9-constants.
What a service keeps to is named there: how long Discord's word about a person counts
(`services.accounts.users.ASKED_EVERY`), lengths and shortening of addresses (`services.core.addresses`), defaults of
rules (`services.rules.draft`), permissions of invites (`services.servers.servers`).
"""

USER_STALE_SECONDS = 30 * 60
"""After this long the signed-in person's name is read anew with the next page."""
SERVERS_STALE_SECONDS = 0
"""Servers are read anew whenever the window gets the focus."""
ANALYTICS_STALE_SECONDS = 24 * 60 * 60
"""The oldest that the numbers on an open dashboard get; then they are read anew."""
VISIBLE_AGAIN_SECONDS = 2.0
"""How long after a tab became visible again its servers and numbers are read anew."""

QUERY_ATTEMPTS = 2
"""How often what a screen shows is asked for before it counts as failed. What changes something is sent once."""
RETRY_SECONDS = 1.0
"""How long a query waits before its second attempt."""

HEALTH_POLL_MILLISECONDS = 5000
COPIED_SECONDS = 2.0
"""How long a button says that the text is copied."""
LOADING_MILLISECONDS = 1000
"""The longest that the Loading screen shows."""
PATIENCE_MILLISECONDS = 10_000
"""After so long a screen that still loads offers to try again."""
URL_DEBOUNCE_MILLISECONDS = 500
"""How long a typed collection address has to rest before it is looked up."""
NAME_REST_SECONDS = 0.5
"""How long a typed name has to rest before it is looked up."""

TOASTS_AT_ONCE = 1
TOAST_MILLISECONDS = 5000
"""How long a toast shows by itself."""
TOAST_REMOVED_MILLISECONDS = 1_000_000
"""When a toast goes even while the pointer or the keyboard holds it."""
TOAST_SWIPE_PIXELS = 50
"""How far to the right a swipe has to go to dismiss it."""
TOAST_HOTKEY = "F8"
TOAST_WIDTH_PIXELS = 420
TOOLTIP_DELAY_MILLISECONDS = 700
TOOLTIP_SKIP_MILLISECONDS = 300
"""So soon after another one a tooltip shows at once."""
