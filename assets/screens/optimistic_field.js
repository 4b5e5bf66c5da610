// Fields that keep what somebody types or chooses, however long the server takes to answer.
import { createElement, useEffect, useLayoutEffect, useRef, useState } from "react";

const PATIENCE = 10_000;

/**
 * React puts a field back to the server's value at once; the next key would then be added to an old text, and a choice
 * would jump back for as long as the answer takes. A choice that is not confirmed in time is put back: no text is.
 */
function optimistic(tag, patience = 0) {
  return function Optimistic({ value, onChange, ...rest }) {
    const [text, setText] = useState(value);
    const unanswered = useRef([]);
    useLayoutEffect(() => {
      const at = unanswered.current.indexOf(value);
      if (at >= 0) {
        unanswered.current.splice(0, at + 1);
      } else {
        // Not an answer to what was typed: the server fills the field in, or empties it.
        unanswered.current = [];
        setText(value);
      }
    }, [value]);
    useEffect(() => {
      if (!patience || text === value) return undefined;
      const timer = setTimeout(() => {
        unanswered.current = [];
        setText(value);
      }, patience);
      return () => clearTimeout(timer);
    }, [text, value]);
    const change = (event) => {
      unanswered.current.push(event.target.value);
      setText(event.target.value);
      onChange?.(event);
    };
    return createElement(tag, { ...rest, value: text, onChange: change });
  };
}

export const OptimisticInput = optimistic("input");
export const OptimisticArea = optimistic("textarea");
export const OptimisticSelect = optimistic("select", PATIENCE);
