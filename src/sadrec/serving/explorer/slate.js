// Slate: a few items, four ways to choose a winner, and the item that changes the winner without winning.

import { ask, query } from "./api.js";
import { announce, decimal, el, heading, hiddenWord, name, number, percent, pictured, redraw, sameId, show, titleOf, whileBusy } from "./dom.js";
import { itemField, whoField, whose } from "./pick.js";
import { person, id, ids, pairs, replace, visitor } from "./state.js";
import { spoken } from "./words.js";

const MOST = 12;

const METHODS = {
  margin: ["Mean margin", "by how much it beats the others, on average", (score, extra) => decimal(score, 2 + extra)],
  wins: ["Wins", "how many of the others it beats", (score, extra) => decimal(score, score % 1 ? 1 + extra : 0)],
  markov: ["Markov", "", percent],
  nash: ["Nash", "how often to choose it so that nothing beats the choice", percent],
};

const BY = { margin: "mean margin", wins: "wins", markov: "the Markov chain", nash: "Nash averaging" };

/** The winners of a ranking, several if they tie, and how its scores are shown: with as many digits as tell the winners from the rest. */
function judged({ method, items, scores }) {
  const shown = METHODS[method][2];
  const ties = (extra) => scores.filter((score) => shown(score, extra) === shown(scores[0], extra)).length;
  const tied = ties(6);
  let digits = 0;
  while (ties(digits) > tied) digits += 1;
  return { method, winners: items.slice(0, tied), shown: (score) => shown(score, digits) };
}

const listed = (parts) => parts.flatMap((part, place) => [place ? (place < parts.length - 1 ? ", " : " and ") : "", part]);

export function slate(values) {
  let who = values.you !== undefined ? { you: pairs(values.you) } : { user: id(values.user) };
  let items = ids(values.items).slice(0, MOST);
  let given = values.items !== undefined;

  const controls = el("div", { class: "controls" });
  const chips = el("ul", { class: "chips", "aria-label": "Items on the slate" });
  const status = el("p", { class: "status", role: "status" });
  const result = el("div", {});
  const node = el("div", { class: "panel-slate" },
    heading("Slate", `Put items on a slate and take them off. With scores the winner never depends on the other items;
      with rivals it may, and four ways to choose a winner need not agree.`),
    controls, chips, status, result);

  async function again(change, signal, words) {
    change?.();
    let answer = null;
    await whileBusy(result, async () => {
      if (!given && !items.length) {
        // A slate to begin with: the strongest cycle among the best, or the best where there is none.
        const rings = await ask("cycles", { body: { ...person(who), N: 30, most: 1, factors: 0 }, signal });
        const first = rings.cycles[0]?.path ?? (await ask("recommend", { body: { ...person(who), N: 5, keep_seen: true }, signal })).items;
        items = first.slice(0, MOST).map((one) => one.item);
      }
      if (items.length > 1) answer = await ask("slate", { body: { ...person(who), items }, signal });
      else if (items.length) await ask(query("items", { query: String(items[0]), N: 20 }), { signal });
    });
    given = true;
    replace("slate", { you: who.you, user: who.user, items: items.length ? items : undefined });
    drawControls();
    drawChips();
    draw(answer);
    if (words) show(status, words);
  }

  const put = (item) => {
    if (items.some((one) => sameId(one, item))) show(status, name(item), " is on the slate already.");
    else if (items.length >= MOST) show(status, `A slate holds ${MOST} items here: take one off first.`);
    else again(() => { items = [...items, item]; }, undefined, [name(item), " is on the slate."]).then(() => controls.querySelector(".add input")?.focus());
  };
  const take = (item, place) => again(() => { items = items.filter((one) => !sameId(one, item)); }, undefined, [name(item), " is off the slate."])
    .then(() => (chips.querySelectorAll("button")[Math.min(place, items.length - 1)] ?? controls.querySelector(".add input"))?.focus());

  function drawControls() {
    const add = itemField("Put on the slate", put, { hint: `Up to ${MOST} items.` });
    add.classList.add("add");
    redraw(controls, whoField(who, who.you ?? visitor.answers, (chosen) => again(() => { who = chosen; })), add);
  }

  const drawChips = () => show(chips, ...items.map((item, place) => el("li", {}, pictured(item),
    el("button", { type: "button", "aria-label": `Take ${titleOf(item)} off the slate`, on: { click: () => take(item, place) } }, "×"))));

  function draw(answer) {
    if (!answer) {
      show(result, el("div", { class: "empty" }, el("h2", {}, items.length ? "One item wins against nobody" : "The slate is empty"),
        el("p", {}, items.length ? "Put another one next to it." : "Put two items or more on it.")));
      return;
    }
    const ways = answer.rankings.map(judged);
    const winning = answer.items.map((one) => one.item).filter((item) => ways.some((way) => way.winners.some((one) => sameId(one, item))));
    const always = winning.filter((item) => ways.every((way) => way.winners.some((one) => sameId(one, item))));
    const ties = ways.filter((way) => way.winners.length > 1).map((way) => BY[way.method]);
    const verdict = always.length > 1 ? " are tied" : ties.length ? " wins or is tied" : " wins";
    announce(always.length ? `${listed(always.map(titleOf)).join("")}${verdict}.` : "No agreement on the winner.");
    show(result,
      el("p", { class: "big" }, always.length ? [listed(always.map(name)), verdict] : "No agreement on the winner"),
      el("p", {}, winning.length === 1 ? "All four ways agree"
        : always.length === 1 ? ["No way puts another item before it, but it is tied by ", listed(ties)]
          : [`${winning.length} items win, `, ties.length ? ["tied by ", listed(ties)] : "each in its own way"],
        answer.condorcet_winner === null
          ? ". Nothing beats all others: the best are a cycle or tie among themselves."
          : [", and ", name(answer.condorcet_winner), " beats every other one head to head."]),
      table(answer, ways), spoilers(answer), matrix(answer));
  }

  function table(answer, ways) {
    const order = answer.rankings[0].items;
    return el("div", {}, el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Scores by method" }, el("table", { class: "scores" },
      el("caption", {}, spoken.slate.who + whose(who)),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "item"),
        answer.rankings.map((one) => el("th", { scope: "col" }, METHODS[one.method][0])))),
      el("tbody", {}, order.map((item) => el("tr", {}, el("th", { scope: "row" }, pictured(item)),
        answer.rankings.map((one, column) => {
          const [place, { winners, shown }] = [one.items.findIndex((other) => sameId(other, item)), ways[column]];
          const wins = place < winners.length;
          return el("td", { class: wins ? "winner" : "" },
            number(`slate_${one.method}`, one.scores[place], shown(one.scores[place])),
            wins && [el("span", { class: "crown", "aria-hidden": "true" }, " ★"), winners.length > 1 ? " tied" : hiddenWord(" wins")]);
        })))))),
    el("dl", { class: "methods" }, answer.rankings.map((one) => el("div", {}, el("dt", {}, METHODS[one.method][0]), el("dd", {}, METHODS[one.method][1] || spoken.slate.walk)))));
  }

  function spoilers(answer) {
    const grouped = new Map();
    for (const one of answer.spoilers) {
      const key = JSON.stringify([one.item.item, one.winner_without, one.winner_with]);
      if (!grouped.has(key)) grouped.set(key, { ...one, methods: [] });
      grouped.get(key).methods.push(BY[one.method]);
    }
    const section = el("section", { class: "spoilers", "aria-labelledby": "spoilers" }, el("h2", { id: "spoilers" }, "Who dethrones the winner without winning?"));
    if (!grouped.size) {
      section.append(el("p", {}, "Nothing on this slate, and none of the ten best other items, changes the winner without outranking it."));
      return section;
    }
    section.append(el("ul", {}, [...grouped.values()].slice(0, 8).map((one) => el("li", {},
      el("p", {}, name(one.item.item), one.on_slate ? " is on the slate: without it " : ": put it on, and ",
        one.on_slate ? [name(one.winner_without), " would win instead of ", name(one.winner_with)] : [name(one.winner_with), " wins instead of ", name(one.winner_without)],
        ", although ", name(one.item.item), " itself ranks below ", name(one.winner_without), " ",
        el("span", { class: "quiet" }, `(by ${one.methods.join(", ")})`)),
      !one.on_slate && items.length < MOST && el("button", { type: "button", on: { click: () => put(one.item.item) } },
        "Put ", name(one.item.item), " on")))));
    return section;
  }

  function matrix(answer) {
    return el("details", {}, el("summary", {}, "Head to head"),
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Head to head" }, el("table", { class: "matrix" },
        el("caption", {}, spoken.slate.head),
        el("thead", {}, el("tr", {}, el("td", {}), answer.items.map((one) => el("th", { scope: "col" }, name(one.item))))),
        el("tbody", {}, answer.items.map((one, row) => el("tr", {}, el("th", { scope: "row" }, name(one.item)),
          answer.items.map((_, column) => (row === column ? el("td", { class: "self" }, "·")
            : el("td", { class: answer.margins[row][column] > 0 ? "beats" : "" },
              number("slate_probability", answer.probabilities[row][column], percent(answer.probabilities[row][column])))))))))));
  }

  return { node, start: (signal) => again(null, signal), stop() {} };
}
