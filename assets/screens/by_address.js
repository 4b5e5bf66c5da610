// Content that depends on the address alone, so it is right before the state is about this visit.
import { useSearchParams } from "react-router";

/** Shows its content if the address gives the parameter a value, or if it has not and `given` is false. */
export function ByAddress({ parameter, given, children }) {
  const [asked] = useSearchParams();
  return Boolean(asked.get(parameter)) === given ? children : null;
}
