"""Accessibility faults found by axe: barriers for people who do not see, hear or point as others do."""

from typing import Literal

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page

SOURCE = f"() => {{ {Axe().axe_script}; }}"
# Only the faults are returned: axe also reports everything it checked, which takes longer to transfer than to find.
# A rule with an impact of its own gives that to each of its faults, so some rules never find a grave one.
GRAVE = """
async ([left_out, only]) => (await axe.run(document, {
  resultTypes: ['violations'],
  rules: Object.fromEntries(
    [...left_out, ...axe._audit.rules.filter(one => ['minor', 'moderate'].includes(one.impact)).map(one => one.id)]
      .map(rule => [rule, {enabled: false}])
  ),
  ...(only.length ? {runOnly: only} : {}),
})).violations
  .filter(one => ['serious', 'critical'].includes(one.impact))
  .map(one => `${one.id}: ${one.nodes[0].html.slice(0, 200)}`)
"""
OF_COLOURS = ("color-contrast", "link-in-text-block")
"""Rules whose faults depend on the theme; the others are checked in one theme only."""
THEMES: tuple[tuple[Literal["light", "dark"], tuple[str, ...]], ...] = (("light", ()), ("dark", OF_COLOURS))
"""Each theme with the rules to check in it; none means all."""


async def grave_faults(page: Page, *left_out: str, only: tuple[str, ...] = ()) -> list[str]:
    """Return every rule with a serious or critical fault in the page, with the first element at fault."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(SOURCE)
    return await page.evaluate(GRAVE, [left_out, only])
