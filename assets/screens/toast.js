// One toast: it lives for a while, longer while the pointer or the keyboard holds it, and a swipe to the right ends it.
import { createElement, useEffect, useRef, useState } from "react";

const TOAST = "[data-toast]";
// What had the focus before the hotkey led into the toast; it gets it back.
let before = null;

// The place where toasts show. Always in the page, so that screen readers hear what appears in it.
export function ToastPlace({ hotkey, children, ...rest }) {
  const place = useRef(null);
  useEffect(() => {
    const hear = (event) => {
      if (event.key !== hotkey || !place.current) return;
      event.preventDefault();
      if (!place.current.contains(document.activeElement)) before = document.activeElement;
      (place.current.querySelector(TOAST) ?? place.current).focus();
    };
    window.addEventListener("keydown", hear);
    return () => window.removeEventListener("keydown", hear);
  }, [hotkey]);
  return createElement("div", { ...rest, ref: place, role: "region", tabIndex: -1 }, children);
}

export function Toast({ life, longest, swipe, onGone, children, ...rest }) {
  const [over, end] = useState(false);
  const [held, hold] = useState(false);
  const [moved, move] = useState(0);
  const root = useRef(null);
  const start = useRef(null);
  const left = useRef(life);

  const leave = () => {
    if (root.current?.contains(document.activeElement)) before?.focus?.();
    end(true);
    onGone?.();
  };
  const latest = useRef(leave);
  useEffect(() => {
    latest.current = leave;
  });
  useEffect(() => {
    if (held || over) return undefined;
    const began = performance.now();
    const timer = setTimeout(() => latest.current(), left.current);
    return () => {
      clearTimeout(timer);
      left.current -= performance.now() - began;
    };
  }, [held, over]);
  useEffect(() => {
    const timer = setTimeout(() => latest.current(), longest);
    return () => clearTimeout(timer);
  }, [longest]);

  if (over) return null;
  const events = {
    onPointerEnter: () => hold(true),
    onPointerLeave: () => hold(false),
    onFocus: () => hold(true),
    onBlur: () => hold(false),
    onKeyDown: (event) => event.key === "Escape" && leave(),
    onClick: (event) => event.target.closest("[data-close]") && leave(),
    onPointerDown: (event) => {
      start.current = event.button === 0 ? { x: event.clientX, y: event.clientY, right: 0 } : null;
    },
    onPointerMove: (event) => {
      if (!start.current) return;
      const right = event.clientX - start.current.x;
      if (right < 4 || right < Math.abs(event.clientY - start.current.y)) return;
      root.current.setPointerCapture(event.pointerId);
      start.current.right = right;
      move(right);
    },
    onPointerUp: () => {
      const right = start.current?.right ?? 0;
      start.current = null;
      if (right >= swipe) leave();
      else move(0);
    },
    // A swipe over selected text must not become a drag of that text.
    onDragStart: (event) => event.preventDefault(),
    onPointerCancel: () => {
      start.current = null;
      move(0);
    },
  };
  const style = { ...rest.style, touchAction: "pan-y", ...(moved ? { transform: `translateX(${moved}px)` } : {}) };
  return createElement("div", { ...rest, ...events, style, ref: root, tabIndex: -1, "data-toast": "true" }, children);
}
