// The frame: panels by address, what is served, and a calm word when something is away.

import { ask, listen } from "./api.js";
import { arena, TITLES } from "./arena.js";
import { duel } from "./duel.js";
import { el, fresh, plural, show } from "./dom.js";
import { lists } from "./lists.js";
import { nemesis } from "./nemesis.js";
import { ring } from "./ring.js";
import { slate } from "./slate.js";
import { fromHash, visitor } from "./state.js";
import { speak, spoken } from "./words.js";

const PANELS = { duel, lists, ring, slate, nemesis };
const NAMES = { duel: "", lists: "Lists", ring: "Ring", slate: "Slate", nemesis: "Nemesis" };
const tabs = document.querySelector(".tabs ul");
const main = document.getElementById("panel");
const notice = document.getElementById("notice");
let ready = Promise.resolve(); // no panel can be chosen before the model is described
let current = null;
let showing = null;
let first = true;
let renewed = 0;
let contest = false; // whether the model learnt from comparisons: then the arena comes first, and the duel last

/** Panels of the arena: each asks the service once, and draws. */
for (const panel of Object.keys(TITLES)) {
  NAMES[panel] = TITLES[panel];
  PANELS[panel] = () => {
    const node = el("div", { "aria-busy": "true" });
    return { node, async start(signal) {
      const report = await ask("arena", { signal });
      node.removeAttribute("aria-busy");
      show(node, arena(report)[panel]());
    }, stop() {} };
  };
}

const say = (kind, ...words) => show(notice, el("p", { class: kind }, words));

async function open() {
  await ready;
  const { panel, values } = fromHash();
  const chosen = Object.hasOwn(PANELS, panel) ? panel : contest ? "leaderboard" : "lists";
  showing?.abort();
  current?.stop();
  showing = new AbortController();
  const { signal } = showing;
  for (const link of document.querySelectorAll(".tabs a")) {
    if (link.hash === `#/${chosen}`) {
      link.setAttribute("aria-current", "page");
      const tabs = link.closest(".tabs");
      tabs.scrollLeft = Math.max(0, link.offsetLeft + link.offsetWidth - tabs.clientWidth);
    }
    else link.removeAttribute("aria-current");
  }
  document.title = `${NAMES[chosen]} · sadrec explorer`;
  current = PANELS[chosen](values);
  show(main, current.node);
  main.dataset.panel = chosen;
  delete main.dataset.ready;
  if (!first) main.querySelector("h1")?.focus({ preventScroll: true });
  first = false;
  try {
    await current.start(signal);
    if (!signal.aborted) main.dataset.ready = "true";
  } catch (error) {
    if (error.name !== "AbortError") failed(error);
  }
}

function failed(error) {
  const afresh = () => {
    if (main.dataset.panel === "duel") visitor.keep([]);
    history.replaceState(null, "", `#/${main.dataset.panel}`);
    open();
  };
  current.node.append(el("div", { class: "empty", role: "alert" }, el("h2", {}, "That has no answer"), el("p", {}, error.message),
    el("button", { type: "button", on: { click: afresh } }, "Begin afresh")));
  main.dataset.ready = "failed";
}

function askForKey(refused) {
  return new Promise((done) => {
    const [field, hint] = [fresh("key"), fresh("hint")];
    const input = el("input", { id: field, type: "password", autocomplete: "off", required: true,
      "aria-invalid": refused && "true", "aria-describedby": refused && hint });
    const form = el("form", { class: "key" }, el("label", { for: field }, "This service asks for an API key"), input, el("button", { type: "submit" }, "Use it"),
      refused && el("p", { role: "alert", id: hint }, "That key is not known."));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      show(notice);
      done(input.value);
    });
    show(notice, form);
    input.focus();
  });
}

let keyed = null;

listen({
  away: () => say("away", "The service does not answer. This page keeps asking, and nothing you did is lost."),
  back: () => say("back", "The service is back."),
  changed: () => {
    say("changed", "A new model is served since your last question. What you see is computed again.");
    clearTimeout(renewed); // several workers may exchange it one after the other
    renewed = setTimeout(() => {
      ready = served();
      open();
    }, 300);
  },
  key: (refused) => (keyed ??= askForKey(refused).finally(() => { keyed = null; })),
});

async function served() {
  const model = await ask("describe");
  contest = model.comparisons;
  const single = contest && model.users === 1;
  speak(single ? "contests" : "taste");
  NAMES.duel = spoken.duel.title;
  const names = contest ? [...Object.keys(TITLES), "ring", "slate", ...(single ? [] : ["nemesis"]), "duel"] : ["lists", "duel", "ring", "slate", "nemesis"];
  show(tabs, names.map((panel) => el("li", {}, el("a", { href: `#/${panel}` }, NAMES[panel]))));
  show(document.getElementById("served"),
    `${model.class_name}\u00a0· ${single ? "" : `${plural(model.users, "user")}\u00a0· `}${plural(model.items, "item")}\u00a0· ${plural(model.factors, "factor")}\u00a0· `,
    el("abbr", { title: `The checksum of the model's file: ${model.model}` }, String(model.model).slice(0, 8)));
  if (!model.rivals) say("changed", "This model has T = 1 (BPR): a score for every item. There are no cycles in it, and every panel says so.");
}

addEventListener("hashchange", open);
addEventListener("unhandledrejection", (event) => {
  if (event.reason?.name === "AbortError") event.preventDefault();
  else if (event.reason?.status) {
    event.preventDefault();
    say("away", event.reason.message);
  }
});
ready = served().catch((error) => say("away", error.message));
open();
