"""What axe finds in a page: barriers for people who do not see, hear or point as others do."""

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page

SOURCE = f"() => {{ {Axe().axe_script}; }}"
# Only what is wrong comes back: axe tells all that it looked at, which takes longer to pass on than to find.
GRAVE = """
async ([left_out, only]) => (await axe.run(document, {
  resultTypes: ['violations'], rules: Object.fromEntries(left_out.map(rule => [rule, {enabled: false}])),
  ...(only.length ? {runOnly: only} : {}),
})).violations
  .filter(one => ['serious', 'critical'].includes(one.impact))
  .map(one => `${one.id}: ${one.nodes[0].html.slice(0, 200)}`)
"""
OF_COLOURS = ("color-contrast", "link-in-text-block")
"""Rules whose faults depend on the theme; the others have been tried once a page was tried in one theme."""


async def grave_faults(page: Page, *left_out: str, only: tuple[str, ...] = ()) -> list[str]:
    """Every rule with a serious or critical fault in the page as it is now, with the first element that has it."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(SOURCE)
    return await page.evaluate(GRAVE, [left_out, only])
