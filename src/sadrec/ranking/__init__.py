"""What is asked: pure functions of parameters.

===================  ================================================================================================
module               answers
===================  ================================================================================================
``pairs``            by how much is one item preferred to another, and how surely
``vectors``          mean margins as inner products, for one's own index
``top_n``            the best N of a catalogue, for any number of users
``recommend``        the same, with an exact tournament among the best
``tournament``       who beats whom, is there a winner, which set beats all others
``rank``             an order by margin, wins, liked items beaten, a random walk, or a game (``lottery``)
``cycles``           which items beat each other in a cycle, and how many triples do; ``groups`` makes slates of them
``intransitivity``   what share of the preferences no scores explain, by user, factor and item
``fold_in``          a vector for somebody new; ``new_items``, for a new item
``explain``          what each factor contributes, and which liked items speak for which side
``neighbours``       what and who is alike
``alignment``        which factor of one model is which of another
``plots``            pictures of it (needs matplotlib)
===================  ================================================================================================

A user is a position, or a vector of floats: every function serves somebody new like anybody else.
"""

from sadrec.ranking.parameters import Parameters

__all__ = ["Parameters"]
