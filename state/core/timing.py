"""The time constants of the screens, all in one place.

Their values are those of docs/specification.md#section-9-constants. Services define their own: how long Discord's
answer about a person counts (`services.accounts.users.ASKED_EVERY`), how addresses are shortened
(`services.core.addresses`), defaults of rules (`services.rules.draft`), permissions of invites
(`services.servers.servers`).
"""

USER_STALE_SECONDS = 30 * 60
"""Age at which the signed-in person's name is read again with the next page."""
SERVERS_STALE_SECONDS = 0
"""Servers are read again whenever the window gets the focus."""
ANALYTICS_STALE_SECONDS = 24 * 60 * 60
"""Age at which the numbers on an open dashboard are read again."""
VISIBLE_AGAIN_SECONDS = 2.0
"""Delay before servers and numbers are read again after a tab becomes visible."""

QUERY_ATTEMPTS = 2
"""Attempts of a read before it counts as failed. Changes are sent once."""
RETRY_SECONDS = 1.0
"""Pause before the second attempt."""

HEALTH_POLL_MILLISECONDS = 5000
COPIED_SECONDS = 2.0
"""How long a button reads "Copied!"."""
LOADING_MILLISECONDS = 1000
"""Longest time that the Loading screen shows."""
PATIENCE_MILLISECONDS = 2000
"""Time after which a loading screen offers to try again."""
URL_DEBOUNCE_MILLISECONDS = 500
"""Pause in typing after which a collection URL is looked up."""
NAME_REST_SECONDS = 0.5
"""Pause in typing after which a name is looked up."""

TOAST_MILLISECONDS = 5000
"""How long a toast shows."""
TOAST_REMOVED_MILLISECONDS = 1_000_000
"""Time after which a toast disappears even while the pointer or keyboard holds it."""
TOAST_SWIPE_PIXELS = 50
"""Length of a swipe to the right that dismisses a toast."""
TOAST_HOTKEY = "F8"
TOAST_WIDTH_PIXELS = 420
TOOLTIP_DELAY_MILLISECONDS = 700
TOOLTIP_SKIP_MILLISECONDS = 300
"""A tooltip that follows another within this time shows at once."""
