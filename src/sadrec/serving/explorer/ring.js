// Ring: where taste runs in a cycle, which step is the weakest, and which factors carry each step.

import { ask } from "./api.js";
import { announce, certainty, decimal, el, heading, name, number, percent, plural, redraw, show, signed, titleOf, whileBusy, whole } from "./dom.js";
import { itemField, their, whoField } from "./pick.js";
import { ringPlot } from "./ringplot.js";
import { person, id, pairs, replace, visitor } from "./state.js";
import { spoken } from "./words.js";

export function ring(values) {
  let who = values.you !== undefined ? { you: pairs(values.you) } : { user: id(values.user) };
  let item = id(values.item);
  let [cycle, step] = [Number.isInteger(values.cycle) ? values.cycle : 0, -1];
  let report = null;

  const controls = el("div", { class: "controls" });
  const result = el("div");
  const node = el("div", { class: "panel-ring" },
    heading("Ring", spoken.cycle.lead),
    controls, result);

  const address = () => ({ you: who.you, user: who.user, item, cycle: cycle || undefined });

  function drawControls() {
    const around = item === undefined
      ? itemField("Through an item (optional)", (chosen) => again(() => { item = chosen; }), { part: "around" })
      : el("p", { class: "around" }, "Cycles through ", name(item), " ",
        el("button", { type: "button", "data-part": "around", on: { click: () => again(() => { item = undefined; }) } }, "any item instead"));
    redraw(controls,
      whoField(who, who.you ?? visitor.answers, (chosen) => again(() => { who = chosen; })), around);
  }

  async function again(change, signal) {
    change?.();
    if (change) cycle = 0;
    step = -1;
    const body = { ...person(who), ...(item === undefined ? {} : { item }), N: 50, factors: 4 };
    report = await whileBusy(result, () => ask("cycles", { body, signal }));
    cycle = Math.min(cycle, Math.max(0, report.cycles.length - 1));
    replace("ring", address());
    drawControls();
    draw();
  }

  function draw() {
    const shown = report.cycles[cycle];
    if (!shown) {
      announce("No cycle here.");
      show(result, el("div", { class: "empty" },
        el("h2", {}, "No cycle here"),
        el("p", {}, item === undefined
          ? `${whole(report.among)} of ${their(who, spoken.cycle.best)} can be put in one order: a list says it all.`
          : ["No cycle runs through ", name(item), ` among the ${whole(report.among)} items most like it.`]),
        el("p", {}, `${spoken.cycle.else} A model whose T is 1 (BPR) has no cycles at all.`)));
      return;
    }
    announce(`${plural(report.cycles.length, "cycle")}. The strongest: ${[...shown.path, shown.path[0]].map((one) => titleOf(one.item)).join(" over ")}.`);
    const weakest = shown.steps.findIndex((one) => one.weakest);
    if (step < 0) step = weakest;
    show(result,
      el("p", { class: "summary" }, "Of the triples among the ", number("among", report.among, whole(report.among)), " items looked at, ",
        number("cyclic_triads", report.cyclic_triads, whole(report.cyclic_triads)), " of ", number("triads", report.triads, whole(report.triads)),
        " are cycles. Scores leave ", number("intransitivity", report.intransitivity, percent(report.intransitivity)),
        ` of ${their(who, spoken.cycle.margins)} unexplained.`),
      report.cycles.length > 1 && el("div", { class: "choices", role: "group", "aria-label": "Cycles, by probability times strength" },
        report.cycles.map((one, place) => el("button", { type: "button", class: "pill", "aria-pressed": String(place === cycle),
          on: { click: () => { [cycle, step] = [place, -1]; replace("ring", address()); draw(); result.querySelectorAll(".pill")[place]?.focus(); } } },
        `Cycle ${place + 1}: ${plural(one.path.length, "item")}`))),
      el("div", { class: "split even" },
        ringPlot(shown, { chosen: step, pick: (place) => { step = place; draw(); } }),
        el("div", {},
          el("h2", {}, "Step by step"),
          el("ol", { class: "steps" }, shown.steps.map((one, place) => el("li", {},
            el("button", { type: "button", class: "link", "aria-pressed": String(place === step),
              on: { click: () => { step = place; draw(); result.querySelectorAll(".steps button")[place].focus(); } } },
            name(one.item), el("span", { class: "beats" }, ` ${spoken.beats} `), name(one.rival)),
            el("p", { class: "quiet" }, "by ", number("margin", one.margin, decimal(one.margin)), `, ${spoken.cycle.step[0]}`,
              number("probability", one.probability, percent(one.probability)), spoken.cycle.step[1],
              one.weakest ? el("strong", {}, " · weakest link") : "")))),
          shown.probability !== null && shown.probability !== undefined && el("p", {},
            shown.probability < 0.5 ? "Probably noise: the model is only " : "The model is ",
            number("cycle_probability", shown.probability, certainty(shown.probability)),
            ` sure that all steps point this way. ${spoken.cycle.vary}`),
          factors(shown.steps[step]))),
      share());
  }

  function factors(one) {
    const most = Math.max(...one.factors.map((part) => Math.abs(part.contribution)), 1e-9);
    return el("div", { class: "factors" },
      el("h3", {}, "What carries the step ", name(one.item), " over ", name(one.rival)),
      el("p", { class: "quiet" }, "The margin is a sum over the factors of the model; these contribute most. Bars to the left speak for the other side."),
      el("ul", {}, one.factors.map((part) => el("li", {},
        el("span", {}, part.factor === "bias" ? "bias" : part.factor === "pair" ? "own comparisons" : `factor ${part.factor}`),
        el("span", { class: "lean", "aria-hidden": "true" }, el("span", {
          class: part.contribution < 0 ? "against" : "for", vars: { width: `${(50 * Math.abs(part.contribution)) / most}%` } })),
        number("contribution", part.contribution, signed(part.contribution))))));
  }

  function share() {
    const status = el("span", { role: "status", class: "quiet" });
    return el("p", { class: "tools" }, el("button", { type: "button", on: { click: async () => {
      try {
        await navigator.clipboard.writeText(location.href);
        show(status, "Copied.");
      } catch {
        show(status, "Copy the address of this page: it shows the same ring.");
      }
    } } }, "Copy a link to this ring"), status);
  }

  return { node, start: (signal) => again(null, signal), stop() {} };
}
