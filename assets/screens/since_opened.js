// Content that is about this visit to a screen: hidden while the state is still that of the visit before.
import { useEffect, useState } from "react";
import { useLocation, useNavigationType } from "react-router";

let went = false; // whether Back or Forward was used since the document was loaded
if (typeof window !== "undefined") window.addEventListener("popstate", () => { went = true; });

let opened = {}; // the place in the history where such a screen is open, and the turn that it had at first

export function SinceOpened({ turn, before, children }) {
  const place = useLocation().key;
  const kind = useNavigationType();
  const [first] = useState(() => {
    // A document that was just loaded has no state of a visit before.
    if (opened.place !== place) opened = { place, turn: kind === "POP" && !went ? null : turn };
    return opened.turn;
  });
  // A session that ends also takes the content away, but the person stays at this place.
  useEffect(() => () => {
    if (window.history.state?.key !== place) opened = {};
  }, [place]);
  return (turn === first) === before ? children : null;
}
