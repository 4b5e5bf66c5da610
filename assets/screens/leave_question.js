// Asks before a form with unsaved changes is left. It asks in the browser, so it works without a connection.
import { useCallback, useEffect, useRef, useState } from "react";
import { useBlocker } from "react-router";

/** A screen's code sends this before it leaves by itself; `detail` leaves. If it is cancelled, the question is open. */
const LEAVES = "leaves";
/** A link with this attribute gives up what was changed: its own words say so, and nothing is asked. */
const GIVES_UP = "[data-gives-up]";

/**
 * Returns whether the question is open, and its two answers. `late` are the ids of entries that the server gets only
 * when they lose the focus; what is in them counts as a change too.
 */
export function useLeaveQuestion(changed, saved, late) {
  const dirty = useRef(() => false);
  const givenUp = useRef(false);
  useEffect(() => {
    dirty.current = () => !saved && !givenUp.current && (changed || late.some(holds));
  });
  const elsewhere = useCallback(
    ({ currentLocation: here, nextLocation: next }) =>
      (here.pathname !== next.pathname || here.search !== next.search) && dirty.current(),
    [],
  );
  const blocker = useBlocker(elsewhere);
  const [leaves, setLeaves] = useState(null);
  const left = useRef(false);

  useEffect(() => {
    const unload = (event) => {
      if (!left.current && dirty.current()) event.preventDefault();
    };
    const ask = (event) => {
      if (!dirty.current()) return;
      event.preventDefault();
      setLeaves(() => event.detail);
    };
    const click = (event) => {
      givenUp.current = event.target.closest(GIVES_UP) !== null && !event.ctrlKey && !event.metaKey && !event.shiftKey;
    };
    window.addEventListener("click", click, true);
    window.addEventListener("beforeunload", unload);
    window.addEventListener(LEAVES, ask);
    return () => {
      window.removeEventListener("click", click, true);
      window.removeEventListener("beforeunload", unload);
      window.removeEventListener(LEAVES, ask);
    };
  }, []);

  const blocked = blocker.state === "blocked";
  // Saving leads on before the page knows that it is saved.
  useEffect(() => {
    if (blocked && saved) blocker.proceed();
  }, [blocked, saved]);

  return {
    asks: !saved && (blocked || leaves !== null),
    stay: () => {
      setLeaves(null);
      if (blocked) blocker.reset();
    },
    leave: () => {
      if (leaves) {
        left.current = true;
        setLeaves(null);
        leaves();
      } else if (blocked) {
        blocker.proceed();
      }
    },
  };
}

function holds(id) {
  const field = document.getElementById(id);
  // What a text area was given is not compared: it is emptied once the server has its text.
  return field !== null && field.value.trim() !== (field.tagName === "TEXTAREA" ? "" : field.defaultValue);
}
