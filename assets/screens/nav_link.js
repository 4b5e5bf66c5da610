import { createElement } from "react";
import { Link, useLocation } from "react-router";

/** A link of the bar that says when it leads to the page it is on. */
export function NavLink({ to, also, children, ...rest }) {
  const here = useLocation().pathname.replace(/(.)\/+$/, "$1");
  const current = here === to || (also ?? []).includes(here);
  return createElement(Link, { to, "aria-current": current ? "page" : undefined, ...rest }, children);
}
