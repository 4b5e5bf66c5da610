// A list of addresses, pasted or from a file. It goes to a call of its own, because it is too long for the socket.
import { createElement as h, useEffect, useRef, useState } from "react";
import { counted, filled } from "./texts.js";

const LARGEST = 2 * 1024 * 1024;
const ENTRY = "addresses";
const REFUSED = "";
/** What is typed for a condition and not stored, and why not; it is shown again when the condition is opened again. */
const unstored = new Map();

/** `place` names the form as it was opened and, after a colon, the condition. */
export function Addresses({ place, server, name, count, onStored, label, hint, words }) {
  const kept = unstored.get(place);
  const [text, setText] = useState(kept?.text ?? "");
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState(kept?.fault ?? null);
  const file = useRef(null);
  const sent = useRef("");
  const sending = useRef(null);
  /** The list that was stored last, until the page has it. */
  const stored = useRef(null);

  const type = (typed) => {
    setText(typed);
    unstored.set(place, { text: typed, fault });
  };
  const refuse = (why) => {
    setFault(why);
    // By now another condition may be open.
    if (unstored.has(place)) unstored.get(place).fault = why;
    return null;
  };
  const send = (content) => {
    sent.current = content;
    sending.current = store(content).finally(() => { sending.current = null; });
    return sending.current;
  };
  /** Passes the stored list on to the page, and returns its name. */
  const tell = () => {
    onStored(stored.current.list, stored.current.count);
    return stored.current.list;
  };
  /** Returns the name of the stored list; null if it was refused. */
  const store = async (content) => {
    if (new Blob([content]).size > LARGEST) return refuse({ message: words.large });
    setBusy(true);
    setFault(null);
    try {
      const answer = await fetch(`/api/servers/${server}/address-lists`, {
        method: "POST",
        headers: { "Content-Type": "text/csv" },
        body: content,
      });
      const said = await answer.json();
      if (answer.ok) {
        setText("");
        unstored.delete(place);
        stored.current = said;
        return tell();
      }
      return refuse(said);
    } catch {
      return refuse({ message: words.unsent });
    } finally {
      setBusy(false);
      if (file.current) file.current.value = "";
    }
  };
  useEffect(() => {
    const [opened] = place.split(":");
    for (const other of unstored.keys()) if (!other.startsWith(`${opened}:`)) unstored.delete(other);
  }, [place]);
  useEffect(() => {
    if (stored.current?.list === name) stored.current = null;
  }, [name]);
  useHeldForm(name, () => {
    if (sending.current || text.trim()) return sending.current ?? send(text);
    // The page was told and does not have it: what it was told can be lost with the connection.
    return stored.current && stored.current.list !== name ? Promise.resolve(tell()) : null;
  });
  const choose = async (event) => {
    const chosen = event.target.files?.[0];
    if (!chosen) return;
    if (chosen.size > LARGEST) setFault({ message: words.large });
    else await send(await chosen.text());
  };
  const mistakes = fault?.mistakes ?? [];
  const more = (fault?.mistakesInAll ?? 0) - mistakes.length;

  return h(
    "div",
    { className: "flex flex-col gap-3", "aria-busy": busy },
    h("label", { htmlFor: ENTRY, className: "text-sm font-semibold" }, label),
    h("textarea", {
      id: ENTRY,
      className: "textarea min-h-32 font-mono text-sm",
      value: text,
      onChange: (event) => type(event.target.value),
      placeholder: "0x...\n0x...",
      spellCheck: false,
      // The field may be left to save the rule, or to open another condition.
      onBlur: () => text.trim() && text !== sent.current && send(text),
      disabled: busy,
      "aria-invalid": fault !== null,
      "aria-describedby": fault ? "addresses-hint addresses-error" : "addresses-hint",
    }),
    h("p", { id: "addresses-hint", className: "muted text-sm" }, hint),
    h(
      "div",
      { className: "flex flex-wrap items-center gap-3" },
      h(
        "button",
        {
          type: "button",
          className: "btn btn-outline btn-sm",
          disabled: busy || !text.trim(),
          onClick: () => send(text),
        },
        busy && h("span", { className: "loading loading-spinner loading-xs", "aria-hidden": true }),
        busy ? words.reading : words.use,
      ),
      h(
        "label",
        { className: "btn btn-ghost btn-sm" },
        words.choose,
        h("input", {
          ref: file,
          type: "file",
          accept: ".csv,.txt,text/csv,text/plain",
          className: "sr-only",
          onChange: choose,
          disabled: busy,
        }),
      ),
    ),
    h(
      "div",
      { role: "status" },
      !busy && !fault && name
        ? h(
            "p",
            { className: "text-sm font-medium text-success" },
            counted(words.stored, { count: Number(count).toLocaleString(document.documentElement.lang) }, Number(count)),
            " ",
            h(
              "a",
              { className: "link", href: `/api/servers/${server}/address-lists/${name}`, download: true },
              words.download,
            ),
          )
        : null,
    ),
    fault
      ? h(
          "div",
          { id: "addresses-error", role: "alert", className: "text-sm font-medium text-error" },
          mistakes.length
            ? h(
                "ul",
                { className: "max-h-60 overflow-y-auto", tabIndex: 0, "aria-label": words.wrong },
                mistakes.map((one, at) => h("li", { key: at }, filled(words.line, one))),
                more > 0 ? h("li", { key: "more" }, filled(words.more, { count: more })) : null,
              )
            : h("p", null, fault.message ?? words.unread),
        )
      : null,
  );
}

/**
 * Holds the rule's form back while a list is in the entry or on its way, or the rule would be saved with the list before
 * it. `store` returns the promise of the stored list's name, or null where there is nothing to wait for. The form is
 * submitted once the page has that list; a refused list gets the focus instead.
 */
function useHeldForm(name, store) {
  const [awaited, wait] = useState(null);
  useEffect(() => {
    const form = document.getElementById(ENTRY)?.form;
    const hold = (event) => {
      const storing = store();
      if (!storing) return;
      event.preventDefault();
      event.stopPropagation();
      storing.then((list) => wait(list ?? REFUSED));
    };
    form?.addEventListener("submit", hold, true);
    return () => form?.removeEventListener("submit", hold, true);
  });
  useEffect(() => {
    if (awaited !== REFUSED && (awaited === null || awaited !== name)) return;
    wait(null);
    const entry = document.getElementById(ENTRY);
    if (awaited === REFUSED) entry?.focus();
    else entry?.form?.requestSubmit();
  }, [awaited, name]);
}
