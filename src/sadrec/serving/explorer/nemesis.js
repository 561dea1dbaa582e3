// Nemesis: what beats a popular item head to head, and for what share of the users.

import { ask, query } from "./api.js";
import { announce, el, heading, name, number, ordinal, percent, pictured, redraw, sameId, show, signed, titleOf, whileBusy, whole } from "./dom.js";
import { itemField } from "./pick.js";
import { id, replace } from "./state.js";

export function nemesis(values) {
  let item = id(values.item);
  let popular = [];

  const controls = el("div", { class: "controls" });
  const result = el("div");
  const node = el("div", { class: "panel-nemesis" },
    heading("Nemesis", `What do most people prefer to a favourite, when it is one against one?
      It need not be another favourite.`),
    controls, result);

  async function again(change, signal) {
    change?.();
    let answer;
    await whileBusy(result, async () => {
      if (!popular.length) popular = (await ask(query("popular", { N: 6 }), { signal })).items.map((one) => one.item);
      // Unless an item is named, the first popular one that something beats; not all are tried.
      for (const one of item === undefined ? popular.slice(0, 3) : [item]) {
        const report = await ask(query("nemesis", { item: one, N: 10 }), { signal });
        if (!answer || report.nemeses[0]?.share > 0.5) answer = report;
        if (answer.nemeses[0]?.share > 0.5) break;
      }
      item = answer.item;
    });
    replace("nemesis", { item });
    drawControls();
    draw(answer);
  }

  function drawControls() {
    redraw(controls,
      el("div", { class: "choices", role: "group", "aria-label": "Popular items" }, popular.map((one, place) => el("button", {
        type: "button", class: "pill", "aria-pressed": String(sameId(one, item)),
        on: { click: () => again(() => { item = one; }).then(() => controls.querySelectorAll(".pill")[place]?.focus()) } }, name(one)))),
      itemField("Another item", (chosen) => again(() => { item = chosen; }), { part: "item" }));
  }

  function draw(answer) {
    const [most] = answer.nemeses;
    announce(most ? `${titleOf(item)}: ${percent(most.share)} of the users prefer ${titleOf(most.item)}.` : "There is no other item.");
    const beating = answer.nemeses.filter((one) => one.share > 0.5);
    const underdogs = beating.filter((one) => one.popularity < answer.popularity);
    show(result,
      el("p", { class: "big" }, pictured(item)),
      el("p", {}, "Its mean margin over the catalogue is ", number("popularity", answer.popularity, signed(answer.popularity)), " for the average user",
        answer.place ? [", ", number("place", answer.place, ordinal(answer.place)), " of all"] : "", ". ",
        !beating.length ? "Nothing beats it for most users: it has no nemesis."
          : underdogs.length ? "Some items beat it head to head for most users though they are less popular overall: a list by popularity hides that."
            : "What beats it for most users is also more popular overall."),
      el("h2", {}, "What ", number("users", answer.users, whole(answer.users)), " users prefer to it, most often first"),
      el("ol", { class: "duels" }, answer.nemeses.map((one) => el("li", {},
        el("span", { class: "against" },
          el("button", { type: "button", class: "link", on: { click: () => again(() => { item = one.item; }).then(() => result.querySelector("button")?.focus({ preventScroll: true })) } }, pictured(one.item)),
          one.share > 0.5 && one.popularity < answer.popularity && el("span", { class: "tag" }, "less popular")),
        el("span", { class: "half", "aria-hidden": "true" }, el("span", { class: one.share > 0.5 ? "over" : "", vars: { width: `${100 * one.share}%` } })),
        el("span", {}, number("share", one.share, percent(one.share)), " of users"),
        el("span", { class: "quiet" }, "by ", number("nemesis_margin", one.margin, signed(one.margin)), " on average · overall ",
          number("nemesis_popularity", one.popularity, signed(one.popularity)), one.place ? `, ${ordinal(one.place)}` : "")))),
      el("p", { class: "quiet" }, "The line in a bar is one half; a user without a preference between the two counts half. Overall is the mean margin over all items for the average user. Choose an item to see what beats that one."));
  }

  return { node, start: (signal) => again(null, signal), stop() {} };
}

