// Lists: what to show a person, why an item comes before the next one, and what is like it.

import { ask, query } from "./api.js";
import { announce, decimal, el, heading, name, number, percent, pictured, redraw, sameId, show, signed, titleOf, whileBusy } from "./dom.js";
import { their, whoField } from "./pick.js";
import { person, id, pairs, replace, visitor } from "./state.js";
import { spoken } from "./words.js";

const SHOWN = 10;

export function lists(values) {
  let who = values.you !== undefined ? { you: pairs(values.you) } : { user: id(values.user) };
  let item = id(values.item);
  let best = [];

  const controls = el("div", { class: "controls" });
  const list = el("ol", { class: "steps" });
  const title = el("h2");
  const reason = el("section", { "aria-live": "polite" });
  const node = el("div", { class: "panel-lists" }, heading("Lists", "What to show a person, why an item comes before the next one, and what is like it."),
    controls, el("div", { class: "split even" }, el("section", {}, title, list), reason));

  async function again(change, signal) {
    change?.();
    await whileBusy(node, async () => {
      if (who.user === undefined && !who.you && !change) who = { user: (await ask("describe", { signal })).user_example };
      best = (await ask("recommend", { body: { ...person(who), N: SHOWN + 1 }, signal })).items;
    });
    redraw(controls, whoField(who, who.you ?? visitor.answers, (chosen) => again(() => { [who, item] = [chosen, undefined]; })));
    show(title, `The best for ${who.user === undefined ? (who.you?.length ? "you" : spoken.who.of) : `user ${who.user}`}`);
    if (!best.length) {
      show(list);
      show(reason, el("p", { class: "empty" }, "Nothing is left to show: everything was seen."));
      return;
    }
    await choose(best.some((one) => sameId(one.item, item)) ? item : best[0].item, signal);
  }

  async function choose(chosen, signal) {
    item = chosen;
    replace("lists", { you: who.you, user: who.user, item });
    show(list, best.slice(0, SHOWN).map((one) => el("li", {},
      el("button", { type: "button", class: "link", "aria-pressed": String(sameId(one.item, item)),
        on: { click: () => choose(one.item).then(() => list.querySelector("[aria-pressed=true]")?.focus()) } }, pictured(one.item)),
      el("p", { class: "quiet" }, "mean margin ", number("list_score", one.score, decimal(one.score))))));
    const place = best.findIndex((one) => sameId(one.item, item));
    const rival = best[place + 1]?.item ?? best[place - 1]?.item;
    reason.setAttribute("aria-busy", "true");
    let why, like;
    try {
      [why, like] = await Promise.all([
        rival === undefined ? null : ask("explain", { body: { ...person(who), item, rival }, signal }),
        ask(query("similar", { item: String(item), N: 6 }), { signal })]);
    } finally {
      if (sameId(item, chosen)) reason.removeAttribute("aria-busy");
    }
    if (!sameId(item, chosen)) return; // another item was chosen meanwhile: its own answer follows
    announce(`${titleOf(item)} chosen.`);
    show(reason, el("h2", {}, name(item)), why && because(why), el("h3", {}, "Most like it"),
      el("ol", { class: "top" }, like.neighbours.filter((one) => !sameId(one.id, item)).slice(0, 5).map((one) => el("li", {}, one.title ?? String(one.id), " ",
        el("span", { class: "quiet" }, "cosine ", number("cosine", one.cosine, decimal(one.cosine)))))));
  }

  function because(why) {
    const votes = (rows, words) => rows.length > 0 && [el("h3", {}, words),
      el("ul", {}, rows.slice(0, 4).map((one) => el("li", {}, name(one.item), " ", el("span", { class: "quiet" }, number("influence", one.influence, signed(one.influence))))))];
    return [
      el("p", {}, "Preferred to ", name(why.rival), ` in ${their(who, "list")} by `, number("why_margin", why.margin, signed(why.margin)), ", with a probability of ",
        number("why_probability", why.probability, percent(why.probability)), "."),
      votes(why.for_item, "Seen items that speak for it"), votes(why.for_rival, "Seen items that speak for the other"),
      el("p", { class: "quiet" }, "Influence is how much the margin would rise if that item counted once more.")];
  }

  return { node, start: (signal) => again(null, signal), stop() {} };
}
