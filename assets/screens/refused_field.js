// Leads to the field that a form refused: the keyboard, and the window, which may show another part of the form.
import { useEffect } from "react";

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
