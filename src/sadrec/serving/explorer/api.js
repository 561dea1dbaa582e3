// The service: one function that asks it, and what happens when it does not answer or changes its model.

import { remember } from "./dom.js";

const listeners = { away: () => {}, back: () => {}, changed: () => {}, key: async () => "" };
export const listen = (given) => Object.assign(listeners, given);

export class Problem extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

let model = null;
let away = false;
const KEY = "sadrec-key";
let key = sessionStorage.getItem(KEY);

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

async function fetched(path, options) {
  for (let wait = 1000; ; wait = Math.min(2 * wait, 15000)) {
    try {
      const response = await fetch(path, options());
      if (response.status !== 503) {
        if (away) listeners.back();
        away = false;
        return response;
      }
    } catch (error) {
      if (error.name === "AbortError") throw error;
    }
    if (options().signal?.aborted) throw new DOMException("no longer asked", "AbortError");
    if (!away) listeners.away();
    away = true;
    await pause(wait);
  }
}

/** Leave a whole number that JavaScript would round as text: ids may have 64 bits, and the service takes them so. */
const exactly = (_, value, context) =>
  Number.isInteger(value) && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "") ? context.source : value;

/** Ask the visitor for a key until it could be one; `refused` says that the last one was not known. */
async function typed(refused) {
  for (;;) {
    const given = (await listeners.key(refused)).trim();
    if (/^[!-~]+$/.test(given)) return given; // what a header can hold
    refused = true;
  }
}

/** What the service does not know, in the words of the page: its own are for programs. */
function plainly(error) {
  const [, kind, id] = /^(?:unknown|cannot look up the) (user|item) (.*?)(?: \(ids here .*)?: /s.exec(error ?? "") ?? [];
  return kind ? `There is no ${kind} ${id.replace(/^'(.*)'$/s, "$1")}. The link may be about another model, or the id mistyped.` : error;
}

function collect(value) {
  if (Array.isArray(value)) value.forEach(collect);
  else if (value && typeof value === "object") {
    if ("item" in value && "title" in value && typeof value.item !== "object") remember(value);
    Object.values(value).forEach(collect);
  }
}

/** Ask the service; `body` makes it a POST. A service that is away is asked again until it is back. */
export async function ask(path, { body, signal, keepalive = false } = {}) {
  const options = () => ({
    signal,
    keepalive,
    method: body === undefined ? "GET" : "POST",
    body: body === undefined ? undefined : JSON.stringify(body),
    headers: {
      ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      ...(key ? { Authorization: `Bearer ${key}` } : {}),
    },
  });
  const used = key;
  const response = await fetched(`v1/${path}`, options);
  if (response.status === 401) {
    if (used === key) { // else another question was given a new one meanwhile
      sessionStorage.removeItem(KEY);
      key = await typed(used !== null);
    }
    return ask(path, { body, signal, keepalive });
  }
  if (used !== null) sessionStorage.setItem(KEY, used); // it has worked
  let answer = null;
  try {
    answer = JSON.parse(await response.text(), exactly);
  } catch {
    throw new Problem("The service gave an answer that cannot be read.", response.status);
  }
  if (!response.ok) throw new Problem(plainly(answer.error) ?? "The service cannot answer this.", response.status);
  collect(answer);
  if (answer.model && model && answer.model !== model) {
    model = answer.model;
    queueMicrotask(listeners.changed);
  }
  model = answer.model ?? model;
  return answer;
}

export function query(path, parameters) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) search.set(name, String(value));
  return `${path}?${search}`;
}
