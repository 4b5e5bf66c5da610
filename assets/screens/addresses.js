// A list of addresses, pasted or from a file. It goes to a call of its own, because it is too long for the socket.
import { createElement as h, useRef, useState } from "react";

const LARGEST = 2 * 1024 * 1024;

export function Addresses({ server, name, count, onStored, label, hint }) {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState(null);
  const file = useRef(null);

  const send = async (content) => {
    if (new Blob([content]).size > LARGEST) {
      setFault({ message: "The list is larger than 2 MiB." });
      return;
    }
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
        onStored(said.list, said.count);
      } else {
        setFault(said);
      }
    } catch {
      setFault({ message: "The list could not be sent. Please try again." });
    } finally {
      setBusy(false);
      if (file.current) file.current.value = "";
    }
  };
  const choose = async (event) => {
    const chosen = event.target.files?.[0];
    if (!chosen) return;
    if (chosen.size > LARGEST) setFault({ message: "The file is larger than 2 MiB." });
    else await send(await chosen.text());
  };
  const mistakes = fault?.mistakes ?? [];
  const more = (fault?.mistakesInAll ?? 0) - mistakes.length;

  return h(
    "div",
    { className: "flex flex-col gap-3", "aria-busy": busy },
    h("label", { htmlFor: "addresses", className: "text-sm font-semibold" }, label),
    h("textarea", {
      id: "addresses",
      className: "textarea min-h-32 font-mono text-sm",
      value: text,
      onChange: (event) => setText(event.target.value),
      placeholder: "0x...\n0x...",
      spellCheck: false,
      disabled: busy,
      "aria-describedby": "addresses-hint",
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
        busy ? "Reading the list..." : "Use these addresses",
      ),
      h(
        "label",
        { className: "btn btn-ghost btn-sm" },
        "Choose a CSV file",
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
            `${Number(count).toLocaleString("en")} ${count === "1" ? "address is" : "addresses are"} on the list. `,
            h(
              "a",
              { className: "link", href: `/api/servers/${server}/address-lists/${name}`, download: true },
              "Download",
            ),
          )
        : null,
    ),
    fault
      ? h(
          "div",
          { role: "alert", className: "text-sm font-medium text-error" },
          mistakes.length
            ? h(
                "ul",
                { className: "max-h-60 overflow-y-auto", tabIndex: 0, "aria-label": "What is wrong in the list" },
                mistakes.map((one, at) => h("li", { key: at }, `Line ${one.line}: ${one.reason} (${one.text})`)),
                more > 0 ? h("li", { key: "more" }, `And ${more} more.`) : null,
              )
            : h("p", null, fault.message ?? "The list could not be read."),
        )
      : null,
  );
}
