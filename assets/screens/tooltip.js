// A word about a control, after a moment of the pointer's rest or at once for the keyboard.
import { createElement, useEffect, useId, useLayoutEffect, useRef, useState } from "react";
import { createPortal } from "react-dom";

const EDGE = 8;
// When the last tooltip went: the next one soon after it needs no waiting.
let wentAt = -Infinity;

export function Tooltip({ text, delay, skip, disabled, children, ...rest }) {
  const [shown, show] = useState(false);
  const [spot, put] = useState(null);
  const anchor = useRef(null);
  const bubble = useRef(null);
  const timer = useRef(0);
  const id = useId();

  const close = () => {
    clearTimeout(timer.current);
    if (shown) wentAt = performance.now();
    show(false);
    put(null);
  };
  const open = (wait) => {
    clearTimeout(timer.current);
    if (wait) timer.current = setTimeout(() => show(true), wait);
    else show(true);
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  useEffect(() => {
    if (!shown) return undefined;
    // The control itself is described, not the box around it; one that is disabled cannot be, so its box is.
    const control = disabled ? anchor.current : anchor.current.firstElementChild;
    control?.setAttribute("aria-describedby", id);
    const hear = (event) => event.key === "Escape" && close();
    window.addEventListener("keydown", hear);
    window.addEventListener("scroll", close, true);
    return () => {
      control?.removeAttribute("aria-describedby");
      window.removeEventListener("keydown", hear);
      window.removeEventListener("scroll", close, true);
    };
  }, [shown, disabled, id]);
  useLayoutEffect(() => {
    if (!shown) return;
    const around = anchor.current.getBoundingClientRect();
    const own = bubble.current.getBoundingClientRect();
    const middle = around.left + around.width / 2 - own.width / 2;
    const above = around.top - own.height - EDGE;
    put({
      left: Math.max(EDGE, Math.min(middle, window.innerWidth - own.width - EDGE)),
      top: above >= EDGE ? above : around.bottom + EDGE,
    });
  }, [shown, text]);

  const soon = () => performance.now() - wentAt < skip;
  const events = {
    onPointerEnter: (event) => event.pointerType !== "touch" && open(soon() ? 0 : delay),
    onPointerLeave: close,
    onPointerDown: () => !disabled && close(),
    onClick: () => disabled && open(0),
    onFocus: (event) => event.target.matches(":focus-visible") && open(0),
    onBlur: close,
  };
  // A disabled control takes no focus, so its box does, and says why it is disabled.
  const reach = disabled ? { tabIndex: 0, role: "group", "aria-label": text } : {};
  const place = spot ?? { left: 0, top: 0, visibility: "hidden" };
  return createElement(
    "span",
    { ...rest, ...events, ...reach, ref: anchor, "data-words": text },
    children,
    shown &&
      createPortal(
        createElement(
          "span",
          { id, role: "tooltip", ref: bubble, className: "tooltip-bubble", style: { ...place, position: "fixed" } },
          text,
        ),
        document.body,
      ),
  );
}
