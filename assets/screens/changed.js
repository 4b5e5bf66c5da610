import { useEffect } from "react";

/** Shows nothing; says so when its value is another one, and once at the beginning. */
export function Changed({ value, onTurn }) {
  useEffect(() => { onTurn(); }, [value]);
  return null;
}
