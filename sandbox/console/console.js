// Avoids reloading: refreshes the parts that change without a press, and sends forms in the background.
"use strict";
const EVERY = document.body.classList.contains("tool") ? 2000 : 1000;
const byId = (id) => document.getElementById(id);
let seen = "";
let renewing = null;

/** Replaces children by new ones with the same keys; an unchanged child stays and keeps its focus. */
function merge(part, markup) {
  const fresh = document.createElement("template");
  fresh.innerHTML = markup;
  const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
  const log = part.id === "messages" ? part.parentElement : null;
  const atEnd = log && log.scrollHeight - log.scrollTop - log.clientHeight < 60;
  const keyed = [...fresh.content.children].every((one) => one.dataset.key);
  if (!keyed) {
    if (part.innerHTML !== fresh.innerHTML) part.replaceChildren(fresh.content);
  } else {
    const old = new Map([...part.children].map((one) => [one.dataset.key, one]));
    let before = null;
    for (const one of [...fresh.content.children]) {
      const known = old.get(one.dataset.key);
      old.delete(one.dataset.key);
      let placed = known;
      if (!known || known.outerHTML !== one.outerHTML) {
        placed = one;
        if (known) known.replaceWith(one);
      }
      const next = before ? before.nextElementSibling : part.firstElementChild;
      if (placed !== next) part.insertBefore(placed, next);
      before = placed;
    }
    for (const gone of old.values()) gone.remove();
  }
  if (atEnd) log.scrollTop = log.scrollHeight;
  if (focused && document.activeElement?.id !== focused) byId(focused)?.focus();
}

async function look() {
  const query = new URLSearchParams(location.search);
  query.set("seen", seen);
  const answer = await fetch(`/console/live?${query}`, { cache: "no-store" }).catch(() => null);
  if (!answer || answer.status !== 200) return;
  const { version, parts } = await answer.json();
  seen = version;
  for (const [id, markup] of Object.entries(parts)) {
    const part = byId(id);
    // A part stays as it is while a person is choosing in it.
    if (part && !part.querySelector("select:focus")) merge(part, markup);
  }
}

/** Refreshes now; a call while a refresh is running shares its result. */
function renew() {
  renewing ??= look().finally(() => { renewing = null; });
  return renewing;
}

function say(text, ok) {
  const said = byId("said");
  said.textContent = text;
  said.hidden = !text;
  said.className = ok ? "" : "bad";
  clearTimeout(say.timer);
  if (text && ok) say.timer = setTimeout(() => { said.hidden = true; }, 4000);
}

function open(markup) {
  const place = byId("modal");
  place.innerHTML = markup;
  const dialog = place.querySelector("dialog");
  if (!dialog) return;
  const opener = document.activeElement;
  dialog.removeAttribute("open");
  dialog.showModal();
  dialog.addEventListener("close", () => { place.replaceChildren(); opener?.focus?.(); });
  dialog.querySelector("[data-close]")?.addEventListener("click", (event) => {
    event.preventDefault();
    dialog.close();
  });
}

/** Returns what is sent for a form: a completed option by its value instead of its name. */
function content(form) {
  const data = new FormData(form);
  for (const input of form.querySelectorAll("[data-complete]")) {
    const chosen = input.choices?.get(input.value);
    if (chosen !== undefined) data.set(input.name, chosen);
  }
  return new URLSearchParams(data);
}

/** Sends a form; its action is read as an attribute, since a field may have the name "action". */
async function send(form) {
  const button = form.querySelector("button:not([type=button])");
  const waits = setTimeout(renew, 400);
  form.setAttribute("aria-busy", "true");
  if (button) button.disabled = true;
  const headers = { Accept: "application/json" };
  const answer = await fetch(form.getAttribute("action"), { method: "POST", headers, body: content(form) }).catch(() => null);
  const told = answer?.headers.get("Content-Type")?.includes("json") ? await answer.json() : null;
  clearTimeout(waits);
  form.removeAttribute("aria-busy");
  if (button) button.disabled = false;
  if (!told) return say("The sandbox does not answer.", false);
  say(told.said, told.ok);
  if (told.ok && form.closest("dialog")) form.closest("dialog").close();
  if (told.ok && (form.id === "typing" || form.classList.contains("command"))) leave();
  if (told.modal) open(told.modal);
  await renew();
}

function leave() {
  const typed = byId("typed");
  typed.value = "";
  offer();
  typed.focus();
}

/** Shows the commands that begin with what was typed. */
function offer() {
  const text = byId("typed").value.trim().toLowerCase();
  const asked = text.startsWith("/");
  const wanted = text.slice(1).split(" ")[0];
  let found = 0;
  for (const one of document.querySelectorAll("[data-command]")) {
    one.hidden = !asked || !one.dataset.command.startsWith(wanted);
    found += one.hidden ? 0 : 1;
  }
  byId("no-command").hidden = !asked || found > 0;
}

/** Enter takes the first command: at once, or with its options to fill in first. */
function take() {
  const form = document.querySelector("[data-command]:not([hidden]) form");
  if (!form) return;
  const option = form.querySelector("input:not([type=hidden]), select");
  if (option && document.activeElement !== option) option.focus();
  else form.requestSubmit();
}

const complete = (() => {
  let timer = 0;
  return (input) => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const data = content(input.form);
      data.set(input.name, input.value);
      data.set("focused", input.dataset.complete);
      const answer = await fetch("/console/complete", { method: "POST", body: data }).catch(() => null);
      if (!answer?.ok) return;
      const { choices } = await answer.json();
      input.choices = new Map(choices.map((one) => [one.name, String(one.value)]));
      input.list.replaceChildren(...choices.map((one) => new Option(one.name, one.name)));
    }, 150);
  };
})();

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.id === "typing") {
    event.preventDefault();
    const text = byId("typed").value.trim();
    if (text.startsWith("/")) take();
    else if (text) send(form);
  } else if ("live" in form.dataset) {
    event.preventDefault();
    send(form);
  }
});
document.addEventListener("input", (event) => {
  if (event.target.id === "typed") offer();
  if (event.target.dataset.complete) complete(event.target);
});
document.addEventListener("focusin", (event) => {
  if (event.target.dataset?.complete) complete(event.target);
});
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select, dialog");
  if (event.key === "/" && !typing && byId("typed")) {
    event.preventDefault();
    byId("typed").value = "/";
    offer();
    byId("typed").focus();
  }
  if (event.key === "Escape" && event.target.closest(".composer")) leave();
});

const log = byId("log");
if (log) log.scrollTop = log.scrollHeight;
open(byId("modal").innerHTML);
setInterval(() => { if (!document.hidden) renew(); }, EVERY);
document.addEventListener("visibilitychange", () => { if (!document.hidden) renew(); });
renew();
