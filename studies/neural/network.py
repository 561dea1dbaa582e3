"""An anti-symmetric network whose linear part is SAD; a program of its own, which needs NumPy and PyTorch, not sadrec.

    x_uij = sum_h xi_uh (eta_ih tau_jh - eta_jh tau_ih) + b_i - b_j + g(u, i, j) - g(u, j, i)
    g(u, i, j) = v . relu(A xi_u + B p_i + C p_j + c),    p_i = (eta_i, tau_i - 1)

v starts at 0, so that training starts from SAD; ``hidden=0`` leaves g out. ``python network.py FOLDER`` reads
``arrays.npz`` and ``settings.json`` there and writes ``answers.npz``.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ARRAYS, SETTINGS, ANSWERS = "arrays.npz", "settings.json", "answers.npz"
# Rivals that the mean margin of an item is taken over, where lists are asked for.
RIVALS = 64
_BATCH = 1024


def parameters(torch: Any, users: int, items: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Draw what training starts from."""
    draw = torch.Generator().manual_seed(settings["seed"])
    k, hidden = settings["factors"], settings["hidden"]

    def normal(*shape: int, scale: float) -> Any:
        return (scale * torch.randn(*shape, generator=draw)).requires_grad_()

    def zeros(*shape: int) -> Any:
        return torch.zeros(*shape).requires_grad_()

    start = {"eta": normal(items, k, scale=0.1), "rival": zeros(items, k), "bias": zeros(items)}
    start["xi"] = normal(users, k, scale=0.1)
    if users == 1:  # as sadrec has it: one person's factors begin at 1
        start["xi"] = torch.ones(1, k).requires_grad_()
        start["rival"] = normal(items, k, scale=0.1)
    if hidden:
        start |= {
            "A": normal(k, hidden, scale=k**-0.5),
            "B": normal(2 * k, hidden, scale=(2 * k) ** -0.5),
            "C": normal(2 * k, hidden, scale=(2 * k) ** -0.5),
            "c": normal(hidden, scale=0.1),
            "v": zeros(hidden),
        }
    return start


def margins(torch: Any, p: dict[str, Any], u: Any, i: Any, j: Any) -> Any:
    """Return x_uij; the rows u, i and j broadcast."""
    xi, eta_i, eta_j, rival_i, rival_j = p["xi"][u], p["eta"][i], p["eta"][j], p["rival"][i], p["rival"][j]
    x = (xi * (eta_i * (1 + rival_j) - eta_j * (1 + rival_i))).sum(-1) + p["bias"][i] - p["bias"][j]
    if "v" in p:
        one, other = torch.cat([eta_i, rival_i], -1), torch.cat([eta_j, rival_j], -1)
        person = xi @ p["A"] + p["c"]
        forth = torch.relu(person + one @ p["B"] + other @ p["C"])
        back = torch.relu(person + other @ p["B"] + one @ p["C"])
        x = x + (forth - back) @ p["v"]
    return x


def penalty(p: dict[str, Any], u: Any, i: Any, j: Any) -> Any:
    """Return half the mean squared size of the rows that a batch uses; rivals count by their distance from 1."""
    rows: Any = (p["xi"][u] ** 2).sum(-1) if len(p["xi"]) > 1 else 0.0
    for side in (i, j):
        rows = rows + (p["eta"][side] ** 2).sum(-1) + (p["rival"][side] ** 2).sum(-1) + p["bias"][side] ** 2
    return 0.5 * rows.mean()


def train(
    torch: Any,
    p: dict[str, Any],
    settings: dict[str, Any],
    batches: Callable[[int], Any],
    judge: Callable[[], float] | None,
) -> int:
    """Minimise the log loss; with ``judge``, stop when it has not become better for a while and return to the best."""
    network = [value for name, value in p.items() if name in "ABCcv"]
    factors = [value for name, value in p.items() if name not in "ABCcv"]
    groups = [{"params": factors, "lr": settings["learning_rate"]}]
    if network:
        groups.append({"params": network, "lr": settings["learning_rate"] / 3, "weight_decay": settings["decay"]})
    optimiser = torch.optim.AdamW(groups, weight_decay=0.0)
    best, kept, since, epochs = np.inf, {}, 0, 0
    for epoch in range(settings["epochs"]):
        epochs = epoch + 1
        for u, i, j in batches(epoch):
            loss = torch.nn.functional.softplus(-margins(torch, p, u, i, j)).mean()
            loss = loss + settings["regularization"] * penalty(p, u, i, j)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        if judge is not None:
            now = judge()
            if now < best - 1e-5:
                best, since = now, 0
                kept = {name: value.detach().clone() for name, value in p.items()}
            elif (since := since + 1) >= settings["patience"]:
                break
    p.update(kept)
    return epochs


def of_comparisons(torch: Any, arrays: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Fit to comparisons, stopping on the validation part; answer the margins of validation and test part."""
    parts = {
        part: [torch.as_tensor(arrays[f"{part}_{side}"]).long() for side in ("user", "winner", "loser")]
        for part in ("train", "validation", "test")
    }
    users, items = (int(size) for size in arrays["shape"])
    p = parameters(torch, users, items, settings)
    order = torch.Generator().manual_seed(settings["seed"] + 1)
    size = min(_BATCH, max(64, len(parts["train"][0]) // 50))

    def batches(epoch: int) -> Any:
        for rows in torch.randperm(len(parts["train"][0]), generator=order).split(size):
            yield tuple(side[rows] for side in parts["train"])

    def answer(part: str) -> Any:
        with torch.no_grad():
            return margins(torch, p, *parts[part])

    def judge() -> float:
        return float(torch.nn.functional.softplus(-answer("validation")).mean())

    epochs = train(torch, p, settings, batches, judge)
    return {part: answer(part).numpy() for part in ("validation", "test")} | {"epochs": epochs}


def of_interactions(torch: Any, arrays: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Fit to interactions against the hardest of a few drawn items; answer mean margins over some rivals."""
    indptr, indices = arrays["indptr"], arrays["indices"]
    users, items = (int(size) for size in arrays["shape"])
    p = parameters(torch, users, items, settings)
    rng = np.random.default_rng(settings["seed"])
    owner = np.repeat(np.arange(users), np.diff(indptr))
    keys = owner * items + indices

    def drawn(rows: Any, candidates: int) -> Any:
        """Draw items that the user has not touched; one that is touched after all is drawn again, a few times."""
        out = rng.integers(items, size=(len(rows), candidates))
        for _ in range(8):
            asked = owner[rows][:, None] * items + out
            touched = keys[np.minimum(np.searchsorted(keys, asked), len(keys) - 1)] == asked
            if not touched.any():
                break
            out[touched] = rng.integers(items, size=int(touched.sum()))
        return out

    def batches(epoch: int) -> Any:
        for rows in np.array_split(rng.permutation(len(keys)), max(1, len(keys) // _BATCH)):
            u, i = torch.as_tensor(owner[rows]).long(), torch.as_tensor(indices[rows]).long()
            j = torch.as_tensor(drawn(rows, settings["candidates"])).long()
            with torch.no_grad():
                hardest = margins(torch, p, u[:, None], i[:, None], j).argmin(1)
            yield u, i, j[torch.arange(len(u)), hardest]

    epochs = train(torch, p, settings, batches, None)
    rivals = torch.as_tensor(np.random.default_rng(0).permutation(items)[:RIVALS]).long()
    everything = torch.arange(items)
    scores = np.empty((users, items), np.float32)
    with torch.no_grad():
        for user in range(users):
            x = margins(torch, p, torch.tensor([[user]]), everything[:, None], rivals[None, :])
            scores[user] = x.mean(1).numpy()
    return {"scores": scores, "epochs": epochs}


def main(folder: Path) -> None:
    """Fit what lies in a folder and write the answers there."""
    import torch

    settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    torch.set_num_threads(settings["num_threads"])
    torch.manual_seed(settings["seed"])
    with np.load(folder / ARRAYS, allow_pickle=False) as arrays:
        kept = {name: arrays[name] for name in arrays.files}
    begun = time.perf_counter()
    answers = (of_interactions if "indptr" in kept else of_comparisons)(torch, kept, settings)
    np.savez(folder / ANSWERS, seconds=time.perf_counter() - begun, **answers)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
