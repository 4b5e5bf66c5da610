"""A browser that a test gets after another one is as empty as a new one."""

from playwright.async_api import BrowserContext

from tests.system.browser.conftest import Product
from tests.system.browser.contexts import PLAIN, Contexts, Lent

KEPT = "[document.cookie, localStorage.length, sessionStorage.length]"
KEEP = "document.cookie = 'a=1'; localStorage.a = 1; sessionStorage.a = 1"


async def test_a_used_context_is_lent_again_without_what_was_kept_in_it(contexts: Contexts, product: Product) -> None:
    lent = await contexts.lend(locale="fr")
    for origin in (product.url, product.sandbox):
        await lent.page.goto(f"{origin}{PLAIN}")
        await lent.page.evaluate(KEEP)
        assert await lent.page.evaluate(KEPT) == ["a=1", 1, 1]
    await lent.context.new_page()
    used = lent.context
    await contexts.take_back(lent)
    again = await contexts.lend(locale="fr")
    assert (again.context, again.context.pages) == (used, [again.keeper, again.page])
    for origin in (product.url, product.sandbox):
        await again.page.goto(f"{origin}{PLAIN}")
        assert await again.page.evaluate(KEPT) == ["", 0, 0]
    await again.context.close()


async def test_an_altered_context_is_not_lent_again(contexts: Contexts) -> None:
    async def lent_to(*, is_new: bool = False) -> tuple[Lent, BrowserContext]:
        lent = await contexts.lend(is_new=is_new, locale="de")
        return lent, lent.context

    (first, used), (second, new) = await lent_to(), await lent_to(is_new=True)
    assert used is not new
    first.is_altered = True
    await contexts.take_back(first)
    await contexts.take_back(second)
    (again, same), (another, made) = await lent_to(), await lent_to()
    assert same is new
    assert made not in {used, new}
    for lent in (again, another):
        await lent.context.close()
