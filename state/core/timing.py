"""The time constants of the screens, all in one place.

The specification fixes many of them (docs/specification.md#section-9-constants). Services define their own: how long
Discord's answer about a person counts (`services.accounts.users.ASKED_EVERY`), when a bio is checked again
(`services.wallets.bio_schedule`), how addresses are shortened (`services.core.addresses`), defaults of rules
(`services.rules.draft`), permissions of invites (`services.servers.servers`).
"""

from datetime import timedelta

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
"""Time between two requests for `/health` by the page that shows whether the backend runs."""
TRANSACTION_POLL_SECONDS = 5.0
"""Time between two checks for a proof transaction."""
RETURN_GAP = timedelta(seconds=5)
"""The least time since the last check of a bio for another one when the person returns to the tab."""
RECHECK_POLL_SECONDS = 1.0
"""Time between two reads of how many members still wait for the recheck that an admin began."""
INVITE_AGAIN_SECONDS = 2.0
"""Time after an invite was opened in which a second click, such as of a double click, opens no other."""
INVITE_POLL_SECONDS, INVITE_WATCHED_SECONDS = 3.0, 180.0
"""Time between two checks for a new server after an invite was opened, and how long they go on."""
REACH_POLL_SECONDS, REACH_WATCHED_SECONDS = 2.0, 3_600.0
"""Time between two reads of the progress of a rule's count, and how long they go on."""
HELD_BACK_POLL_SECONDS = 5.0
"""Time between two reads of the held-back removals, for the banner above a server's tabs."""
SERVER_POLL_SECONDS = 5.0
"""Time between two reads of whether the bot is in the server, on a server's page."""
RULES_POLL_SECONDS = 5.0
"""Time between two reads of whether rules or their holders have changed, on the Rules tab."""
MOVE_POLL_SECONDS = 10.0
"""Time between two reads of who has arrived, on the Move tab."""
FIRST_STEPS_POLL_SECONDS = 10.0
"""Time between two reads of a new server's first steps."""
SERVER_HEALTH_POLL_SECONDS = 5.0
"""Time between two reads of the Health tab."""
STATUS_POLL_SECONDS = 30.0
"""Time between two reads of the public status page."""

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
PREVIEW_REST_SECONDS = 0.6
"""Pause in typing after which the preview of a rule is read."""
SEARCH_DEBOUNCE_MILLISECONDS = 300
"""Pause in typing after which the members or the activity are searched."""
PANEL_DEBOUNCE_MILLISECONDS = 250
"""Pause in typing after which the panel's preview changes."""

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

AWAY_SECONDS = 30.0
"""Seconds after which a tab without a socket counts as closed, so that what keeps it fresh ends."""
AWAY_EVERY = 0.5
"""How often a loop without a pace of its own checks whether such a tab is back."""
