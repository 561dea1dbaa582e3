"""How much memory a fit takes beside its data, told by the settings that decide it, before anything is allocated."""

import numpy as np

from sadrec._memory import need, size
from sadrec.training.dataset import TrainingData
from sadrec.training.drawn import CHUNK
from sadrec.training.given import ROUND, cells_of
from sadrec.training.settings import Settings


def check_size(data: TrainingData, settings: Settings, threads: int) -> None:
    """Refuse a fit that needs more memory than there is; the error names the setting that needs most of it."""
    needed = bytes_needed(data, settings, threads)
    name = max(needed, key=lambda part: needed[part])
    total = f"{name}={getattr(settings, name)!r} takes {size(needed[name])}: the fit" if name != "data" else "the fit"
    need(sum(needed.values()), total, f"lower {name}" if name != "data" else "fit a part of it")


def bytes_needed(data: TrainingData, settings: Settings, threads: int) -> dict[str, int]:
    """Return the bytes that a fit takes at its peak: by the settings that decide it, and for arrays beside the data."""
    users, items, k = len(data.users), len(data.items), settings.factors
    if settings.solver == "variational":
        moments = (k + 1) ** 2 * (users + 4 * items)
        rows = len(data.comparisons or ())  # at most: equal ones are counted; two learners hold them
        return {"factors": 8 * moments + 3 * 4 * moments, "data": 230 * rows}
    vectors = users + items * (3 if settings.learn_rivals and settings.adaptive else 2 if settings.learn_rivals else 1)
    needed = {"factors": 4 * k * vectors, "blocks": 0, "negative_candidates": 0, "negatives": 0, "data": 0}
    positives = data.positives(settings)
    if positives is not None:
        longest = int(np.diff(positives.indptr).max(initial=0))
        needed["blocks"] += 4 * users * (settings.blocks + 1) + 48 * settings.blocks**2
        if settings.loss == "softmax":  # all positives of a chunk share them
            negatives, width = min(settings.negatives, items), (2 if settings.learn_rivals else 1) * k
            larger = "factors" if width > negatives else "negatives"
            needed[larger] += 4 * threads * (2 * CHUNK * (negatives + width) + 3 * negatives * width)
        else:
            needed["negative_candidates"] = 4 * threads * (CHUNK + longest) * settings.negative_candidates
        needed["data"] += len(positives.indices) * (2 if positives.weights is None else 2 + positives.weights.itemsize)
    if positives is None or data.has_pairs or settings.order_share > 0:
        needed["blocks"] += 60 * cells_of(max(settings.blocks // 2, 1))
        needed["data"] += 26 * min(ROUND, 100 * data.triples)
    return needed
