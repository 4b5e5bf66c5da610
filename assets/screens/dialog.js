// The content of a modal dialog: when it closes, the focus goes back to what had it before.
import { createElement, useRef } from "react";
import { Content } from "@radix-ui/react-dialog";
import { comeBack, placeOfFocus } from "./focus.js";

/** Radix itself gives the focus back only to a trigger inside the dialog's root; our dialogs are opened by the state. */
export function DialogContent(props) {
  const before = useRef(null);
  const restore = (event) => {
    event.preventDefault();
    comeBack(before.current);
  };
  return createElement(Content, {
    ...props,
    onOpenAutoFocus: () => { before.current = placeOfFocus(); },
    onCloseAutoFocus: restore,
  });
}
