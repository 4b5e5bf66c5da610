// Something that happens again and again while a screen is open.
import { useEffect, useRef } from "react";

export function Every({ milliseconds, seenOnly, onTurn }) {
  const turn = useRef(onTurn);
  useEffect(() => {
    turn.current = onTurn;
  });
  useEffect(() => {
    const timer = setInterval(() => seenOnly && document.hidden || turn.current?.(), milliseconds);
    return () => clearInterval(timer);
  }, [milliseconds, seenOnly]);
  return null;
}
