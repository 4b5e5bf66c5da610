"""Browser contexts that tests use one after another, each as empty as a new one.

A new context has compiled nothing: its first page takes a second of a processor more than a page of a used one, whose
scripts stay compiled for as long as some page of the site is open in it. The browser needs ONE_PROCESS for that.
"""

from dataclasses import dataclass
from typing import Any

from playwright.async_api import Browser, BrowserContext, Page

ONE_PROCESS = "--process-per-site"
"""All pages of a site in a context share a process."""
PLAIN = "/robots.txt"
"""A document without a script."""
# What a page of the same process stored is cleared in order. A clock that a test installs is that of all pages.
CLEARED = "(localStorage.clear(), /native code/.test(setTimeout))"


@dataclass
class Lent:
    """A context in use, its first page, and whether something was done to it that cannot be taken back.

    `keeper` is a page without a script, which keeps the process of a used context.
    """

    context: BrowserContext
    page: Page
    options: str
    keeper: Page | None = None
    is_altered: bool = False


class Contexts:
    """Lends contexts of one browser, whose pages keep data for no origins but these."""

    def __init__(self, browser: Browser, *origins: str) -> None:
        self._browser, self._origins = browser, origins
        self._idle: dict[str, list[Lent]] = {}

    async def lend(self, *, is_new: bool = False, **options: Any) -> Lent:
        """Return a context with a new page; it is a new one if `is_new`, or if none with these options is idle."""
        key = repr(sorted(options.items()))
        if not is_new and (idle := self._idle.get(key)):
            lent = idle.pop()
            lent.page = await lent.context.new_page()
            return lent
        context = await self._browser.new_context(**options)
        return Lent(context, await context.new_page(), key)

    async def take_back(self, lent: Lent) -> None:
        """Empty a context for the next test; close it if it was altered."""
        if lent.is_altered or not await self._emptied(lent):
            await lent.context.close()
        else:
            self._idle.setdefault(lent.options, []).append(lent)

    async def _emptied(self, lent: Lent) -> bool:
        """Close the pages of a context and clear what they kept; return whether its pages have the true time."""
        if lent.keeper is None:
            lent.keeper = await lent.context.new_page()
            await lent.keeper.goto(self._origins[0] + PLAIN)
        for page in lent.context.pages:
            if page is not lent.keeper:
                await page.close()
        await lent.context.clear_cookies()
        calls = await lent.context.new_cdp_session(lent.keeper)
        for origin in self._origins:
            await calls.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
        await calls.detach()
        return await lent.keeper.evaluate(CLEARED)

    async def close(self) -> None:
        """Close what is idle."""
        for lent in [one for idle in self._idle.values() for one in idle]:
            await lent.context.close()
