// What the page knows: in the address, so that a link shows the same. #/ring?user=3&item="b"

const read = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** A value of the address: JSON, or else the text itself, so that ?user=zz is about zz and no number is rounded. */
const given = (text) => {
  const value = read(text);
  const rounded = typeof value === "number" && Math.abs(value) > Number.MAX_SAFE_INTEGER;
  return value === undefined || value === null || rounded ? text || undefined : value;
};

const isId = (value) => typeof value === "number" || typeof value === "string";

export function fromHash(hash = location.hash) {
  const [path, search = ""] = hash.replace(/^#\/?/, "").split("?");
  const values = {};
  for (const [key, text] of new URLSearchParams(search)) values[key] = given(text);
  return { panel: path, values };
}

export function toHash(panel, values) {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(values)) {
    if (value !== undefined && value !== null && !(Array.isArray(value) && !value.length)) {
      search.set(key, JSON.stringify(value));
    }
  }
  const text = search.toString();
  return `#/${panel}${text ? "?" + text : ""}`;
}

/** An id; what cannot be one is left as text, which the service will not know. */
export const id = (value) => (value === undefined || isId(value) ? value : JSON.stringify(value));
export const ids = (value) => (Array.isArray(value) ? value.filter(isId) : []);

/** Pairs [winner, loser], as the duels keep them. */
export const pairs = (value) =>
  Array.isArray(value)
    ? value.filter((pair) => Array.isArray(pair) && pair.length === 2 && pair.every(isId) && pair[0] !== pair[1])
    : [];

export const replace = (panel, values) => history.replaceState(null, "", toHash(panel, values));

// -- the visitor ---------------------------------------------------------------------------------------------------

const KEPT = "sadrec-answers";

/** The answers of whoever sits here, kept for as long as the tab is open. */
export const visitor = {
  answers: pairs(read(sessionStorage.getItem(KEPT) ?? "[]")),
  name: `visitor-${Array.from(crypto.getRandomValues(new Uint8Array(6)), (byte) => byte.toString(16).padStart(2, "0")).join("")}`,
  keep(answers) {
    this.answers = answers;
    sessionStorage.setItem(KEPT, JSON.stringify(answers));
  },
};

/** What somebody said, as the service takes it; before the first answer they are the average user. */
export const about = (answers) => (answers.length ? { comparisons: answers.map(([winner, loser]) => ({ winner, loser })) } : {});

/** Whom a question is about, as the service takes it: a user, you by your answers, or nobody: the average user. */
export function person(who) {
  if (who.user !== undefined) return { user: who.user };
  return about(who.you ?? []);
}
