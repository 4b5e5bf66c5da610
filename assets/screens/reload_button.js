// A button that loads the page again, with its whole address. It needs no connection to the server.
import { createElement } from "react";

export function Reload({ children, ...rest }) {
  return createElement("button", { type: "button", onClick: () => window.location.reload(), ...rest }, children);
}
