// A cycle as a ring: each item beats the next; the weakest step is dashed.

import { cut, decimal, el, fresh, entryOf, percent, svg, titleOf } from "./dom.js";
import { spoken } from "./words.js";

const [HEIGHT, RADIUS, NODE] = [400, 132, 21];

/** Draw a cycle of the service; `pick(step)` is called when a step is chosen, `chosen` is marked. */
export function ringPlot(cycle, { pick, chosen = -1 } = {}) {
  const [count, tip] = [cycle.path.length, fresh("tip")];
  const narrow = matchMedia("(max-width: 34rem)").matches;
  const high = narrow ? 20 : 16;
  const width = narrow ? 520 : 600; // fourteen letters next to the ring
  const [x0, y0] = [width / 2, HEIGHT / 2];
  const angle = (place) => (2 * Math.PI * place) / count - Math.PI / 2;
  const at = (turn, radius) => [x0 + radius * Math.cos(turn), y0 + radius * Math.sin(turn)];
  const marker = (name) => svg("marker", { id: `${tip}-${name}`, class: `tip ${name}`, viewBox: "0 0 10 10", refX: 7, refY: 5,
    markerUnits: "userSpaceOnUse", markerWidth: 14, markerHeight: 14, orient: "auto-start-reverse" }, svg("path", { d: "M0 0 10 5 0 10z" }));

  const words = cycle.steps.map((step) => `${titleOf(step.item)} ${spoken.beats} ${titleOf(step.rival)} by ${decimal(step.margin)}, ${spoken.cycle.step.join(percent(step.probability))}`);
  const plot = svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, class: "ring", role: "img",
    "aria-label": `A cycle: ${words.join("; ")}.` }, svg("defs", {}, marker("plain"), marker("weak")));

  cycle.steps.forEach((step, place) => {
    const gap = (NODE + 5) / RADIUS;
    const [from, to] = [angle(place) + gap, angle(place + 1) - gap - 0.02];
    const [[x1, y1], [x2, y2]] = [at(from, RADIUS), at(to, RADIUS)];
    const kind = step.weakest ? "weak" : "plain";
    const path = `M${x1} ${y1}A${RADIUS} ${RADIUS} 0 ${to - from > Math.PI ? 1 : 0} 1 ${x2} ${y2}`;
    const [lx, ly] = at((from + to) / 2, RADIUS - (count > 5 ? 30 : 40));
    const group = svg("g", { class: `step ${kind}${place === chosen ? " chosen" : ""}` },
      svg("path", { d: path, class: "reach" }),
      svg("path", { d: path, class: "line", "marker-end": `url(#${tip}-${kind})` }),
      svg("text", { x: lx, y: ly, class: "margin", "text-anchor": "middle" }, decimal(step.margin, 1)),
      svg("text", { x: lx, y: ly + (narrow ? 19 : 15), class: "chance", "text-anchor": "middle" }, percent(step.probability)));
    if (pick) group.addEventListener("click", () => pick(place));
    plot.append(group);
  });

  cycle.path.forEach((item, place) => {
    const turn = angle(place);
    const [x, y] = at(turn, RADIUS);
    const [side, height] = [Math.cos(turn), Math.sin(turn)];
    const [tx, ty] = at(turn, RADIUS + NODE + 9);
    const anchor = side > 0.3 ? "start" : side < -0.3 ? "end" : "middle";
    const room = anchor === "middle" ? 30 : narrow ? 10 : 14;
    const text = titleOf(item.item);
    const lines = wrapped(text, room, narrow && anchor !== "middle" ? 3 : 2);
    const top = ty + (height < -0.8 ? -6 - high * (lines.length - 1) : height > 0.8 ? 14 : 5 - (high / 2) * (lines.length - 1));
    plot.append(svg("g", { class: "node" }, svg("title", {}, text),
      svg("circle", { cx: x, cy: y, r: NODE }), face(item.item, x, y, tip),
      svg("text", { x, y: y + 5, "text-anchor": "middle", class: "order" }, String(place + 1)),
      lines.map((line, row) => svg("text", { x: tx, y: top + high * row, "text-anchor": anchor, class: "name" }, line))));
  });
  return el("div", { class: "ring-frame" }, plot);
}

/** The picture of an item, round, under its number; nothing where there is none or it cannot be had. */
function face(item, x, y, tip) {
  const source = entryOf(item)?.picture;
  if (!source) return null;
  const clip = fresh(tip);
  const frame = { x: x - NODE, y: y - NODE, width: 2 * NODE, height: 2 * NODE };
  return svg("g", { class: "face" },
    svg("clipPath", { id: clip }, svg("circle", { cx: x, cy: y, r: NODE - 1 })),
    svg("image", { ...frame, href: source, preserveAspectRatio: "xMidYMid slice", "clip-path": `url(#${clip})`,
      on: { error: (event) => event.target.closest(".face").remove() } }));
}

function wrapped(text, room, most) {
  if (Array.from(text).length <= room) return [text];
  const lines = [""];
  for (const word of text.split(/\s+/)) {
    const line = lines[lines.length - 1];
    if (line && Array.from(line).length + 1 + Array.from(word).length > room) lines.push(word);
    else lines[lines.length - 1] = line ? `${line} ${word}` : word;
  }
  const shown = lines.slice(0, most).map((line) => cut(line, room));
  if (lines.length > most) shown[most - 1] = cut(shown[most - 1] + " …", room);
  return shown;
}
