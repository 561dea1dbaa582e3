"""What is asked: pure functions of parameters.

===================  ================================================================================================
module               answers
===================  ================================================================================================
``parameters``       what they all take; x_uij is written there, once
``pairs``            by how much is one item preferred to another, and how surely
``vectors``          mean margins as inner products, for one's own index
``top_n``            the best N of a catalogue, by margin or by a tournament among the best; what and who is alike
``tournament``       who beats whom, is there a winner, which set beats all others
``rank``             an order by margin, wins, liked items beaten, a random walk, or a game
``cycles``           which items beat each other in a cycle, how many triples do; slates that show them together
``intransitivity``   what share of the preferences no scores explain, by user, factor and item
``fold_in``          a vector for a new user; ``new_items``, for a new item
``questions``        what to ask a person next; whether answers that contradict each other are noise or a cycle
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

from sadrec.ranking.parameters import Parameters

__all__ = ["Parameters"]
