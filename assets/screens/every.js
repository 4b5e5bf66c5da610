// Something that happens again and again while a screen is open.
import { useEffect, useRef } from "react";

const CONTROLS = "a, button, input, label, select, summary, textarea";
/** A pointer that moved over a control within this time may be about to press it. */
const AIMING = 1_000;
let aimedAt = -Infinity;
if (typeof window !== "undefined") {
  window.addEventListener("pointermove", ({ target }) => {
    if (target.closest?.(CONTROLS)) aimedAt = performance.now();
  });
}

export function Every({ milliseconds, seenOnly, onTurn }) {
  const turn = useRef(onTurn);
  useEffect(() => {
    turn.current = onTurn;
  });
  useEffect(() => {
    // What only refreshes the display would be unseen, or would move what is about to be pressed.
    const needless = () => seenOnly && (document.hidden || performance.now() - aimedAt < AIMING);
    const timer = setInterval(() => needless() || turn.current?.(), milliseconds);
    return () => clearInterval(timer);
  }, [milliseconds, seenOnly]);
  return null;
}
