/** Puts values that change on the page into texts. While pages are prerendered a text is a mark (locales/text_marks.py). */

const isMark = (text) => text.startsWith("~t:");

const kept = (mark, values) => {
  const units = Array.from(JSON.stringify(values).split(""), (unit) => unit.charCodeAt(0).toString(16).padStart(4, "0"));
  return `${mark}~v:${units.join("")}~`;
};

/** The text with each {name} in it replaced. */
export const filled = (text, values) =>
  isMark(text) ? kept(text, values) : text.replace(/\{(\w+)\}/g, (_, name) => String(values[name] ?? ""));

/** The form for a number (`values.count`) of a text that has one for each kind of number, with its values. */
export const counted = (forms, values, count = values.count) => {
  if (isMark(forms)) return kept(forms, values);
  const parts = forms.split("\x1f");
  const kind = new Intl.PluralRules(document.documentElement.lang).select(count);
  return filled(parts[parts.indexOf(parts.includes(kind) ? kind : "other") + 1], values);
};

/** The first letter of a name, which may be a sign of several characters, such as an emoji. */
export const initial = (name) => {
  const signs = Intl.Segmenter ? Array.from(new Intl.Segmenter().segment(name), (one) => one.segment) : Array.from(name);
  return (signs.find((one) => one.trim()) ?? "").toUpperCase();
};
