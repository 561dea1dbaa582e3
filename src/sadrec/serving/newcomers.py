"""People and items that a model knows by their features alone, or that a question brings along."""

from collections.abc import Callable, Sequence
from functools import wraps
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from sadrec.data.ids import Ids, UnknownIdError, as_id_array
from sadrec.features.encoder import Listed, Scaled
from sadrec.features.predictor import Predictor
from sadrec.models.newcomers import known_features as known_features_of
from sadrec.models.newcomers import with_rows
from sadrec.serving import questions
from sadrec.serving.catalogue import catalogue
from sadrec.serving.problems import Unanswerable, answered
from sadrec.serving.served import Served

Answer = dict[str, Any]
Asked = TypeVar("Asked", bound=questions.WhoAndNew)

_SHOWN = 100
"""Categories that are named as examples, at most."""
_ONE = Lock()
"""New items make a copy of the model for one question: of these there is one at a time."""


def known_features(predictor: Predictor | None) -> Answer | None:
    """Tell what features of a side a model was fitted with; None if with none."""
    if predictor is None:
        return None
    codes = predictor.encoder.codes
    return {
        "numbers": [name for code in codes if isinstance(code, Scaled) for name in code.names],
        "categories": {code.name: code.levels[:_SHOWN] for code in codes if isinstance(code, Listed)},
        "cold": int(predictor.cold.sum()),
    }


def with_new_items(verb: Callable[[Served, Asked], Answer]) -> Callable[[Served, Asked], Answer]:
    """Let a verb be asked about new items, too: it then answers from a copy of the model that knows them."""

    @wraps(verb)
    def ask(served: Served, asked: Asked) -> Answer:
        if not asked.new_items:
            return verb(served, asked)
        with _ONE:
            return verb(joined(served, asked.new_items), asked)

    return ask


def joined(served: Served, new: Sequence[questions.NewItem]) -> Served:
    """Return what is served with more items, which are known by their features; nothing is learnt."""
    model = served.model
    encoder = answered(lambda: known_features_of(model.state, "item")).encoder
    example = served.items.ids[0]
    try:
        given = [served.item_id(one.item) for one in new]
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
    named = served.items.joined(catalogue(ids))
    return Served(larger, served.digest, items=named, log=served.log)


def cold(predictor: Predictor | None, row: Any) -> bool:
    """Whether the user or item in a row of the model is known by features alone."""
    return predictor is not None and bool(np.asarray(predictor.cold)[row])
