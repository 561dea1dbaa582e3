"""What features predict, by a small network: a ridge regression, and a layer of units for what it leaves.

``theta_i = c + W' f_i + V' max(U' f_i + a, 0) + b``. The network is trained by Adam on the residuals of the ridge
regression, and stops at the step whose error on held-out rows is least; the first of these is that of no network at
all. It starts from the same numbers every time, so that what is predicted follows from the targets alone. Training
needs PyTorch; predictions, those of a loaded model among them, need NumPy.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from sadrec._types import Doubles
from sadrec.features.ridge import FEW, Linear, Ridge

UNITS = 32
"""Of the layer."""
STEPS = 300
"""Of Adam, at most."""
HELD_OUT = 0.15
"""Share of the rows that tell when to stop."""
ENOUGH_ROWS = 40
"""With fewer rows there is no network beside the regression."""
MOST_ROWS = 20_000
"""Of more, some are chosen at random."""
_RATE, _DECAY = 0.01, 0.01
_EVERY, _PATIENCE = 5, 8  # steps between looks at the held-out rows; looks without a gain


@dataclass(frozen=True, eq=False)
class Network:
    """A prediction: that of ``linear``, and what a layer of units adds to it."""

    linear: Linear
    hidden: Doubles  # (columns, units)
    hidden_bias: Doubles
    out: Doubles  # (units, targets)
    out_bias: Doubles

    def predict(self, rows: Any) -> Doubles:
        """Return the predictions for rows of features, (rows, targets)."""
        units = np.maximum(rows @ self.hidden + self.hidden_bias, 0.0)
        return np.asarray(self.linear.predict(rows) + units @ self.out + self.out_bias)


Prediction = Linear | Network


def torch_module() -> Any:
    """Return PyTorch."""
    try:
        import torch
    except ImportError as error:
        raise ImportError("features='mlp' trains a network with PyTorch: pip install 'sadrec[neural]'") from error
    return torch


class Perceptron:
    """The network on given rows, CSR (rows, columns), with given weights; prepared once, fitted to many targets."""

    def __init__(self, rows: Any, weight: Doubles, seed: int) -> None:
        torch_module()
        self._ridge = Ridge(rows, weight)
        rng = np.random.default_rng((seed, 19))
        known = rng.permutation(np.flatnonzero(weight > 0))[:MOST_ROWS]
        held = round(HELD_OUT * len(known))
        self._held, self._used = np.sort(known[:held]), np.sort(known[held:])
        self._rows, self._weight = rows, weight / weight[known].mean()
        width = rows.shape[1]
        size = np.sqrt(max(float(rows.multiply(rows).sum()) / max(rows.shape[0], 1), 1e-12))
        self._hidden = rng.standard_normal((width, UNITS)) / size
        self._hidden_bias = rng.uniform(-1, 1, UNITS)

    def fit(self, targets: Doubles, groups: tuple[int, ...]) -> Network:
        """Return the network for targets, (rows, targets); ``groups`` of so many columns are of one size."""
        linear = self._ridge.fit(targets, groups)
        count = targets.shape[1]
        start = self._hidden, self._hidden_bias, np.zeros((UNITS, count)), np.zeros(count)
        if len(self._held) + len(self._used) < ENOUGH_ROWS:
            return Network(linear, *start)
        used = np.concatenate((self._used, self._held))
        rest = targets[used] - linear.predict(self._rows[used])
        weight = self._weight[used, None]
        squares = (weight * rest**2).mean(axis=0)
        ends = np.cumsum((0, *groups))
        sizes = [np.sqrt(max(float(squares[a:b].mean()), 1e-300)) for a, b in pairwise(ends)]
        size = np.repeat(sizes, groups)
        hidden, hidden_bias, out, out_bias = self._trained(used, rest / size, weight, start)
        return Network(linear, hidden, hidden_bias, out * size, out_bias * size)

    def _trained(self, used: Any, rest: Doubles, weight: Doubles, start: tuple[Doubles, ...]) -> tuple[Doubles, ...]:
        """Return the numbers of the network at its best step; the last rows are held out."""
        torch = torch_module()
        device = "cuda" if torch.cuda.is_available() else "cpu"
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # the order of additions must not depend on how many there are
        try:
            rows = self._rows[used]
            if rows.shape[1] <= FEW:
                inputs = torch.tensor(rows.toarray(), dtype=torch.float32, device=device)
            else:
                coo = rows.tocoo()
                at = np.vstack((coo.row, coo.col))
                inputs = torch.sparse_coo_tensor(at, coo.data.astype(np.float32), rows.shape, device=device).coalesce()
            wanted, counts = (torch.tensor(part, dtype=torch.float32, device=device) for part in (rest, weight))
            numbers = [torch.tensor(part, dtype=torch.float32, device=device, requires_grad=True) for part in start]
            optimiser = torch.optim.AdamW(numbers, lr=_RATE, weight_decay=_DECAY)
            trained = len(self._used)

            def errors() -> Any:
                hidden, hidden_bias, out, out_bias = numbers
                product = inputs @ hidden if rows.shape[1] <= FEW else torch.sparse.mm(inputs, hidden)
                return counts * (torch.relu(product + hidden_bias) @ out + out_bias - wanted) ** 2

            best, kept, since = np.inf, start, 0
            for step in range(STEPS + 1):
                found = errors()
                if step % _EVERY == 0:
                    left = float(found[trained:].detach().mean())
                    since += 1
                    if left < best:
                        best, since = left, 0
                        kept = tuple(part.detach().cpu().numpy().astype(np.float64) for part in numbers)
                    if since > _PATIENCE:
                        break
                optimiser.zero_grad()
                found[:trained].mean().backward()
                optimiser.step()
            return kept
        finally:
            torch.set_num_threads(threads)
