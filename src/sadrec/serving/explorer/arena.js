// An arena: leaderboard, match-ups, counters, rings, what to ask next. All from one report; nothing is asked here.

import { announce, cut, decimal, el, fresh, heading, hiddenWord, number, percent, plural, show, signed, svg, whole } from "./dom.js";
import { WORDS } from "./words.js";

const SHOWN = 200; // rows of the leaderboard before a button shows as many more

export const TITLES = { leaderboard: "Leaderboard", matchups: "Match-ups", counters: "Counters", rings: "Rings", ask: "Ask next" };

const label = (report, item) => {
  const full = report.item_names[item];
  const shown = cut(full, 80);
  return el("bdi", { class: "title", title: full !== shown && full }, shown);
};

const range = (low, high) => (low === high ? whole(low) : `${whole(low)}–${whole(high)}`);
const half = (value) => (value === 0.5 ? "50\u202f%" : percent(value));

/** Return the views of a report by name: functions that make a panel. */
export function arena(report) {
  const words = WORDS[report.kind] ?? WORDS.contests;
  return {
    leaderboard: () => leaderboard(report, words),
    matchups: () => matchups(report, words),
    counters: (item) => counters(report, words, item),
    rings: () => rings(report, words),
    ask: () => questions(report, words),
  };
}

// -- leaderboard ---------------------------------------------------------------------------------------------------

const games = (row) => (row.wins === null ? null : row.wins + row.ties + row.losses);
const COLUMNS = [
  { key: "rank", shown: "Rank", of: (row) => row.rank },
  { key: "item", shown: "Item", of: (row, report) => report.item_names[row.item].toLowerCase() },
  { key: "strength", shown: "Strength", of: (row) => -row.strength },
  { key: "games", shown: "Won · tied · lost", of: (row) => -(games(row) ?? 0) },
  { key: "unexplained", shown: "Unexplained", of: (row) => -row.unexplained },
];

/** The place of each item, and who shares one: the best rank that it may have, and no better than that of a stronger item. */
function places(rows) {
  const [place, shared, tied] = [new Map(), new Map(), new Set()];
  let least = 1;
  for (const row of [...rows].sort((one, other) => one.rank - other.rank)) {
    least = Math.max(least, row.rank_lower ?? row.rank);
    place.set(row.item, least);
    shared.set(least, [...(shared.get(least) ?? []), row.item]);
  }
  for (const items of shared.values()) if (items.length > 1) for (const item of items) tied.add(item);
  return [place, tied];
}

function leaderboard(report, words) {
  const rows = report.leaderboard;
  const sure = rows.length > 0 && rows[0].lower !== null;
  const counted = rows.length > 0 && rows[0].wins !== null;
  const [place, tied] = places(rows);
  const ends = rows.flatMap((row) => (sure ? [row.lower, row.upper] : [row.strength]));
  const [low, high] = ends.reduce(([a, b], end) => [Math.min(a, end), Math.max(b, end)], [0, 0]);
  const at = (value) => 4 + (192 * (value - low)) / (high - low || 1);
  const columns = COLUMNS.filter((column) => counted || column.key !== "games");
  let sorted = "rank";
  let most = SHOWN;
  const field = fresh("search");
  const search = el("input", { id: field, type: "search", autocomplete: "off", on: { input: () => { most = SHOWN; draw(); } } });
  const body = el("tbody");
  const tools = el("p", { class: "tools" });
  const heads = columns.map((column) => el("th", { scope: "col", "data-column": column.key }, el("button", {
    type: "button", class: "link", on: { click: () => { sorted = column.key; draw(); announce(`Sorted by ${column.shown}.`); } } }, column.shown)));
  heads.splice(3, 0, el("th", { scope: "col" }, "Interval"));

  const dots = (row) => svg("svg", { viewBox: "0 0 200 16", class: "dots", "aria-hidden": "true" },
    svg("line", { x1: at(0), x2: at(0), y1: 0, y2: 16, class: "zero" }),
    sure && svg("line", { x1: at(row.lower), x2: at(row.upper), y1: 8, y2: 8, class: "reach" }),
    svg("circle", { cx: at(row.strength), cy: 8, r: 4 }));

  function line(row) {
    return el("tr", {},
      el("td", { class: "rank" }, tied.has(row.item) && [el("span", { "aria-hidden": "true" }, "="), hiddenWord("tied ")], whole(place.get(row.item)),
        sure && row.rank_upper > row.rank_lower && el("span", { class: "quiet" }, ` (${range(row.rank_lower, row.rank_upper)})`)),
      el("th", { scope: "row" }, label(report, row.item)),
      el("td", { class: "figure" }, number("strength", row.strength, signed(row.strength))),
      el("td", { class: "figure" }, dots(row), sure && el("span", { class: "quiet" }, `${signed(row.lower)} … ${signed(row.upper)}`)),
      counted && el("td", { class: "figure" }, `${whole(row.wins)} · ${whole(row.ties)} · ${whole(row.losses)}`),
      el("td", { class: "figure" }, percent(row.unexplained)));
  }

  function draw() {
    const wanted = search.value.trim().toLowerCase();
    const column = columns.find((one) => one.key === sorted);
    const fitting = rows.filter((row) => !wanted || report.item_names[row.item].toLowerCase().includes(wanted));
    fitting.sort((one, other) => {
      const [a, b] = [column.of(one, report), column.of(other, report)];
      return a < b ? -1 : a > b ? 1 : one.rank - other.rank;
    });
    for (const head of heads) {
      if (head.dataset.column === sorted) head.setAttribute("aria-sort", sorted === "rank" || sorted === "item" ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    }
    show(body, fitting.slice(0, most).map(line));
    show(tools, !fitting.length && "No item has this in its name.", fitting.length > most && el("button", {
      type: "button", on: { click: () => { most += SHOWN; draw(); } } }, `Show more (${whole(fitting.length - most)} are left)`));
  }

  draw();
  return el("div", { class: "panel-leaderboard" }, heading("Leaderboard", words.leaderboard),
    el("p", {}, el("label", { for: field }, "Find an item "), search),
    el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Leaderboard" }, el("table", { class: "board" }, el("thead", {}, el("tr", {}, heads)), body)), tools,
    el("p", { class: "quiet" }, "Strength is the mean margin over all items, in log-odds. ",
      sure ? `An interval holds the true strength, or rank, with a probability of ${percent(report.level)}; items with = share a rank. `
        : "This model has no intervals. ",
      `Unexplained is the share of an item's margins that no score explains: what it owes to single ${words.rival}s.`),
    report.features.map((one) => el("p", {}, el("bdi", {}, one.feature), " adds ", number("coefficient", one.coefficient, signed(one.coefficient)),
      ` (${signed(one.lower)} … ${signed(one.upper)}) to the log-odds of its side; the items are compared as if it were equal.`)));
}

// -- match-ups -----------------------------------------------------------------------------------------------------

function pairSentence(report, words, i, j) {
  const [one, other] = [report.items[i], report.items[j]];
  const met = report.games ? report.games[i][j] : null;
  const interval = report.lower && [" (", half(report.lower[i][j]), " to ", half(report.upper[i][j]), ")"];
  return [label(report, one), ` ${words.beats} `, label(report, other), " with probability ", number("probability", report.probability[i][j], half(report.probability[i][j])), interval,
    met === null ? "." : `; ${plural(met, words.game, words.games)}.`];
}

function matchups(report, words) {
  const size = report.items.length;
  const caption = el("figcaption", { "aria-live": "polite" }, "Choose a cell: point at it, or use the arrow keys.");
  const cell = 10;
  const chosen = svg("rect", { width: cell, height: cell, class: "chosen" });
  chosen.setAttribute("visibility", "hidden");
  let [row, column] = [0, Math.min(1, size - 1)];
  const tell = () => {
    chosen.setAttribute("visibility", "visible");
    chosen.setAttribute("x", column * cell);
    chosen.setAttribute("y", row * cell);
    if (row === column) show(caption, label(report, report.items[row]));
    else show(caption, pairSentence(report, words, row, column));
  };
  const map = svg("svg", { viewBox: `0 0 ${size * cell} ${size * cell}`, class: "heat", role: "img", tabindex: "0",
    "aria-label": `Match-ups of the ${plural(size, "strongest item")}: rows against columns` });
  for (let i = 0; i < size; i += 1) {
    for (let j = 0; j < size; j += 1) {
      if (i === j) continue;
      const p = report.probability[i][j];
      map.append(svg("rect", { x: j * cell, y: i * cell, width: cell, height: cell, class: p > 0.5 ? "ahead" : "behind", "fill-opacity": Math.min(1, 2 * Math.abs(p - 0.5)).toFixed(3) }));
      if (report.games && !report.games[i][j]) map.append(svg("circle", { cx: (j + 0.5) * cell, cy: (i + 0.5) * cell, r: 1.2, class: "unmet" }));
    }
  }
  map.append(chosen);
  const moved = (event) => {
    const box = map.getBoundingClientRect();
    [row, column] = [event.clientY - box.top, event.clientX - box.left].map((place, side) =>
      Math.max(0, Math.min(size - 1, Math.floor((place / (side ? box.width : box.height)) * size))));
    tell();
  };
  map.addEventListener("pointermove", moved);
  map.addEventListener("click", moved);
  map.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    row = Math.max(0, Math.min(size - 1, row + step[0]));
    column = Math.max(0, Math.min(size - 1, column + step[1]));
    tell();
  });
  return el("div", { class: "panel-matchups" }, heading("Match-ups", words.matchups),
    el("figure", {}, caption, map),
    el("p", { class: "quiet" }, `The probability that the row ${words.beats} the column: red above one half, blue below. Rows and columns are ${size < report.leaderboard.length ? `the ${size} strongest items` : "all items"} in order of strength. `,
      report.games && `A dot marks a pair without a ${words.game}. `, "Red cells below the diagonal go against the order."));
}

// -- counters ------------------------------------------------------------------------------------------------------

function counters(report, words, given) {
  const field = fresh("item");
  const result = el("div");
  const select = el("select", { id: field, on: { change: () => draw(Number(select.value)) } },
    report.items.map((item, place) => el("option", { value: place }, cut(report.item_names[item], 80))));
  const start = Math.max(0, report.items.indexOf(given ?? -1));
  select.selectedIndex = start;

  function list(title, place, rivals, empty) {
    return el("section", {}, el("h2", {}, title), rivals.length ? el("ol", { class: "counters" }, rivals.map((rival) => el("li", {}, label(report, report.items[rival]), " ",
      number("probability", report.probability[place][rival], half(report.probability[place][rival])),
      report.lower && el("span", { class: "quiet" }, ` ${half(report.lower[place][rival])} to ${half(report.upper[place][rival])}`),
      report.games && el("span", { class: "quiet" }, ` · ${plural(report.games[place][rival], words.game, words.games)}`)))) : el("p", {}, empty));
  }

  function draw(place) {
    const rivals = report.items.map((_, rival) => rival).filter((rival) => rival !== place);
    const chance = (rival) => report.probability[place][rival];
    const won = rivals.filter((rival) => chance(rival) > 0.5).sort((a, b) => chance(b) - chance(a));
    const lost = rivals.filter((rival) => chance(rival) < 0.5).sort((a, b) => chance(a) - chance(b));
    show(result, el("p", { class: "big" }, label(report, report.items[place])), el("div", { class: "split even" },
      list(words.beaten, place, lost, words.unbeaten), list(`What it ${words.beats}`, place, won, `It ${words.beats} none of these.`)));
  }

  draw(start);
  return el("div", { class: "panel-counters" }, heading("Counters", words.counters), el("p", {}, el("label", { for: field }, "Item "), select), result,
    el("p", { class: "quiet" }, `Each percentage is the probability that the chosen item ${words.beats} the one in the list.`));
}

// -- rings, and what to ask next -----------------------------------------------------------------------------------

function rings(report, words) {
  return el("div", { class: "panel-rings" }, heading("Rings", words.rings),
    report.cycles.length ? report.cycles.map((cycle) => el("section", {},
      el("h2", {}, `${plural(cycle.path.length, "item")}`, cycle.probability !== null && [", probability ", number("probability", cycle.probability, percent(Math.min(cycle.probability, 0.9999)))]),
      el("ol", { class: "ring-steps" }, cycle.path.map((item, step) => el("li", {}, label(report, item), ` ${words.beats} `, label(report, cycle.path[(step + 1) % cycle.path.length]),
        " ", number("step", cycle.probabilities[step], half(cycle.probabilities[step])))))))
      : el("p", { class: "big" }, "No ring is probable: an order fits."),
    el("p", {}, "A ranking explains ", number("explained", 1 - report.unexplained, percent(1 - report.unexplained)), " of the squared margins."),
    report.nash.length > 1 && [el("h2", {}, "The mixture that nothing beats"),
      el("p", {}, "Choose at random with these shares, and no single item wins more than half against you (the Nash mixture)."),
      el("ol", { class: "counters" }, report.nash.slice().sort((one, other) => other.share - one.share).map((one) => el("li", {}, label(report, one.item), " ", number("share", one.share, percent(one.share)))))]);
}

function questions(report, words) {
  return el("div", { class: "panel-ask" }, heading(TITLES.ask, words.ask),
    report.ask.length ? el("ol", { class: "counters" }, report.ask.map((one) => el("li", {}, label(report, one.item), " against ", label(report, one.rival), " ",
      el("span", { class: "quiet" }, `${half(one.probability)} · ${decimal(one.bits)} bits`))))
      : el("p", { class: "big" }, "This model has no intervals, so it cannot say which pairs to ask about."),
    el("p", { class: "quiet" }, `The results of these pairs together say most about the order of the strongest items. The percentage is the probability that the first ${words.beats} the second; bits measure what one result says about that probability.`));
}
