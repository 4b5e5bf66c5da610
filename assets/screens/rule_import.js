// Rules of another bot or of an export, pasted or from a file. The document is too long for the socket, so it goes to a
// call of its own: first for a look, then to make the chosen rules.
import { createElement as h, useRef, useState } from "react";
import { counted, filled } from "./texts.js";

const LARGEST = 1024 * 1024;
const SOURCES = ["collabland", "guild", "holdfast"];

export function RuleImport({ server, onMade, words }) {
  const [source, setSource] = useState(SOURCES[0]);
  const [text, setText] = useState("");
  const [busy, setBusy] = useState("");
  const [fault, setFault] = useState("");
  const [seen, setSeen] = useState(null);
  const [chosen, setChosen] = useState([]);
  const [made, setMade] = useState(0);
  const file = useRef(null);

  const again = () => {
    setSeen(null);
    setFault("");
    setMade(0);
  };
  const send = async (apply) => {
    if (new Blob([text]).size > LARGEST) {
      setFault(words.large);
      return;
    }
    setBusy(apply ? "apply" : "look");
    setFault("");
    try {
      const answer = await fetch(`/api/servers/${server}/import`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ source, document: text, apply, ...(apply ? { only: chosen } : {}) }),
      });
      const said = await answer.json();
      if (!answer.ok) {
        setFault(said.message ?? words.unread);
      } else if (apply) {
        // What was chosen and is not made says why: the server has changed since the look.
        setSeen(said.rules.length < chosen.length ? { ...said, rules: [] } : null);
        setText("");
        setMade(said.rules.length);
        onMade(said.rules.length);
      } else {
        setSeen(said);
        setMade(0);
        setChosen(said.rules.map((rule) => rule.number));
      }
    } catch {
      setFault(words.unsent);
    } finally {
      setBusy("");
    }
  };
  const choose = async (event) => {
    const given = event.target.files?.[0];
    if (!given) return;
    again();
    if (given.size > LARGEST) setFault(words.large);
    else setText(await given.text());
    if (file.current) file.current.value = "";
  };
  const turn = (number, on) => setChosen(on ? [...chosen, number] : chosen.filter((one) => one !== number));

  return h(
    "div",
    { className: "flex flex-col gap-4", "aria-busy": busy !== "" },
    entry({ words, source, setSource, text, setText, busy, file, choose, again, look: () => send(false) }),
    fault ? h("p", { role: "alert", className: "text-sm font-medium text-error" }, fault) : null,
    h(
      "div",
      { role: "status" },
      made
        ? h(
            "p",
            { className: "text-sm font-medium text-success" },
            counted(words.made, { count: made }),
          )
        : null,
    ),
    seen ? result({ words, seen, chosen, turn, busy, apply: () => send(true), again }) : null,
  );
}

function entry({ words, source, setSource, text, setText, busy, file, choose, again, look }) {
  return h(
    "div",
    { className: "flex flex-col gap-3" },
    h("label", { htmlFor: "import-source", className: "text-sm font-semibold" }, words.source),
    h(
      "select",
      {
        id: "import-source",
        className: "select",
        value: source,
        disabled: busy !== "",
        onChange: (event) => {
          again();
          setSource(event.target.value);
        },
      },
      SOURCES.map((key) => h("option", { key, value: key }, words[key])),
    ),
    h("label", { htmlFor: "import-document", className: "text-sm font-semibold" }, words.document),
    h("textarea", {
      id: "import-document",
      className: "textarea min-h-32 font-mono text-sm",
      value: text,
      onChange: (event) => {
        again();
        setText(event.target.value);
      },
      placeholder: '{"rules": [...]}',
      spellCheck: false,
      disabled: busy !== "",
      "aria-describedby": "import-hint",
    }),
    h("p", { id: "import-hint", className: "muted text-sm" }, words[`${source}Hint`], " ", words.limits),
    h(
      "div",
      { className: "flex flex-wrap items-center gap-3" },
      press(words.look, busy === "look" ? words.reading : "", busy !== "" || !text.trim(), look),
      h(
        "label",
        { className: "btn btn-ghost btn-sm" },
        words.choose,
        h("input", {
          ref: file,
          type: "file",
          accept: ".json,.txt,application/json,text/plain",
          className: "sr-only",
          onChange: choose,
          disabled: busy !== "",
        }),
      ),
    ),
  );
}

function result({ words, seen, chosen, turn, busy, apply, again }) {
  return h(
    "div",
    { className: "flex flex-col gap-4" },
    seen.warning ? h("p", { role: "alert", className: "text-sm font-medium text-warning" }, seen.warning) : null,
    seen.rules.length
      ? h(
          "div",
          null,
          h("h3", { className: "font-semibold" }, filled(words.become, { count: seen.rules.length })),
          h(
            "ul",
            { className: "mt-2 flex max-h-96 flex-col gap-3 overflow-y-auto", tabIndex: 0, "aria-label": words.toMake },
            seen.rules.map((rule) => offered(rule, chosen.includes(rule.number), busy !== "", turn)),
          ),
        )
      : seen.applied
        ? null
        : h("p", { className: "font-medium" }, words.nothing),
    seen.skipped.length
      ? h(
          "div",
          null,
          h("h3", { className: "font-semibold" }, filled(words.skipped, { count: seen.skipped.length })),
          h(
            "ul",
            { className: "mt-2 flex max-h-96 flex-col gap-1 overflow-y-auto text-sm", tabIndex: 0, "aria-label": words.skippedList },
            seen.skipped.map((one, at) =>
              h("li", { key: at, className: "break-words" }, h("span", { className: "font-medium" }, one.what), `: ${one.why}`),
            ),
          ),
        )
      : null,
    h(
      "div",
      { className: "flex flex-wrap gap-3" },
      seen.rules.length
        ? press(
            counted(words.make, { count: chosen.length }),
            busy === "apply" ? words.making : "",
            busy !== "" || !chosen.length,
            apply,
            "btn-primary",
          )
        : null,
      press(words.close, "", busy !== "", again, "btn-ghost"),
    ),
  );
}

function offered(rule, on, busy, turn) {
  return h(
    "li",
    { key: rule.number, className: "rounded-field bg-base-200 p-3" },
    h(
      "label",
      { className: "flex cursor-pointer items-start gap-3" },
      h("input", {
        type: "checkbox",
        className: "checkbox checkbox-sm mt-1",
        checked: on,
        disabled: busy,
        onChange: (event) => turn(rule.number, event.target.checked),
      }),
      h(
        "span",
        { className: "min-w-0 flex-1" },
        h("span", { className: "block break-words font-medium" }, rule.name, " → ", rule.roleName),
        rule.lines.map((line, at) =>
          h(
            "span",
            { key: at, className: "muted block break-words text-sm", style: { paddingInlineStart: `${line.depth * 1.25}rem` } },
            line.text,
          ),
        ),
        rule.notes.map((note, at) =>
          h("span", { key: `note ${at}`, className: "block break-words text-sm text-warning" }, note),
        ),
      ),
    ),
  );
}

function press(label, working, disabled, onClick, kind = "btn-outline") {
  return h(
    "button",
    { type: "button", className: `btn btn-sm ${kind}`, disabled, onClick },
    working && h("span", { className: "loading loading-spinner loading-xs", "aria-hidden": true }),
    working || label,
  );
}
