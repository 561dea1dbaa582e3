// Is it worth it? The model and its twin with T = 1, on the same questions.

import { ask } from "./api.js";
import { announce, bar, decimal, el, heading, name, number, percent, redraw, show, signed, whileBusy, whole } from "./dom.js";
import { their, whoField } from "./pick.js";
import { person, id, pairs, replace, visitor } from "./state.js";
import { spoken } from "./words.js";

const VERDICTS = { yes: "Yes, here it is.", no: "No, here it is not.", unknown: "Not known." };

export function worth(values) {
  let who = values.you !== undefined ? { you: pairs(values.you) } : { user: id(values.user) };

  const controls = el("div", { class: "controls" });
  const result = el("div");
  const node = el("div", { class: "panel-worth" },
    heading("Is it worth it?", `What an item does to its rivals (T) costs memory and time to learn. Its twin has T = 1, which
      is BPR: a score for every item. Here both answer the same questions.`),
    controls, result);

  async function again(change, signal) {
    change?.();
    const own = (who.you ?? []).slice(-10).map(([item, rival]) => ({ item, rival }));
    const answer = await whileBusy(result, () => ask("worth", { body: { ...person(who), pairs: own, N: 6 }, signal }));
    answer.own = own.length;
    replace("worth", { you: who.you, user: who.user });
    redraw(controls, whoField(who, who.you ?? visitor.answers, (chosen) => again(() => { who = chosen; })));
    draw(answer);
  }

  function draw(answer) {
    announce(`${VERDICTS[answer.verdict]} ${answer.words}`);
    const twin = answer.twin === "fitted" ? "a BPR model fitted to the same data" : "the model with T = 1 that is nearest to this one";
    show(result,
      el("p", { class: `big verdict ${answer.verdict}` }, VERDICTS[answer.verdict]),
      el("p", { class: "words" }, answer.words.replace(/^(Yes|No)[.:,] /, "")),
      el("dl", { class: "facts" },
        fact(number("share_unexplained", answer.share_unexplained, percent(answer.share_unexplained)), spoken.worth.all,
          spoken.worth.mean, answer.share_unexplained),
        fact(number("user_unexplained", answer.user_unexplained, percent(answer.user_unexplained)), `of ${their(who, spoken.cycle.margins)}`,
          "the same share", answer.user_unexplained),
        fact(number("differ", answer.differ, percent(answer.differ)), spoken.worth.duels,
          `among ${whole(answer.pairs)} pairs of ${spoken.worth.among}, put to ${twin}`, answer.differ)),
      tested(answer), questions(answer, twin));
  }

  const fact = (value, label, help, share) => el("div", {}, el("dt", {}, value, " ", label), el("dd", {}, bar(share, label), el("span", { class: "quiet" }, help)));

  function tested(answer) {
    const test = answer.tested;
    if (!test) {
      return el("p", { class: "quiet" }, "No comparisons were kept back as a test (--test), so nothing here says which of the two predicts better.");
    }
    return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Test" }, el("table", { class: "test" },
      el("caption", {}, "How well both predict ", number("comparisons", test.comparisons, whole(test.comparisons)), ` ${spoken.worth.tested} that neither has seen`),
      el("thead", {}, el("tr", {}, el("td", {}), el("th", { scope: "col" }, "this model"), el("th", { scope: "col" }, "T = 1"))),
      el("tbody", {},
        el("tr", {}, el("th", { scope: "row" }, "log loss", el("span", { class: "quiet" }, "less is better; a coin has 0.693")),
          el("td", {}, number("log_loss", test.log_loss, decimal(test.log_loss, 3))), el("td", {}, number("twin_log_loss", test.twin_log_loss, decimal(test.twin_log_loss, 3)))),
        el("tr", {}, el("th", { scope: "row" }, "right", el("span", { class: "quiet" }, "share of outcomes that had more than one half")),
          el("td", {}, number("accuracy", test.accuracy, percent(test.accuracy))), el("td", {}, number("twin_accuracy", test.twin_accuracy, percent(test.twin_accuracy)))),
        el("tr", {}, el("th", { scope: "row" }, "gain", el("span", { class: "quiet" }, "of log loss by learning T, with its standard error")),
          el("td", { colspan: "2" }, number("difference", test.difference, signed(test.difference, 4)), " ± ", number("error", test.error, decimal(test.error, 4)))))));
  }

  function questions(answer, twin) {
    if (!answer.questions.length) return el("p", {}, "There are no two items to ask about.");
    const part = (rows, title, help) => rows.length > 0 && el("section", {}, el("h2", {}, title), el("p", { class: "quiet" }, help),
      el("ul", { class: "both" }, rows.map((one) => el("li", { class: one.differ ? "differ" : "" },
        el("p", {}, name(one.item.item), " or ", name(one.rival.item), "?"),
        el("div", { class: "answers" },
          side("this model", one, one.probability, "probability"), side("T = 1", one, one.twin_probability, "twin_probability"))))));
    return [
      part(answer.questions.slice(0, answer.own), `Your own ${spoken.duel.answers}`, "You chose the first of each pair; both have learnt from that. The bar is the probability of the first."),
      part(answer.questions.slice(answer.own), "Where they differ most", `Among ${their(who, spoken.cycle.best)}: different winners first, then the largest differences. The bar is the probability of the first; the twin is ${twin}.`)];
  }

  const side = (label, one, chance, what) => el("div", {}, el("span", { class: "who-says" }, label),
    el("span", { class: "half", "aria-hidden": "true" }, el("span", { class: chance > 0.5 ? "over" : "", vars: { width: `${100 * chance}%` } })),
    el("span", {}, number(what, chance, percent(chance)), " for ", name(one.item.item)));

  return { node, start: (signal) => again(null, signal), stop() {} };
}
