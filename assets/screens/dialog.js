// The content of a modal dialog: when it closes, the focus goes back to what had it before.
import { createElement, useRef } from "react";
import { Content } from "@radix-ui/react-dialog";
import { focusMain } from "./arrival.js";

/** Radix itself gives the focus back only to a trigger inside the dialog's root; our dialogs are opened by the state. */
export function DialogContent(props) {
  const before = useRef(null);
  const restore = (event) => {
    event.preventDefault();
    if (before.current?.isConnected) {
      before.current.focus();
      whenGone(before.current, focusMain);
    } else {
      focusMain();
    }
  };
  return createElement(Content, {
    ...props,
    onOpenAutoFocus: () => { before.current = document.activeElement; },
    onCloseAutoFocus: restore,
  });
}

/** Calls `then` if the control disappears while it has the focus, as the button of a row that was just deleted does. */
function whenGone(control, then) {
  const watch = new MutationObserver(() => {
    if (control.isConnected) return;
    end();
    if (document.activeElement === document.body) then();
  });
  const end = () => {
    watch.disconnect();
    control.removeEventListener("blur", left);
  };
  // Chromium sends this event also when the control is removed or disabled; then nothing else has the focus.
  const left = () => setTimeout(() => document.activeElement !== document.body && end());
  control.addEventListener("blur", left);
  watch.observe(document.body, { childList: true, subtree: true });
}
