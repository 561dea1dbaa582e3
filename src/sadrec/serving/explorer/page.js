// A page that stands alone: the views of an arena, by address, from a report that the page holds.

import { arena, TITLES } from "./arena.js";
import { el, show } from "./dom.js";

const report = JSON.parse(document.getElementById("report").textContent);
const views = arena(report);
const main = document.getElementById("panel");

function open(event) {
  const chosen = location.hash.replace(/^#\/?/, "");
  const panel = Object.hasOwn(views, chosen) ? chosen : "leaderboard";
  for (const link of document.querySelectorAll(".tabs a")) {
    if (link.hash === `#/${panel}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  show(main, views[panel]());
  main.dataset.panel = panel;
  if (event) main.querySelector("h1")?.focus({ preventScroll: true });
}

show(document.getElementById("tabs"), Object.entries(TITLES).map(([panel, title]) => el("li", {}, el("a", { href: `#/${panel}` }, title))));
addEventListener("hashchange", open);
open();
