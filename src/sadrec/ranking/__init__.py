"""Ranking: pure functions of parameters and beliefs.

===================  ================================================================================================
module               answers
===================  ================================================================================================
``parameters``       what they all take; x_uij is written there, once; mean margins as inner products
``pairs``            by how much is one item preferred to another, and how surely
``top_n``            the best N of a catalogue, by margin or by a tournament among the best; what and who is alike
``tournament``       who beats whom, the winner if one exists, the set that beats all others
``rank``             an order by margin, wins, liked items beaten, a random walk, or a game
``cycles``           which items beat each other in a cycle, how many triples do; slates that show them together
``intransitivity``   what share of the preferences no scores explain, by user and item
``fold_in``          a vector for a new user
``questions``        what to ask a person next; whether answers that contradict each other are noise or a cycle
``interview``        which of a visitor's answers are surprising, and between which places of their list items are
``slates``           whose presence on a slate changes who wins; what beats an item, for what share of the users
``explain``          what each factor contributes, and which liked items support which side
``alignment``        which factor of one model is which of another
``plots``            pictures of it (needs matplotlib)
===================  ================================================================================================

The arguments that most functions have mean the same everywhere and are not described again:

- ``parameters``: of the model.
- ``user``: a position, or a vector of floats, so that every function serves a new user, too; ``users``:
  positions, or vectors (users, factors); None for all users.
- ``items``, ``rivals``: positions; None for the whole catalogue. ``labels``: what to call the items in the answer.
- ``game``: a tournament. ``minimum``: the margin that a win needs to count.
- ``N``: how many. ``num_threads``: 0 for all cores; no answer depends on it. ``progress``: called with the number of
  users answered since the last call. ``regularization``: as the model was trained with, more than 0.
"""

from typing import TYPE_CHECKING

from sadrec._core.lazy import lazily
from sadrec.ranking.parameters import Parameters

if TYPE_CHECKING:
    from sadrec.ranking.cycles import Cycle, cycle_through, cyclic_triads, judge, recommend_groups
    from sadrec.ranking.interview import places, surprises
    from sadrec.ranking.pairs import contributions, preference, sigmoid
    from sadrec.ranking.parameters import nearest_bpr
    from sadrec.ranking.plots import draw_cycle, plot_leaderboard, plot_tournament
    from sadrec.ranking.questions import Contradiction, contradictions
    from sadrec.ranking.rank import rank_tournament
    from sadrec.ranking.report import arena_report
    from sadrec.ranking.slates import nemeses, spoilers

__all__ = ["Parameters"]

if not TYPE_CHECKING:
    __getattr__ = lazily(__name__, __file__)
