// Where the keyboard goes on when the control that it was at goes away, is disabled for a while, or is elsewhere.
import { useEffect, useRef } from "react";

const CONTROLS = "a[href], button, input, select, summary, textarea";
/** Fields for which a phone shows its keyboard, over what is read. */
const TYPED = "input:not([type=checkbox], [type=radio]), textarea";
/** Parts of the page within which the focus stays. */
const ROOM = "main, [role=dialog]";
/** No change of the page for so long means that what replaces a control is there. */
const SETTLED = 100;

/** The control that has the focus or had it last, and its places: the elements around it, each with what came first. */
let kept = null;
let settling = 0;

export function focusMain() {
  const main = document.getElementById("content");
  if (!main) return;
  main.tabIndex = -1;
  main.focus({ preventScroll: true });
}

function placeOf(control) {
  const places = [];
  for (let at = control; at.closest(ROOM) && !at.matches(ROOM); at = at.parentElement) {
    places.push({ around: at.parentElement, before: [...at.parentElement.children].indexOf(at) });
  }
  return { control, places };
}

/** What has the focus, or had it until it was disabled, as a button is while it works, and where that is in the page. */
export function placeOfFocus() {
  const control = document.activeElement;
  return control === document.body && kept ? kept : placeOf(control);
}

/** Gives the focus back to a control, or to what is now in its place; null is a place that nobody knows. */
export function comeBack(place) {
  kept = place;
  if (!kept || !settle()) focusMain();
}

/** Keeps the focus in the page for as long as it is open. */
export function keepFocus() {
  const lost = () => document.activeElement === document.body;
  const come = ({ target }) => { kept = target.closest?.(ROOM) ? placeOf(target) : null; };
  // It was left for nothing else, unless the control has gone or is disabled.
  const leave = ({ target }) => setTimeout(() => {
    if (kept?.control === target && lost() && target.isConnected && !target.disabled) kept = null;
  });
  const changes = new MutationObserver(() => {
    if (!kept || !lost()) return;
    clearTimeout(settling);
    settling = setTimeout(() => kept && lost() && settle(), SETTLED);
  });
  document.addEventListener("focusin", come);
  document.addEventListener("focusout", leave);
  changes.observe(document.body, { childList: true, subtree: true, attributeFilter: ["disabled"] });
  return () => {
    document.removeEventListener("focusin", come);
    document.removeEventListener("focusout", leave);
    changes.disconnect();
  };
}

/** Returns whether the focus is where it was, or will be once a control is no longer disabled. */
function settle() {
  const { control, places } = kept;
  if (control.isConnected && control.disabled) return true;
  const next = control.isConnected ? control : document.getElementById(control.id) ?? nearest(places);
  next?.focus({ preventScroll: true });
  // Who uses the keyboard sees where it is now; under a pointer nothing moves.
  if (next?.matches(":focus-visible")) next.scrollIntoView({ block: "nearest" });
  return Boolean(next);
}

function nearest(places) {
  for (const { around, before } of places) {
    if (!around.isConnected) continue;
    const parts = [...around.children];
    const after = parts.slice(before).flatMap(controls);
    const found = after[0] ?? parts.slice(0, before).flatMap(controls).at(-1);
    if (found) return found;
  }
  return null;
}

function controls(part) {
  const found = part.matches(CONTROLS) ? [part] : [...part.querySelectorAll(CONTROLS)];
  const byTouch = window.matchMedia("(pointer: coarse)").matches;
  return found.filter((one) =>
    !one.disabled && one.tabIndex >= 0 && one.checkVisibility() && !(byTouch && one.matches(TYPED)));
}

/** Leads to the field that a form refused: the keyboard, and the window, which may show another part of the form. */
export function RefusedField({ turn, field }) {
  useEffect(() => {
    const control = field ? (document.getElementById(field) ?? document.getElementsByName(field)[0]) : undefined;
    if (!control) return undefined;
    control.setAttribute("aria-invalid", "true");
    control.focus({ preventScroll: true });
    control.scrollIntoView({ block: "center" });
    return () => control.removeAttribute("aria-invalid");
  }, [turn, field]);
  return null;
}

/** Leads to the first field of what a button has added, unless the keyboard has gone elsewhere meanwhile. */
export function NewField({ turn, field }) {
  const before = useRef(turn);
  useEffect(() => {
    if (before.current === turn) return;
    before.current = turn;
    const control = document.getElementById(field);
    if (!control || !document.activeElement.matches("body, button")) return;
    control.focus({ preventScroll: true });
    control.scrollIntoView({ block: "center" });
  }, [turn, field]);
  return null;
}
