// Says which page was opened, and takes the keyboard there, as a browser does when it loads a document. While pages are
// open, a pressed button shows that it was pressed.
import { createElement, useEffect, useRef, useState } from "react";
import { useLocation } from "react-router";
import { focusMain, keepFocus } from "./focus.js";

/** A button whose press changes nothing on the page shows it for so long. */
const LONGEST_PRESS = 3_000;

/** Marks a pressed button until the page changes: on a slow connection the server's answer takes a while. */
function showPresses() {
  let pressed = null;
  let timer = 0;
  const end = () => {
    clearTimeout(timer);
    pressed?.removeAttribute("aria-busy");
    pressed = null;
  };
  const press = ({ target }) => {
    end();
    pressed = target.closest?.("button.btn") ?? null;
    pressed?.setAttribute("aria-busy", "true");
    timer = setTimeout(end, LONGEST_PRESS);
  };
  const answers = new MutationObserver(end);
  window.addEventListener("click", press, true);
  answers.observe(document.body, {
    childList: true, characterData: true, subtree: true, attributeFilter: ["disabled", "aria-expanded", "aria-pressed"],
  });
  return () => {
    window.removeEventListener("click", press, true);
    answers.disconnect();
    end();
  };
}

/** Closes the menu of narrow screens by Esc, as a dialog closes, and gives its button the focus. */
function closeMenu() {
  const close = ({ key }) => {
    const menu = key === "Escape" && document.activeElement?.closest("header details[open]");
    if (!menu) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  };
  document.addEventListener("keydown", close);
  return () => document.removeEventListener("keydown", close);
}

export function PageChange(props) {
  const { pathname } = useLocation();
  const before = useRef(pathname);
  const [title, say] = useState("");
  useEffect(keepFocus, []);
  useEffect(showPresses, []);
  useEffect(closeMenu, []);
  useEffect(() => {
    if (before.current === pathname) return;
    before.current = pathname;
    say(document.title);
    // The link that was followed is gone with its page. What still has the focus keeps it.
    if (document.activeElement === document.body) focusMain();
  }, [pathname]);
  return createElement("p", { ...props, "aria-live": "polite" }, title);
}

/** A plain link: the router's own would leave out the address's parameters, and move no focus. */
export function SkipLink({ children, ...rest }) {
  const skip = (event) => {
    event.preventDefault();
    focusMain();
    document.getElementById("content")?.scrollIntoView();
  };
  return createElement("a", { ...rest, href: "#content", onClick: skip }, children);
}
