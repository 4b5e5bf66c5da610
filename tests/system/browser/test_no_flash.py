"""No screen of the other audience is ever shown, not even for one frame."""

from collections.abc import Awaitable, Callable

from tests.system.browser.conftest import Visitor

# In every frame in which something may have changed, and in every tenth: the words that a person could read.
WATCH = """
window.__seen = new Set();
let changed = true, frame = 0;
const look = () => {
  if (changed || ++frame % 10 === 0) {
    changed = false;
    for (const line of (document.body?.innerText ?? "").split("\\n")) window.__seen.add(line.trim());
  }
  requestAnimationFrame(look);
};
requestAnimationFrame(look);
const note = () => { changed = true; };
new MutationObserver(note).observe(
  document, {subtree: true, childList: true, characterData: true, attributes: true});
for (const kind of ["load", "transitionrun", "transitionend", "animationstart", "animationend"])
  addEventListener(kind, note, true);
"""
SEEN = "[...window.__seen]"
FOR_VISITORS, FOR_MEMBERS = "Get Started", "Logout"
NewVisitor = Callable[..., Awaitable[Visitor]]


async def test_a_member_never_sees_the_landing_page(visit: NewVisitor) -> None:
    """The first load finds nothing in the browser's storage, and the others what it left there."""
    ada = await visit(reduced_motion="no-preference")
    await ada.context.add_init_script(WATCH)
    await ada.enter("ada", "/")
    for path in ("", "/", "/dashboard", "/wallet-verification", "/nowhere"):
        if path:
            await ada.open(path)
        await ada.page.get_by_role("button", name=FOR_MEMBERS).wait_for()
        assert FOR_VISITORS not in await ada.page.evaluate(SEEN), path


async def test_a_visitor_never_sees_a_members_screen(visit: NewVisitor) -> None:
    visitor = await visit(reduced_motion="no-preference")
    await visitor.context.add_init_script(WATCH)
    for path in ("/", "/dashboard", "/account", "/nowhere"):
        await visitor.open(path)
        await visitor.page.get_by_role("link", name=FOR_VISITORS).wait_for()
        seen = set(await visitor.page.evaluate(SEEN))
        assert not seen & {FOR_MEMBERS, "Loading...", "404 Page Not Found", "Loading dashboard..."}, path


async def test_signing_in_and_out_leads_straight_to_the_other_audiences_screen(visit: NewVisitor) -> None:
    ada = await visit(reduced_motion="no-preference")
    await ada.context.add_init_script(WATCH)
    await ada.sign_in("ada")
    assert FOR_VISITORS not in await ada.page.evaluate(SEEN)
    await ada.page.get_by_role("button", name=FOR_MEMBERS).click()
    await ada.page.get_by_role("link", name=FOR_VISITORS).wait_for()
    assert FOR_MEMBERS not in await ada.page.evaluate(SEEN)
