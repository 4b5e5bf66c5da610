// Says which page was opened, and takes the keyboard there, as a browser does when it loads a document.
import { createElement, useEffect, useRef, useState } from "react";
import { useLocation } from "react-router";
import { focusMain, keepFocus } from "./focus.js";

export function Arrival(props) {
  const { pathname } = useLocation();
  const before = useRef(pathname);
  const [title, say] = useState("");
  useEffect(keepFocus, []);
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
