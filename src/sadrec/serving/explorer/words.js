// One table of words per kind of data: games that were played, or what people prefer.

export const WORDS = {
  contests: {
    rival: "opponent", game: "match", games: "matches", beats: "beats", beaten: "What beats it", unbeaten: "None of these beats it.",
    leaderboard: "Who is strongest, and how sure that is.",
    matchups: "How often each wins against each opponent, the strongest first.",
    counters: "Whom it beats, and who beats it.",
    rings: "Items that beat each other in a ring: no order is right for them.",
    ask: "Which matches to play next, to be surer of the ranking.",
    duel: {
      title: "Who wins?", lead: "Say who wins, match by match. The page asks the most informative question, learns from every result, and says how sure it is.",
      question: "Who wins this match?", list: "The ranking so far", before: "Before the first result this is the ranking of the model.",
      sure: "Of two items of this list the upper one wins in ", share: " of the matches, on average.", leads: " leads the ranking.",
      show: "Show the ranking", end: "Your ranking", first: "leads the ranking", after: "of two items of the list the upper one wins in ",
      unexplained: " of the margins cannot be explained by giving every item a score. ",
      new: "This match is the most informative one.", cycle: "Asked again: your results form a cycle here. Is that right, or was one a mistake?",
      answer: "result", answers: "results",
    },
    cycle: {
      lead: "A beats B, B beats C, and C beats A: no order can show that, a ring can. Each item beats the next one clockwise; the dashed step has the lowest win probability.",
      step: ["won in ", " of the matches"], vary: "Single matches vary: each step shows how often it is won.", best: "strongest items", margins: "margins",
      else: "Try other items.",
    },
    who: { legend: "By which results?", all: "all matches", one: "one source", own: "your results", field: "Source", of: "all matches" },
    slate: { walk: "share of time that a walk spends on it when it moves to the winner of each pair", head: "How often the item of the row beats the item of the column", who: "Who wins, by " },
  },
  taste: {
    rival: "other item", game: "comparison", games: "comparisons", beats: "is preferred to", beaten: "What is preferred to it", unbeaten: "None of these is preferred to it.",
    leaderboard: "What people prefer, on average, and how sure that is.",
    matchups: "How often each is preferred to each other item, the most preferred first.",
    counters: "What it is preferred to, and what is preferred to it.",
    rings: "Items that are preferred to each other in a ring: no order is right for them.",
    ask: "Which pairs to ask people about next, to be surer of the ranking.",
    duel: {
      title: "This or that", lead: "Choose between two items, again and again. The page asks the most informative question, learns from every answer, and says how sure it is.",
      question: "Which would you rather have?", list: "Your list so far", before: "Before the first answer this is the list of the average user.",
      sure: "Of two items of this list you would choose the upper one in ", share: " of the cases, on average.", leads: " leads your list.",
      show: "Show my taste", end: "Your taste", first: "leads your list", after: "of two items of your list you would choose the upper one in ",
      unexplained: " of your preferences cannot be explained by giving every item a score. ",
      new: "Your answer to this pair is the most informative one.", cycle: "Asked again: your answers form a cycle here. Is that your taste, or was one a mistake?",
      answer: "answer", answers: "answers",
    },
    cycle: {
      lead: "A over B, B over C, and C over A: no list can show that, a ring can. Each item is preferred to the next one clockwise; the dashed step has the lowest win probability.",
      step: ["preferred in ", " of the answers"], vary: "Single answers vary: each step shows how often it is preferred.", best: "best items", margins: "preferences",
      else: "Try another user: those whose preferences fit scores least come first in the field above.",
    },
    who: { legend: "Whose taste?", all: "the average user", one: "one user", own: "you", field: "User", of: "the average user" },
    slate: { walk: "share of time that a walk spends on it when it moves to what is preferred", head: "How often the item of the row is preferred to the item of the column", who: "Who wins for " },
  },
};

/** The words of the model that is served; panels read them when they draw. */
export let spoken = WORDS.taste;
export const speak = (kind) => { spoken = WORDS[kind]; };
