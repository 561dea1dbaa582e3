"""``sadrec posterior``: sample the posterior of a file, and say what is sure."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sadrec._core import check
from sadrec._core.words import one_line, titled
from sadrec.cli import options
from sadrec.cli.ask import with_titles
from sadrec.cli.fit import new_model
from sadrec.cli.output import (
    check_place_of_model,
    discarded_when_done,
    overwrite_option,
    print_json,
    print_table,
    saved_kind,
)
from sadrec.posterior import SamplerSettings

if TYPE_CHECKING:
    from sadrec.posterior import GibbsSAD


@click.command("posterior")
@options.file_argument
@click.option("-o", "--output", type=options.an_output,
              help="File for the posterior; an existing one is replaced at the end.")  # fmt: skip
@overwrite_option
@click.option("--settings", "settings_file", type=options.a_file,
              help="JSON file, such as `sadrec tune --model gibbs` writes.")  # fmt: skip
@options.settings_options(SamplerSettings)
@click.option("--judge", metavar="ID", help="Rank for this judge.  [default: the average of all]")
@options.number_option(20, "How many items to show.")
@click.option("--level", type=float, default=0.9, help="Probability that an interval holds the true value.")
@click.option("--least", type=float, default=0.5, help="Smallest probability of a cycle to show.")
@click.option("--checkpoint", type=options.a_folder, help="Folder to resume from; with -o by default "
              "OUTPUT.checkpoint, removed when the posterior is saved.")  # fmt: skip
@options.quiet_option
@options.titles_option
@options.reading_options
@options.json_option
def posterior_command(
    file: Path,
    output: Path | None,
    overwrite: bool,
    settings_file: Path | None,
    settings: dict[str, Any],
    judge: str | None,
    N: int,
    level: float,
    least: float,
    checkpoint: Path | None,
    quiet: bool,
    titles: Path | None,
    reading: options.Reading,
    as_json: bool,
) -> None:
    """Sample the posterior of FILE: ranks with intervals, cycles.

    FILE holds comparisons (user, winner, loser; or user, left, right, winner) or interactions (user, item); or it is a
    posterior that was saved before. Interrupted with Ctrl-C or killed, the same command continues where it stopped, if
    it has a folder for checkpoints (-o or --checkpoint); without one, Ctrl-C shows the results of the draws so far.
    """
    from sadrec.posterior import GibbsSAD

    saved = saved_kind(file) == "posterior"
    if output is not None:
        check_place_of_model(output, overwrite, "posterior")
    if saved:
        given = [*map(options.spelled, settings), *["--settings"] * (settings_file is not None)]
        given += [*["--checkpoint"] * (checkpoint is not None), *reading.options()]
        if given:
            raise click.UsageError(f"{given[0]} says how to sample, but {file.name} is sampled already: leave it out")
    # The question is checked before the sampling, which may take hours.
    unfitted = new_model("gibbs", settings, settings_file)
    data: Any = GibbsSAD.load(file) if saved else reading.read(file)
    check.share(level, "level", inside=True)
    check.share(least, "least")
    users, items = (data.state.users, data.state.items) if saved else (data.user_ids, data.item_ids)
    who = options.parse_id(users, judge)
    if who is not None:
        users.positions(who)
    named = options.read_titles(titles, items)
    model: GibbsSAD = data if saved else _fit(unfitted, data, output, checkpoint, quiet)
    if saved and output is not None:
        model.save(output)
    report = _report(model, who, N, level, least)
    if as_json:
        shown = [row["item"] for row in report["leaderboard"]] + [item for c in report["cycles"] for item in c["path"]]
        content = {"file": str(file), "output": None if output is None else str(output), **report}
        print_json(with_titles(content, shown, named))
    else:
        _show(report, "everybody" if judge is None else judge, level, least, named)


def _fit(
    model: "GibbsSAD",
    data: Any,
    output: Path | None,
    checkpoint: Path | None,
    quiet: bool,
) -> "GibbsSAD":
    """Sample, with checkpoints if a folder is given."""
    from sadrec._core.memory import size

    if not quiet:
        need = model.memory(data)
        click.echo(f"Memory: {size(need['draws'])} for the draws, {size(need['running'])} while running.", err=True)
    folder = checkpoint or (output and output.with_name(f"{output.name}.checkpoint"))
    with discarded_when_done(None if checkpoint else folder):
        try:
            model.fit(data, show_progress=not quiet, checkpoint=folder, checkpoint_seconds=5)
        except KeyboardInterrupt:
            if folder is not None:
                click.echo(
                    f"Interrupted; the draws so far are in {folder}. Run the same command again to continue.", err=True
                )
                raise SystemExit(130) from None
            if not model.is_fitted:
                raise
            click.echo("Interrupted; this is what the draws so far say.", err=True)
        if output is not None:
            model.save(output)
    return model


def _report(model: "GibbsSAD", user: Any, N: int, level: float, least: float) -> dict[str, Any]:
    """Return the report that the command shows."""
    from sadrec.posterior import MOST_ITEMS, SCALES

    table = model.leaderboard(user, level=level)
    best = table["item"].to_numpy()[:MOST_ITEMS]
    cycles = model.credible_cycles(user, items=best, least=least)
    report: dict[str, Any] = {
        "draws": len(model.drawn),
        "leaderboard": table.head(N).to_dicts(),
        "cycles": [{"path": c.path, "probability": c.probability, "weakest": c.weakest} for c in cycles],
        "intransitivity": float(model.intransitivity(user)),
        "prior_scales": dict(zip(SCALES, model.drawn.scales.mean(axis=(0, 1)).tolist(), strict=False)),
    }
    if model.drawn.chains > 1 and model.drawn.user.shape[1] >= 4:
        diagnosis = model.diagnose()
        report["diagnosis"] = str(diagnosis)
        report["share_r_hat_good"] = diagnosis.share_good
    return report


def _show(report: dict[str, Any], who: str, level: float, least: float, titles: Mapping[Any, str]) -> None:
    """Print the report for people."""
    click.echo(f"{report['draws']:,} draws. {report.get('diagnosis', 'One chain: nothing to compare it with.')}")
    click.echo(f"\nThe ranking of {who}, by mean margin, with {level:.0%} intervals:")
    rows = [
        (
            row["rank"],
            titles.get(row["item"], row["item"]),
            f"{row['strength']:+.2f}",
            f"{row['lower']:+.2f} .. {row['upper']:+.2f}",
            f"{row['rank_lower']} .. {row['rank_upper']}",
            f"{row['best']:.1%}",
        )
        for row in report["leaderboard"]
    ]
    print_table(("rank", "item", "strength", "interval", "rank interval", "best"), rows)
    click.echo(f"\nA ranking explains {1 - report['intransitivity']:.1%} of the squared margins.")
    if not report["cycles"]:
        click.echo(f"No cycle of three items has a probability of {least:g} or more.")
        return
    click.echo(f"Cycles with a probability of at least {least:g}:")
    print_table(
        ("path", "probability", "weakest"),
        [
            (" > ".join(map(one_line, titled(c["path"], titles))), float(c["probability"]), float(c["weakest"]))
            for c in report["cycles"]
        ],
    )
