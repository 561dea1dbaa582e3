// Ring: where taste runs in a cycle, which step is the weakest, and which factors carry each step.

import { ask } from "./api.js";
import { announce, certainty, decimal, el, heading, name, number, percent, plural, redraw, show, signed, titleOf, whole } from "./dom.js";
import { itemField, their, whoField } from "./pick.js";
import { ringPlot } from "./ringplot.js";
import { asked, id, pairs, replace, visitor } from "./state.js";

export function ring(values) {
  let who = values.you !== undefined ? { you: pairs(values.you) } : { user: id(values.user) };
  let item = id(values.item);
  let [cycle, step] = [Number.isInteger(values.cycle) ? values.cycle : 0, -1];
  let found = null;

  const controls = el("div", { class: "controls" });
  const result = el("div");
  const node = el("div", { class: "panel-ring" },
    heading("Ring", `A over B, B over C, and C over A: no list can show that, a ring can. Each item beats the next one
      clockwise; the dashed step is the weakest: the one that is answered so least often.`),
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
    result.setAttribute("aria-busy", "true");
    try {
      found = await ask("cycles", { body: { ...asked(who), ...(item === undefined ? {} : { item }), N: 50, factors: 4 }, signal });
    } finally {
      result.removeAttribute("aria-busy");
    }
    cycle = Math.min(cycle, Math.max(0, found.cycles.length - 1));
    replace("ring", address());
    drawControls();
    draw();
  }

  function draw() {
    const shown = found.cycles[cycle];
    if (!shown) {
      announce("No cycle here.");
      show(result, el("div", { class: "empty" },
        el("h2", {}, "No cycle here"),
        el("p", {}, item === undefined
          ? `Of ${their(who, "best items")} ${whole(found.among)} were looked at. They can be put in one order: a list says it all.`
          : ["No cycle runs through ", name(item), ` among the ${whole(found.among)} items most like it.`]),
        el("p", {}, "Try somebody else: users whose preferences scores explain least come first in the field above. ",
          "A model whose T is 1 (BPR) has no cycles at all.")));
      return;
    }
    announce(`${plural(found.cycles.length, "cycle")}. The strongest: ${[...shown.path, shown.path[0]].map((one) => titleOf(one.item)).join(" over ")}.`);
    const weakest = shown.steps.findIndex((one) => one.weakest);
    if (step < 0) step = weakest;
    show(result,
      el("p", { class: "summary" }, "Of the triples among the ", number("among", found.among, whole(found.among)), " items looked at, ",
        number("cyclic_triads", found.cyclic_triads, whole(found.cyclic_triads)), " of ", number("triads", found.triads, whole(found.triads)),
        " are cycles. Scores leave ", number("intransitivity", found.intransitivity, percent(found.intransitivity)),
        ` of ${their(who, "preferences")} unexplained.`),
      found.cycles.length > 1 && el("div", { class: "choices", role: "group", "aria-label": "Cycles, by probability times strength" },
        found.cycles.map((one, place) => el("button", { type: "button", class: "pill", "aria-pressed": String(place === cycle),
          on: { click: () => { [cycle, step] = [place, -1]; replace("ring", address()); draw(); result.querySelectorAll(".pill")[place]?.focus(); } } },
        `Cycle ${place + 1}: ${plural(one.path.length, "item")}`))),
      el("div", { class: "split even" },
        ringPlot(shown, { chosen: step, pick: (place) => { step = place; draw(); } }),
        el("div", {},
          el("h2", {}, "Step by step"),
          el("ol", { class: "steps" }, shown.steps.map((one, place) => el("li", {},
            el("button", { type: "button", class: "link", "aria-pressed": String(place === step),
              on: { click: () => { step = place; draw(); result.querySelectorAll(".steps button")[place].focus(); } } },
            name(one.item), el("span", { class: "beats" }, " beats "), name(one.rival)),
            el("p", { class: "quiet" }, "by ", number("margin", one.margin, decimal(one.margin)), ", answered so in ",
              number("probability", one.probability, percent(one.probability)), " of the cases",
              one.weakest ? el("strong", {}, " · weakest link") : "")))),
          shown.probability !== null && shown.probability !== undefined && el("p", {},
            shown.probability < 0.5 ? "Probably noise: the model is only " : "The model is ",
            number("cycle_probability", shown.probability, certainty(shown.probability)),
            " sure that all steps point this way. Single answers vary: how often each comes out so stands beside its step."),
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
    const said = el("span", { role: "status", class: "quiet" });
    return el("p", { class: "tools" }, el("button", { type: "button", on: { click: async () => {
      try {
        await navigator.clipboard.writeText(location.href);
        show(said, "Copied.");
      } catch {
        show(said, "Copy the address of this page: it shows the same ring.");
      }
    } } }, "Copy a link to this ring"), said);
  }

  return { node, start: (signal) => again(null, signal), stop() {} };
}
