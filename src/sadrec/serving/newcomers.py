"""Users and items with features alone, from the fit or from a question."""

from collections.abc import Callable, Sequence
from functools import wraps
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from sadrec.data import Ids, UnknownIdError, as_id_array
from sadrec.features import Listed, Predictor, Scaled
from sadrec.models import known_features as known_features_of
from sadrec.models import with_rows
from sadrec.serving import questions
from sadrec.serving.catalogue import catalogue
from sadrec.serving.loaded import Json, Loaded
from sadrec.serving.problems import Unanswerable, answered

Question = TypeVar("Question", bound=questions.WhoAndNew)

_SHOWN = 100
"""Categories that are named as examples, at most."""
_ONE = Lock()
"""New items make a copy of the model for one question, one copy at a time."""


def known_features(predictor: Predictor | None) -> Json | None:
    """Return the features of a side that a model was fitted with, or None."""
    if predictor is None:
        return None
    codes = predictor.encoder.codes
    return {
        "numbers": [name for code in codes if isinstance(code, Scaled) for name in code.names],
        "categories": {code.name: code.levels[:_SHOWN] for code in codes if isinstance(code, Listed)},
        "cold": int(predictor.cold.sum()),
    }


def with_new_items(verb: Callable[[Loaded, Question], Json]) -> Callable[[Loaded, Question], Json]:
    """Add the new items of a question to a copy of the model, from which the verb answers."""

    @wraps(verb)
    def ask(loaded: Loaded, question: Question) -> Json:
        if not question.new_items:
            return verb(loaded, question)
        with _ONE:
            return verb(joined(loaded, question.new_items), question)

    return ask


def joined(loaded: Loaded, new: Sequence[questions.ItemWithFeatures]) -> Loaded:
    """Return the loaded model with new items, placed by their features."""
    model = loaded.model
    encoder = answered(lambda: known_features_of(model.state, "item")).encoder
    example = loaded.items.ids[0]
    try:
        given = [loaded.item_id(one.item) for one in new]
        ids = Ids(as_id_array(given), "item")
    except UnknownIdError:
        raise Unanswerable(f"new_items: the ids of this model are such as {example!r}: give new ones like it") from None
    except ValueError as error:
        raise Unanswerable(f"new_items: {error}") from None
    rows = answered(
        lambda: sp.csr_matrix(sp.vstack([encoder.encode_one(one.features) for one in new])), (ValueError, TypeError)
    )
    larger = type(model)(**model.get_params())
    larger.state = answered(lambda: with_rows(model.state, "item", ids, rows))
    named = loaded.items.joined(catalogue(ids))
    return Loaded(larger, loaded.digest, items=named, log=loaded.log)


def cold(predictor: Predictor | None, row: Any) -> bool:
    """Whether the user or item in a row of the model has features alone."""
    return predictor is not None and bool(np.asarray(predictor.cold)[row])
