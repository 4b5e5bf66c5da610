"""A browser that a test gets after another one is as empty as a new one."""

from collections.abc import Awaitable, Callable

import pytest

from tests.system.browser.conftest import NewVisitor, Product
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


async def by_the_flag(lent: Lent) -> None:
    lent.is_altered = True


async def by_a_clock(lent: Lent) -> None:
    await lent.page.clock.install()


@pytest.mark.parametrize("alter", [by_the_flag, by_a_clock])
async def test_an_altered_context_is_not_lent_again(
    contexts: Contexts, alter: Callable[[Lent], Awaitable[None]]
) -> None:
    first, second = await contexts.lend(locale="de"), await contexts.lend(is_new=True, locale="de")
    assert first.context is not second.context
    await alter(first)
    await contexts.take_back(second)
    await contexts.take_back(first)
    again, new = await contexts.lend(locale="de"), await contexts.lend(locale="de")
    assert again.context is second.context
    assert new.context not in {first.context, second.context}
    for lent in (again, new):
        await lent.context.close()


async def test_a_context_is_altered_once_a_test_has_asked_its_visitor_for_it(visit: NewVisitor) -> None:
    visitor = await visit()
    assert (await visitor.cookies(), visitor.lent.is_altered) == ({}, False)
    assert visitor.context is visitor.lent.context
    assert visitor.lent.is_altered
