// Elements and numbers. Data reaches the page as text nodes and attributes only, never as markup.

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    else if (name === "vars") for (const [key, item] of Object.entries(value)) node.style.setProperty(`--${key}`, item);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...real(children));
  return node;
}

const real = (children) => children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false);

/** Show these children instead, and leave the focus where it was: on the part with the same data-part, if there is one. */
export function redraw(node, ...children) {
  const part = node.contains(document.activeElement) ? document.activeElement.dataset.part : undefined;
  show(node, ...children);
  if (part) node.querySelector(`[data-part="${part}"]`)?.focus({ preventScroll: true });
}

/** Show these children instead of what is there; lists are flattened, and what is not there is left out. */
export const show = (node, ...children) => node.replaceChildren(...real(children));

export const el = (tag, properties = {}, ...children) => fill(document.createElement(tag), properties, children);
export const svg = (tag, properties = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);

/** Return what some work comes to; the node says that it is busy meanwhile. */
export async function whileBusy(node, work) {
  node.setAttribute("aria-busy", "true");
  try {
    return await work();
  } finally {
    node.removeAttribute("aria-busy");
  }
}

// -- titles ------------------------------------------------------------------------------------------------------

const titles = new Map();
const keyOf = (id) => JSON.stringify(id);

export function remember(item) {
  if (item && item.item !== undefined) titles.set(keyOf(item.item), item);
  return item;
}
export const entryOf = (id) => titles.get(keyOf(id));
export const titleOf = (id) => entryOf(id)?.title || String(id);
export const sameId = (one, other) => keyOf(one) === keyOf(other);

/** The title of an item, isolated so that a title in another direction of writing does not turn the sentence. */
export function name(id) {
  const [full, shown] = [titleOf(id), cut(titleOf(id), 80)];
  return el("bdi", { class: "title", title: full !== shown && full }, shown);
}

export function picture(id, kind = null) {
  const source = entryOf(id)?.picture;
  if (!source) return null;
  return el("img", { src: source, alt: "", class: kind, loading: "lazy", referrerpolicy: "no-referrer",
    on: { error: (event) => event.target.remove() } });
}

/** The title of an item, with its small picture before it where there is one. */
export const pictured = (id) => [picture(id, "thumb"), name(id)];

export function cut(text, most) {
  const letters = Array.from(text);
  return letters.length <= most ? text : letters.slice(0, most - 1).join("").trimEnd() + "…";
}

// -- numbers -----------------------------------------------------------------------------------------------------

const minus = (text) => text.replace("-", "−");

export function percent(value, extra = 0) {
  if (!extra && value > 0.995 && value < 1) return "over 99\u202f%";
  if (!extra && value > 0 && value < 0.0005) return "under 0.1\u202f%";
  return `${(100 * value).toFixed(extra + (value > 0 && value < 0.01 ? 1 : 0))}\u202f%`;
}
/** How sure the model is, from draws: however many agree, it is never quite 0 or 1. */
export const certainty = (value) => percent(Math.min(Math.max(value, 1e-4), 1 - 1e-4));
export const decimal = (value, digits = 2) => minus(value.toFixed(digits));
export const signed = (value, digits = 2) => (value >= 0 ? "+" : "") + decimal(value, digits);
export const whole = (value) => value.toLocaleString("en");
export const plural = (count, one, many = one + "s") => `${whole(count)} ${count === 1 ? one : many}`;
export function ordinal(place) {
  const tail = place % 100 > 10 && place % 100 < 14 ? "th" : { 1: "st", 2: "nd", 3: "rd" }[place % 10] || "th";
  return `${whole(place)}${tail}`;
}

/** A number as people read it, with the number itself, and what it is, in the markup. */
export const number = (what, value, shown) => el("data", { value, "data-what": what }, shown);

// -- small parts -------------------------------------------------------------------------------------------------

export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Tell a screen reader in one sentence what has changed; everybody else sees it. */
export const announce = (text) => document.getElementById("announced").replaceChildren(text);

export const hiddenWord = (text) => el("span", { class: "unseen" }, text);

export const heading = (title, lead) => [
  el("h1", { tabindex: "-1" }, title), el("p", { class: "lead" }, lead)];

export function bar(share, label) {
  const width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return el("span", { class: "bar", "aria-hidden": "true", title: label }, el("span", { vars: { width } }));
}

let count = 0;
export const fresh = (prefix) => `${prefix}-${(count += 1)}`;
