"""``sadrec demo``: people whose taste runs in cycles, and what two models make of them."""

import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

from sadrec.cli.options import a_folder, seed_option
from sadrec.cli.output import print_table

if TYPE_CHECKING:
    from sadrec import SAD
    from sadrec.data import Comparisons, Simulation
    from sadrec.ranking import Cycle

PEOPLE, FACTORS, ANSWERS = 1_000, 4, 160
_HOW = (
    "smoky", "crispy", "spicy", "sweet", "cold", "baked", "sour", "creamy", "roasted", "pickled",
    "buttered", "peppered", "honeyed", "charred", "herbed", "candied", "salted", "stewed", "lemony", "braised",
)  # fmt: skip
_WHAT = (
    "ramen", "tacos", "falafel", "curry", "pizza", "dumplings", "paella", "risotto", "pho",
    "waffles", "gnocchi", "burek", "pierogi", "kimchi", "ceviche",
)  # fmt: skip


@click.command("demo")
@seed_option
@click.option("-o", "--output", type=a_folder, default=Path("sadrec-demo"), help="Folder for the picture.")
@click.option("--serve", "serving", is_flag=True, help="Then serve the model, with its explorer for the browser.")
@click.option("--port", type=click.IntRange(min=0, max=65535), default=8000, help="Port for --serve; 0: any free one.")
def demo_command(seed: int, output: Path, serving: bool, port: int) -> None:
    """Simulate people whose taste has cycles, and find the cycles."""
    if serving:
        from sadrec.cli.serve import check_packages

        check_packages()  # before anything is computed
    from sadrec import BPR, SAD
    from sadrec.data import simulate

    began = time.perf_counter()
    names = np.array([f"{how} {what}" for what in _WHAT for how in _HOW])
    common = 1.0 if serving else 0.0  # on a page some dishes should be popular with everybody
    size = {"n": PEOPLE, "m": len(names), "k": FACTORS, "comparisons_per_user": ANSWERS}
    truth = simulate("sim2", **size, common=common, seed=seed)
    train, held_out = truth.comparisons.split(test=0.2, seed=seed)
    click.secho("People whose taste runs in cycles", bold=True)
    click.echo(
        f"{PEOPLE:,} people were asked {len(truth.comparisons):,} times which of two dishes (of {len(names)}) they "
        "would rather have.\nTheir taste is simulated, so we know it. One answer in five is kept back as a test.\n"
    )
    models = {
        "SAD (rivals learnt)": SAD(factors=FACTORS, random_state=seed),
        "BPR (a score per dish)": BPR(factors=FACTORS, random_state=seed),
    }
    for model in models.values():
        model.fit(train)
    click.echo()
    report_recovery(models, truth, held_out)
    sad = models["SAD (rivals learnt)"]
    best = report_cycles(sad, truth, names)
    picture = draw(models, truth, held_out, best, names, output)
    click.echo(f"\n{time.perf_counter() - began:.0f} seconds in all." + (f" Picture: {picture}" if picture else ""))
    if serving:
        serve_demo(sad, names, output, port)
    else:
        click.echo(f"To see such people in a browser: {called()} demo --serve")


def called() -> str:
    """Return the command line of this program: its name if the shell finds it, else its path."""
    return "sadrec" if shutil.which("sadrec") else sys.argv[0]


def serve_demo(model: "SAD", names: NDArray[np.str_], folder: Path, port: int) -> None:
    """Write model and titles to the folder, and run the service until it is stopped."""
    import polars as pl

    from sadrec.cli.serve import serve

    folder.mkdir(parents=True, exist_ok=True)
    path, items = folder / "demo.sad", folder / "dishes.csv"
    model.save(path)
    pl.DataFrame({"item": np.arange(len(names)), "title": np.char.capitalize(names)}).write_csv(items)
    raise SystemExit(serve(path, "127.0.0.1", port, 1, items=items, log=folder / "answers.jsonl"))


def report_recovery(models: dict[str, "SAD"], truth: "Simulation", held_out: "Comparisons") -> None:
    """Print how well each model predicts held-out answers and the true taste."""
    triple = held_out.user_index, held_out.winner_index, held_out.loser_index
    x = truth.preference(*triple)
    ids = held_out.users[triple[0]], held_out.items[triple[1]], held_out.items[triple[2]]
    rows = []
    for name, model in models.items():
        correlation = np.corrcoef(x, model.preference(*ids))[0, 1]
        rows.append((name, *predicted(model.probability(*ids)), f"{correlation:.2f}"))
    rows.append(("the truth itself", *predicted(1 / (1 + np.exp(-x))), "1.00"))
    click.secho("How well are answers predicted that no model has seen?", bold=True)
    print_table(("", "right", "log loss", "correlation with the true taste"), rows)
    click.echo("(people do not always answer the same: even the truth cannot predict every answer)\n")


def predicted(p: NDArray[np.float64]) -> tuple[str, str]:
    """Return the share of answers that got a probability above one half, and the log loss."""
    return f"{np.mean(p > 0.5):.1%}", f"{-np.log(p).mean():.3f}"


def report_cycles(model: "SAD", truth: "Simulation", names: NDArray[np.str_]) -> "tuple[Any, Cycle] | None":
    """Print some of the cycles that the model finds among people's favourites; return the strongest true one."""
    cycles = [(user, cycle) for user in model.users[:300] for cycle in model.cycles(user, N=30)[:1]]
    cycles.sort(key=lambda entry: -entry[1].strength)
    true = [
        (user, cycle)
        for user, cycle in cycles
        if (truth.preference(user, cycle.path, np.roll(cycle.path, -1)) > 0).all()
    ]
    click.secho("Where does taste run in a cycle?", bold=True)
    click.echo(
        f"SAD finds a cycle among the 30 favourite dishes of {len(cycles)} of the first 300 people; {len(true)} of "
        "these cycles are true, every step of them.\nBPR finds none: scores cannot make a cycle. Three of the true "
        "ones:\n"
    )
    for user, cycle in true[:3]:
        chain = " > ".join(names[[*cycle.path, cycle.path[0]]])
        surely = min(cycle.probabilities.min(), 0.999)
        click.echo(f"  person {user}: {chain}   (each step with a probability of {surely:.1%} or more)")
    return true[0] if true else None


def draw(
    models: dict[str, "SAD"],
    truth: "Simulation",
    held_out: "Comparisons",
    best: "tuple[Any, Cycle] | None",
    names: NDArray[np.str_],
    folder: Path,
) -> Path | None:
    """Draw estimates against the truth, and one cycle as a ring; return where, or None without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        click.echo("(pip install sadrec[plot] for a picture)")
        return None
    from sadrec._core.files import save_figure
    from sadrec.ranking import draw_cycle, preference

    # Asked about in the order of the menu, not of the answer, preferences are as often negative as positive.
    first, second = np.sort((held_out.winner_index, held_out.loser_index), axis=0)
    x = truth.preference(held_out.user_index, first, second)
    figure = Figure(figsize=(14, 4.6), layout="constrained")
    axes = figure.subplots(1, 3)
    limit = float(np.quantile(np.abs(x), 0.995))
    for axis, (name, model) in zip(axes, models.items(), strict=False):
        guess = preference(model.state.parameters, held_out.user_index, first, second)
        axis.hexbin(x, guess, gridsize=60, extent=(-limit, limit, -limit, limit), bins="log", cmap="Blues")
        axis.plot([-limit, limit], [-limit, limit], color="0.4", linewidth=0.8)
        axis.set(title=name, xlabel="true preference x", ylabel="estimate", xlim=(-limit, limit), ylim=(-limit, limit))
    if best is None:
        axes[2].set_axis_off()
    else:
        user, cycle = best
        draw_cycle(axes[2], cycle, list(names[cycle.path]))
        axes[2].set_title(f"a true cycle in the taste of person {user}:\neach beats the next")
    path = folder / "demo.png"
    save_figure(path, figure, dpi=110)
    return path
