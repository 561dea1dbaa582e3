// Choosing an item by its title, and a person: yourself, everybody, or a user.

import { ask, query } from "./api.js";
import { el, fresh, pictured, percent, plural, show } from "./dom.js";
import { spoken, WORDS } from "./words.js";

/** A field with suggestions that works with keys, a mouse and a screen reader (the ARIA combobox pattern). */
export function combobox({ label, hint, search, render, pick, part, text = "" }) {
  const [field, list, help] = [fresh("field"), fresh("list"), fresh("hint")];
  let matches = [];
  let at = -1;
  let asking = null;

  const input = el("input", {
    id: field, type: "text", role: "combobox", autocomplete: "off", spellcheck: "false", value: text, dir: "auto", "data-part": part,
    "aria-expanded": "false", "aria-controls": list, "aria-autocomplete": "list", "aria-describedby": help,
  });
  const options = el("ul", { id: list, role: "listbox", "aria-label": label, hidden: true });
  const status = el("p", { class: "quiet", role: "status", id: help }, hint ?? "");

  const close = () => {
    options.hidden = true;
    at = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const mark = (place) => {
    at = place;
    [...options.children].forEach((option, index) => option.setAttribute("aria-selected", String(index === at)));
    const active = options.children[at];
    if (active) {
      input.setAttribute("aria-activedescendant", active.id);
      active.scrollIntoView({ block: "nearest" });
    }
  };
  const choose = (place) => {
    const chosen = matches[place];
    close();
    if (chosen !== undefined) pick(chosen, input);
  };
  const open = async () => {
    asking?.abort();
    asking = new AbortController();
    try {
      matches = await search(input.value.trim(), asking.signal);
    } catch (error) {
      if (error.name !== "AbortError") show(status, error.message);
      return;
    }
    show(options, matches.map((one, index) => el("li", {
      role: "option", id: fresh("option"), "aria-selected": "false",
      on: { pointerdown: (event) => event.preventDefault(), click: () => choose(index) },
    }, render(one))));
    options.hidden = !matches.length || document.activeElement !== input;
    input.setAttribute("aria-expanded", String(!options.hidden));
    show(status, matches.length ? (hint ?? "") : "Nothing has this name.");
    at = -1;
  };
  let later = 0;
  input.addEventListener("input", () => {
    clearTimeout(later);
    later = setTimeout(open, 120);
  });
  input.addEventListener("click", () => options.hidden && open());
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (options.hidden) open();
      else mark((at + (event.key === "ArrowDown" ? 1 : matches.length + (at < 0 ? 0 : -1))) % matches.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (!options.hidden && matches.length) choose(Math.max(at, 0));
      else open();
    } else if (event.key === "Escape" && !options.hidden) {
      event.preventDefault();
      close();
    }
  });
  return el("div", { class: "combobox" }, el("label", { for: field }, label), input, options, status);
}

const searchItems = async (text, signal) =>
  (await ask(query("items", { query: text, N: 12 }), { signal })).items.map((one) => one.item);

export const itemField = (label, pick, options = {}) =>
  combobox({ label, search: searchItems, render: (id) => pictured(id), pick, ...options });

const searchUsers = async (text, signal) =>
  (await ask(query("users", { query: text, order: text ? "id" : "intransitivity", N: 12 }), { signal })).users;

/** Whose taste: {you: answers}, {user} or {} for everybody. */
export function whoField(who, answers, pick) {
  const group = fresh("who");
  const choice = (value, label, checked, disabled) => {
    const box = fresh("choice");
    const input = el("input", { type: "radio", name: group, id: box, value, checked, disabled, "data-part": `who-${value}` });
    return el("span", { class: "choice" }, input, el("label", { for: box }, label));
  };
  const user = combobox({
    label: spoken.who.field,
    part: "who",
    hint: "Those whose preferences scores explain least come first.",
    text: who.user === undefined ? "" : String(who.user),
    search: searchUsers,
    render: (one) => [`${one.user} `, el("span", { class: "quiet" }, `${percent(one.intransitivity)} unexplained`)],
    pick: (one) => pick({ user: one.user }),
  });
  user.hidden = who.user === undefined;
  const kind = who.user !== undefined ? "user" : who.you?.length ? "you" : "everybody";
  const set = el("fieldset", { class: "who" },
    el("legend", {}, spoken.who.legend),
    el("div", { class: "choices" },
      choice("everybody", spoken.who.all, kind === "everybody"),
      spoken !== WORDS.contests && choice("user", spoken.who.one, kind === "user"),
      choice("you", answers.length ? `${spoken.who.own} (${plural(answers.length, spoken.duel.answer, spoken.duel.answers)})` : spoken.who.own, kind === "you",
        !answers.length && kind !== "you")),
    user);
  set.addEventListener("change", (event) => {
    if (event.target.type !== "radio") return;
    user.hidden = event.target.value !== "user"; // the focus stays: the next arrow goes on, Tab goes into the field
    if (event.target.value !== "user") pick(event.target.value === "you" ? { you: answers } : {});
  });
  return set;
}

export const whose = (who) =>
  who.user !== undefined ? `user ${who.user}` : who.you?.length ? spoken.who.own : spoken.who.of;

/** "your preferences", "the preferences of user 7", or "the margins of all matches". */
export const their = (who, what) =>
  who.user === undefined && who.you?.length ? `your ${what}` : `the ${what} of ${whose(who)}`;
