// This or that: duels, the list that changes with every answer, contradictions, and your taste in the end.

import { ask } from "./api.js";
import {
  bar, calm, certainty, decimal, el, heading, name, number, ordinal, percent, picture, pictured, plural, sameId, show,
} from "./dom.js";
import { ringPlot } from "./ringplot.js";
import { about, pairs, replace, toHash, visitor } from "./state.js";
import { spoken } from "./words.js";

const [ENOUGH, SHOWN] = [20, 10];
const LONGEST = 200;

const REASONS = {
  step: "Your answers hint at a cycle, and this is the step of it that is least sure.",
  surprise: "Asked again: this answer does not fit your others. Nothing wrong with that.",
};

export function duel(values) {
  let answers = values.answers === undefined ? visitor.answers : pairs(values.answers);
  let shown = null;
  let previous = [];
  let ended = false;
  let skipped = [];
  let busy = false;
  let logged = false;

  const question = el("section", { class: "duel", "aria-labelledby": "which" });
  const list = el("ol", { class: "places" });
  const sure = el("p", { class: "sure" });
  const message = el("p", { class: "status", role: "status" });
  const doubts = el("section", { "aria-live": "polite", class: "doubts" });
  const taste = el("section", { class: "taste", "aria-label": spoken.duel.end });
  const node = el("div", { class: "panel-duel" },
    heading(spoken.duel.title, spoken.duel.lead),
    el("div", { class: "split" },
      el("div", {}, question, message, doubts),
      el("section", { class: "list", "aria-labelledby": "list" },
        el("h2", { id: "list" }, spoken.duel.list), sure, list)),
    taste);

  const keep = () => {
    visitor.keep(answers);
    replace("duel", { answers });
  };

  // Answers are sent to be kept when the visitor leaves or starts over: until then they can be undone, from then on not.
  let sent = answers.length;
  const undoable = () => answers.length > (logged ? sent : 0);
  const send = () => {
    const events = answers.slice(sent).map(([winner, loser]) => ({ user: visitor.name, winner, loser }));
    sent = answers.length;
    const keepalive = JSON.stringify(events).length < 60_000; // what browsers send for a page that is gone
    if (logged && events.length) ask("events", { body: { events }, keepalive }).catch(() => {});
  };
  const takeBack = () => {
    answers = answers.slice(0, -1);
    sent = Math.min(sent, answers.length);
  };
  const left = () => {
    if (document.visibilityState !== "hidden") return;
    send();
    if (!undoable()) question.querySelector(".undo")?.remove();
  };
  document.addEventListener("visibilitychange", left);

  async function learn(note, signal) {
    busy = true;
    node.setAttribute("aria-busy", "true");
    try {
      const body = { ...about(answers), N: SHOWN };
      shown = await ask("visitor", { body, signal });
      if (skipped.length && shown.question) {
        const wasSkipped = (one) => skipped.some(([a, b]) => sameId(a, one.item.item) && sameId(b, one.rival.item));
        if (wasSkipped(shown.question)) {
          const batch = await ask("question", { body: { ...about(answers), N: Math.min(100, skipped.length + 1) }, signal });
          shown.question = batch.questions.find((one) => !wasSkipped(one)) ?? null;
        }
      }
    } finally {
      busy = false;
      node.removeAttribute("aria-busy");
    }
    keep();
    drawQuestion();
    drawList();
    drawDoubts();
    if (ended || answers.length >= ENOUGH) drawTaste();
    else show(taste);
    if (note) show(message, note);
  }

  function answer(winner, loser, chance) {
    if (busy) return;
    if (answers.length >= LONGEST) return;
    answers = [...answers, [winner, loser]];
    const first = [name(winner), " it is. Before you said so, the model gave that ", number("expected", chance, percent(chance)), "."];
    learn(first).then(() => {
      const best = shown.items[0];
      if (best) message.append(" ", name(best.item), spoken.duel.leads);
      question.querySelector("button.card")?.focus({ preventScroll: true });
    }).catch((error) => {
      if (undoable()) takeBack();
      if (error.name !== "AbortError") show(message, error.message);
    });
  }

  function skip() {
    if (busy || !shown?.question) return;
    skipped = [...skipped, [shown.question.item.item, shown.question.rival.item]];
    learn(["Left out. Here is another."]).then(() => question.querySelector("button.card")?.focus());
  }

  function undo() {
    if (busy || !undoable()) return;
    takeBack();
    learn(["The last answer is taken back."]).then(() => question.querySelector("button.card")?.focus());
  }

  function startOver() {
    if (busy) return;
    send();
    [answers, previous, skipped, ended, sent] = [[], [], [], false, 0];
    learn(["All answers are forgotten."]).then(() => question.querySelector("button.card")?.focus());
  }

  function drawQuestion() {
    const next = shown.question;
    const done = answers.length;
    const count = el("p", { class: "count" }, done
      ? [number("answers", done, plural(done, spoken.duel.answer, spoken.duel.answers)), done < ENOUGH ? ` of about ${ENOUGH}.` : "."]
      : `About ${ENOUGH} ${spoken.duel.answers} are enough; from 5 on you can look at the outcome.`,
      logged && " This service keeps your answers, without a name, to learn from them, once you leave this panel; until then you can undo them.");
    const tools = el("div", { class: "tools" },
      next && el("button", { type: "button", on: { click: skip } }, "Neither, ask another"),
      undoable() && el("button", { type: "button", class: "undo", on: { click: undo } }, "Undo"),
      done > 0 && el("button", { type: "button", on: { click: startOver } }, "Start over"),
      done >= 5 && done < ENOUGH && !ended && el("button", { type: "button", on: { click: () => {
        ended = true;
        drawTaste();
        taste.querySelector("h2").focus();
      } } }, spoken.duel.show));
    if (!next) {
      show(question, el("h2", { id: "which" }, "There is nothing left to ask"), count, tools);
      return;
    }
    const [one, other] = [next.item.item, next.rival.item];
    const card = (item, rival, chance, key) => el("button", { type: "button", class: "card", "aria-keyshortcuts": key, "data-item": JSON.stringify(item),
      on: { click: () => answer(item, rival, chance) } }, picture(item), name(item));
    show(question,
      el("h2", { id: "which" }, spoken.duel.question),
      el("div", { class: "cards" },
        card(one, other, next.probability, "ArrowLeft"),
        el("span", { class: "or", "aria-hidden": "true" }, "or"),
        card(other, one, 1 - next.probability, "ArrowRight")),
      el("p", { class: "why" }, REASONS[next.reason] ?? spoken.duel[next.reason] ?? spoken.duel.new, " It is expected to tell ",
        number("bits", next.bits, decimal(next.bits)), " of at most 1 bit."),
      count, tools);
  }

  function drawList() {
    const before = new Map([...list.children].map((row) => [row.dataset.item, row.getBoundingClientRect().top]));
    const places = new Map(previous.map((one, place) => [JSON.stringify(one.item), place]));
    const most = Math.max(SHOWN, ...shown.items.map((one) => one.place_upper ?? 0));
    show(list, ...shown.items.map((one, place) => {
      const old = places.get(JSON.stringify(one.item));
      const moved = !previous.length ? null
        : old === undefined ? el("span", { class: "moved new" }, "new")
        : old === place ? null
        : el("span", { class: "moved" }, old > place ? `▲ ${old - place}` : `▼ ${place - old}`);
      return el("li", { "data-item": JSON.stringify(one.item) },
        el("span", { class: "row" }, el("span", {}, pictured(one.item)), moved),
        range(one, most));
    }));
    previous = shown.items;
    show(sure, (answers.length
      ? [spoken.duel.sure, number("sure", shown.sure, percent(shown.sure)), spoken.duel.share]
      : [spoken.duel.before]));
    if (calm()) return;
    for (const row of list.children) {
      const old = before.get(row.dataset.item);
      const now = row.getBoundingClientRect().top;
      if (old === undefined && before.size) row.animate([{ opacity: 0 }, { opacity: 1 }], 350);
      else if (old !== undefined && Math.abs(old - now) > 1) {
        row.animate([{ transform: `translateY(${old - now}px)` }, { transform: "none" }], { duration: 350, easing: "ease-out" });
      }
    }
  }

  function range(one, most) {
    if (one.place_lower === undefined || one.place_lower === null) return null;
    const words = one.place_lower === one.place_upper ? `${ordinal(one.place_lower)} place`
      : `${ordinal(one.place_lower)} to ${ordinal(one.place_upper)} place`;
    const log = (place) => Math.log(place) / Math.log(most + 1);
    return el("span", { class: "range" },
      el("span", { class: "track", "aria-hidden": "true" },
        el("span", { vars: { from: `${100 * log(one.place_lower)}%`, to: `${100 * (1 - log(one.place_upper + 1))}%` } })),
      el("span", { class: "quiet" }, number("place_lower", one.place_lower, ""), number("place_upper", one.place_upper, ""), words));
  }

  function drawDoubts() {
    const contradictions = shown.contradictions;
    if (!contradictions.length) {
      show(doubts);
      return;
    }
    const verdict = {
      cycle: (p) => ["A cycle: the model is ", p, " sure that all steps point this way, and no list can show that."],
      noise: (p) => ["Noise, it seems: the model is only ", p, " sure that all steps point this way."],
      open: (p) => ["Noise or a cycle? The model is ", p, " sure that all steps point this way. The page asks again to find out."],
    };
    show(doubts, el("h2", {}, "Where you contradict yourself"), el("ul", {}, contradictions.map((one) => el("li", {},
      chain(one.path.map((item) => item.item)),
      el("p", {}, one.path.length === 2 ? "You answered this both ways: noise, or you do not mind."
        : (verdict[one.verdict] ?? verdict.open)(number("contradiction", one.probability, certainty(one.probability))))))));
  }

  function chain(path) {
    return el("p", { class: "chain" }, [...path, path[0]].map((item, place) => [
      place ? el("span", { class: "beats" }, " over ") : null, name(item)]));
  }

  function drawTaste() {
    const cycle = shown.strongest_cycle;
    const top = shown.items.slice(0, 5);
    const first = top[0];
    const unexplained = shown.intransitivity;
    show(taste, el("h2", { tabindex: "-1" }, spoken.duel.end),
      el("div", { class: "split even" },
        el("div", {},
          el("p", { class: "big" }, name(first.item)),
          el("p", {}, spoken.duel.first, first.first === undefined || first.first === null ? "" :
            [", and the model is ", number("first", first.first, certainty(first.first)), " sure that nothing else belongs there"],
            ". After ", plural(answers.length, spoken.duel.answer, spoken.duel.answers), ", ", spoken.duel.after,
            number("taste_sure", shown.sure, percent(shown.sure)), spoken.duel.share),
          el("ol", { class: "top" }, top.map((one) => el("li", {}, pictured(one.item), " ",
            el("span", { class: "quiet" }, "mean margin ", number("score", one.score, decimal(one.score)))))),
          el("p", {}, number("taste_intransitivity", unexplained, percent(unexplained)),
            spoken.duel.unexplained, bar(unexplained, "share")),
          el("p", { class: "tools" },
            el("a", { class: "button", href: toHash("slate", { you: answers, items: top.map((one) => one.item) }) }, "Put the five on a slate"),
            el("a", { class: "button", href: toHash("ring", { you: answers }) }, "See the ring"))),
        el("div", {}, cycle
          ? [el("h3", {}, cycle.probability < 0.5 ? "A cycle, perhaps" : "Your strongest cycle"), ringPlot(cycle),
            el("p", {}, cycle.probability < 0.5 ? "Your answers hint at this cycle, but do not settle it."
              : "Each item beats the next one on the ring, the last the first.",
              cycle.probability === null || cycle.probability === undefined ? "" :
                [" The model is ", number("cycle_probability", cycle.probability, certainty(cycle.probability)), " sure that all steps point this way."])]
          : [el("h3", {}, "No cycle"), el("p", {}, "The best items can be put in one order: a plain list says it all.")])));
  }

  const keys = (event) => {
    if (event.target.closest?.("input, textarea, select, [role=listbox]") || event.altKey || event.ctrlKey || event.metaKey) return;
    const cards = question.querySelectorAll("button.card");
    if (event.key === "ArrowLeft" && cards[0]) cards[0].click();
    else if (event.key === "ArrowRight" && cards[1]) cards[1].click();
    else return;
    event.preventDefault();
  };
  document.addEventListener("keydown", keys);

  return {
    node,
    start: async (signal) => {
      logged = (await ask("describe", { signal })).log;
      await learn(null, signal);
    },
    stop() {
      send();
      document.removeEventListener("keydown", keys);
      document.removeEventListener("visibilitychange", left);
    },
  };
}

