// One table of words per kind of data: games that were played, or what people prefer.

export const WORDS = {
  contests: {
    noun: "item", rival: "opponent", game: "match", games: "matches", beats: "beats", beaten: "loses to", wins: "Wins", met: "met", judge: "source",
    leaderboard: "Who is strongest, and how sure that is.",
    matchups: "How often each wins against each opponent, the strongest first.",
    counters: "Whom it beats, and who beats it.",
    rings: "Items that beat each other in a ring: no order is right for them.",
    ask: "Which matches to play next, to be surer of the ranking.",
  },
  taste: {
    noun: "item", rival: "other item", game: "comparison", games: "comparisons", beats: "is preferred to", beaten: "loses to", wins: "Preferred", met: "compared", judge: "person",
    leaderboard: "What people prefer, on average, and how sure that is.",
    matchups: "How often each is preferred to each other item, the most preferred first.",
    counters: "What it is preferred to, and what is preferred to it.",
    rings: "Items that are preferred to each other in a ring: no order is right for them.",
    ask: "Which pairs to ask people about next, to be surer of the ranking.",
  },
};
