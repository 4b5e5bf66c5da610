// Text fields that keep what somebody types, however long the server takes to answer.
import { createElement, useLayoutEffect, useRef, useState } from "react";

/** React puts a field back to the server's value after each key; the next key would then be added to an old text. */
function typed(tag) {
  return function Typed({ value, onChange, ...rest }) {
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
    const change = (event) => {
      unanswered.current.push(event.target.value);
      setText(event.target.value);
      onChange?.(event);
    };
    return createElement(tag, { ...rest, value: text, onChange: change });
  };
}

export const TypedInput = typed("input");
export const TypedArea = typed("textarea");
