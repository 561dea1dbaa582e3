"""Built-in baselines: popularity and EASE.

Both give every item a score. They are estimators like
:class:`~sadrec.SAD`: the same settings, ids, ``fit``, ``save`` and ``load``.
"""

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from sadrec._core.files import plain, read_arrays, write_arrays
from sadrec._core.memory import need
from sadrec._core.settings import Number, checked, setting
from sadrec._core.types import Floats, Positions
from sadrec.data import Comparisons, Ids, Interactions, as_feedback, as_interactions
from sadrec.evaluation.plan import pattern
from sadrec.evaluation.protocol import Array
from sadrec.models import Estimator, ModelFileError, documented, pack_ids, pack_seen, refusing, unpack_ids, unpack_seen

FORMAT = 1
_ROWS = 1024  # of a matrix of items x items that are worked on at a time


class ScoreModel(Estimator):
    """An estimator that scores items: a subclass says how it learns and how it scores a few users."""

    _arrays: ClassVar[dict[str, tuple[str | None, ...]]]
    """The learnt arrays and their shapes: "users", "items", or None for any length."""
    user_ids: Ids
    item_ids: Ids
    seen: Any = None  # users x items, for a model that scores by what the user touched

    @abstractmethod
    def _learn(self, data: Any) -> Interactions | Comparisons:
        """Learn from which interactions exist, whatever their values, and return the data."""

    @abstractmethod
    def _scores(self, rows: Positions) -> Array:
        """Scores of all items (columns) for the users in ``rows``."""

    def fit(self, data: Any, show_progress: bool = True) -> Self:
        """Learn from interactions in any form that :class:`~sadrec.SAD` takes, and return the model."""
        learnt = self._learn(data)
        self.user_ids, self.item_ids = Ids(learnt.users, "user"), Ids(learnt.items, "item")
        return self

    def scores(self, users: Any, /) -> Array:
        """Scores of all ``items`` (columns) for ``users`` (rows); higher is better."""
        return self._scores(np.atleast_1d(self.user_ids.positions(users)))

    def save(self, path: str | Path) -> None:
        """Write the model to a file, whole or not at all."""
        arrays: dict[str, Array] = {}
        kinds = {name: pack_ids(name, getattr(self, name), arrays) for name in ("users", "items")}
        arrays |= {name: np.asarray(getattr(self, name)) for name in self._arrays}
        header = {"class": type(self).__name__, "params": plain(self.get_params()), "ids": kinds}
        arrays |= pack_seen(self.seen)
        write_arrays(Path(path), arrays, {"kind": "baseline", "format": FORMAT, **header})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that :meth:`save` wrote. Nothing in it is executed."""
        with refusing(path, f"a {cls.__name__} of sadrec"):
            arrays, header = read_arrays(Path(path), f"a {cls.__name__} of sadrec")
            if (header.get("kind"), header.get("format"), header.get("class")) != ("baseline", FORMAT, cls.__name__):
                raise ModelFileError(f"{str(path)!r} holds no {cls.__name__} of this version of sadrec")
            model = cls(**header["params"])
            sizes = {}
            for name, what in (("users", "user"), ("items", "item")):
                sizes[name] = len(arrays.get(f"{name}_offsets", arrays[name])) - (f"{name}_offsets" in arrays)
                ids = Ids(unpack_ids(name, header["ids"][name], arrays, sizes[name]), what)
                setattr(model, f"{what}_ids", ids)
            for name, shape in cls._arrays.items():
                array = np.array(arrays[name])
                fits = array.ndim == len(shape) and all(
                    length is None or have == sizes[length] for length, have in zip(shape, array.shape, strict=True)
                )
                if not fits or array.dtype != np.float32 or not np.isfinite(array).all():
                    raise ValueError(f"{name} has not the shape or type it should have")
                setattr(model, name, array)
            model.seen = unpack_seen(arrays, (sizes["users"], sizes["items"]))
        return model


@documented
@dataclass(eq=False, repr=False)
class Popularity(ScoreModel):
    """A baseline that scores every item by the number of its users.

    The score of an item touched ``c`` times is ``log(c + 1)``, so a difference of two is the logarithm of how many
    times more popular one item is than the other. Of comparisons it is ``log(wins + 1) - log(losses + 1)``.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> from sadrec import Interactions
    >>> data = Interactions.from_csr(csr_matrix([[1, 1, 0], [1, 0, 0]]))
    >>> Popularity().fit(data).scores([1]).round(2)
    array([[1.1 , 0.69, 0.  ]], dtype=float32)
    """

    _arrays: ClassVar = {"item_scores": ("items",)}

    def _learn(self, data: Any) -> Interactions | Comparisons:
        feedback = as_feedback(data)
        if isinstance(feedback, Comparisons):
            decided = feedback.decided
            sides = (decided.winner_index, decided.loser_index)
            wins, losses = (np.log1p(np.bincount(side, minlength=len(feedback.items))) for side in sides)
            scores = wins - losses
        else:
            scores = np.log1p(np.bincount(feedback.matrix.indices, minlength=len(feedback.items)))
        self.item_scores: Floats = scores.astype(np.float32)
        return feedback

    def _scores(self, rows: Positions) -> Array:
        return np.tile(self.item_scores, (len(rows), 1))


@documented
@dataclass(eq=False, repr=False)
class EASE(ScoreModel):
    """Item-to-item weights that best rebuild every user's row from the other items.

    With ``X`` the users x items matrix of ones and zeros, ``P`` the inverse of ``X'X + regularization I``:
    ``B = I - P / diag(P)`` minimises ``|X - XB|^2 + regularization |B|^2`` among matrices with a zero diagonal, and
    the scores are ``XB``.

    {settings}

    References
    ----------
    Harald Steck. Embarrassingly shallow autoencoders for sparse data. WWW 2019.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> from sadrec import Interactions
    >>> data = Interactions.from_csr(csr_matrix([[1, 1, 0], [1, 1, 0], [1, 0, 0], [0, 0, 1]]))
    >>> model = EASE(regularization=1.0).fit(data)
    >>> model.scores([2]).round(2)
    array([[0. , 0.5, 0. ]], dtype=float32)
    """

    regularization: float = setting(
        500.0,
        Number(),
        "Weight of the penalty, in units of interactions.",
        search=(50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0),
        positional=True,
    )

    _arrays: ClassVar = {"weights": ("items", "items")}

    def _learn(self, data: Any) -> Interactions:
        import scipy.linalg

        penalty = checked(self)["regularization"]
        interactions = as_interactions(data)
        self.seen = pattern(interactions)
        count = len(interactions.items)
        need(24 * count**2, f"EASE with {count:,} items", "leave out rare items (Interactions.filter)")
        gram = (self.seen.T @ self.seen).astype(np.float64).toarray()
        gram[np.diag_indices_from(gram)] += penalty
        # In place: the matrix is symmetric, and what LAPACK calls its lower triangle is the upper one of these rows.
        factor, _ = scipy.linalg.cho_factor(gram.T, lower=True, overwrite_a=True, check_finite=False)
        inverse = scipy.linalg.lapack.dpotri(factor, lower=True, overwrite_c=True)[0].T
        self.weights: Floats = _ease_weights(inverse)
        return interactions

    def _scores(self, rows: Positions) -> Array:
        return np.asarray(self.seen[rows] @ self.weights)


def _ease_weights(upper: Array) -> Floats:
    """Return ``-P / diag(P)`` with a zero diagonal, of a symmetric matrix whose upper triangle is given.

    >>> _ease_weights(np.array([[2.0, 1.0], [np.nan, 4.0]]))
    array([[ 0.  , -0.25],
           [-0.5 ,  0.  ]], dtype=float32)
    """
    weights = np.empty(upper.shape, np.float32)
    scale = -1.0 / np.diag(upper)
    for start in range(0, len(upper), _ROWS):
        stop = min(start + _ROWS, len(upper))
        corner = np.triu(upper[start:stop, start:stop])
        weights[start:stop, start:stop] = (corner + np.triu(corner, 1).T) * scale[start:stop]
        block = upper[start:stop, stop:]
        weights[start:stop, stop:] = block * scale[stop:]
        weights[stop:, start:stop] = block.T * scale[start:stop]
    np.fill_diagonal(weights, 0)
    return weights
