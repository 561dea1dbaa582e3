// The interface, as /openapi.json describes it: every question with its fields, bounds and answers.

import { el } from "./dom.js";

const main = document.getElementById("interface");
let schemas = {};

const resolved = (schema) => (schema?.$ref ? schemas[schema.$ref.split("/").pop()] : schema) ?? {};
const nameOf = (schema) => schema?.$ref?.split("/").pop();

/** A type in a few words: "list of Comparison, at most 1000". */
function kind(schema) {
  if (schema.$ref) return el("a", { href: `#${nameOf(schema)}` }, nameOf(schema));
  if (schema.anyOf) {
    const parts = schema.anyOf.filter((part) => part.type !== "null");
    const id = parts.map((part) => part.type).join() === "integer,number,string";
    const words = (id ? ["id: number or text"] : parts.map(kind)).flatMap((part, place) => (place ? [" or ", part] : [part]));
    return el("span", {}, words, parts.length < schema.anyOf.length ? ", or null" : "");
  }
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(", ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  const bounds = [
    schema.minimum !== undefined && Math.abs(schema.minimum) < 2 ** 53 && `at least ${schema.minimum}`,
    schema.exclusiveMinimum !== undefined && `above ${schema.exclusiveMinimum}`,
    schema.maximum !== undefined && schema.maximum < 2 ** 53 && `at most ${schema.maximum}`,
    schema.exclusiveMaximum !== undefined && schema.exclusiveMaximum < 2 ** 53 && `below ${schema.exclusiveMaximum}`,
    schema.minItems && `at least ${schema.minItems}`,
    schema.maxItems !== undefined && `at most ${schema.maxItems}`,
    schema.maxProperties !== undefined && `at most ${schema.maxProperties}`,
    schema.maxLength !== undefined && `at most ${schema.maxLength} characters`,
  ].filter(Boolean);
  const type = schema.type === "array" ? ["list of ", kind(schema.items ?? {})]
    : schema.additionalProperties?.anyOf ? ["names with values (", kind(schema.additionalProperties), ")"]
    : { integer: "whole number", string: "text", null: "null", boolean: "true or false", object: "object", number: "number" }[schema.type] ?? "anything";
  return el("span", {}, type, bounds.length ? `, ${bounds.join(", ")}` : "");
}

function fields(rows, caption) {
  if (!rows.length) return null;
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, el("table", {},
    el("caption", {}, caption),
    el("thead", {}, el("tr", {}, ["name", "type", "unless given", "what it is"].map((title) => el("th", { scope: "col" }, title)))),
    el("tbody", {}, rows.map(({ title, schema, needed, about }) => el("tr", {},
      el("th", { scope: "row" }, el("code", {}, title)), el("td", {}, kind(schema)),
      el("td", {}, needed ? "must be given" : schema.default === undefined || schema.default === null ? "" : JSON.stringify(schema.default)),
      el("td", {}, about ?? ""))))));
}

function properties(schema, caption) {
  const full = resolved(schema);
  return fields(Object.entries(full.properties ?? {}).map(([title, part]) => (
    { title, schema: part, needed: full.required?.includes(title), about: part.description })), caption);
}

const contentOf = (part) => Object.values(part?.content ?? {})[0]?.schema;

function operation(path, method, one) {
  const body = contentOf(one.requestBody);
  const answer = contentOf(one.responses["200"]);
  const others = Object.entries(one.responses).filter(([status]) => status !== "200");
  const parameters = (one.parameters ?? []).map((part) => (
    { title: part.name, schema: part.schema, needed: part.required, about: part.description ?? part.schema.description }));
  return el("details", { id: `${method}-${path}` },
    el("summary", {}, el("code", {}, `${method.toUpperCase()} ${path}`), " ", el("span", { class: "quiet" }, one.summary ?? "")),
    resolved(body).description && el("p", {}, resolved(body).description),
    fields(parameters, "Parameters"), body && properties(body, "Body: a JSON object"),
    answer && properties(answer, "Answer"),
    others.length > 0 && el("dl", { class: "methods" }, others.map(([status, part]) => el("div", {}, el("dt", {}, status), el("dd", {}, part.description)))));
}

function unfold() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target?.tagName === "DETAILS") target.open = true;
}

const described = await (await fetch("openapi.json")).json();
schemas = described.components?.schemas ?? {};
main.append(el("p", {}, `sadrec ${described.info.version}. Margins and scores are log-odds. Every answer names the hash of the model that gave it, `,
  "in ", el("code", {}, "model"), " and in the header ", el("code", {}, "X-Model"), "."));
const [groups, titles] = [{}, { verbs: "Questions", operation: "Operation" }];
for (const [path, methods] of Object.entries(described.paths)) {
  for (const [method, one] of Object.entries(methods)) (groups[one.tags?.[0] ?? ""] ??= []).push(operation(path, method, one));
}
for (const [tag, entries] of Object.entries(groups)) main.append(el("h2", {}, titles[tag] ?? tag), ...entries);
main.append(el("h2", {}, "Objects"), ...Object.keys(schemas).sort().map((title) => el("details", { id: title },
  el("summary", {}, el("code", {}, title)), schemas[title].description && el("p", {}, schemas[title].description),
  properties(schemas[title], "Fields"))));
main.dataset.ready = "true";
addEventListener("hashchange", unfold);
unfold();
