"""``sadrec leaderboard``: from a file of games or votes to a table of who is best, with intervals."""

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import click

from sadrec._core.words import one_line, titled
from sadrec.cli import options
from sadrec.cli.ask import load, with_titles
from sadrec.cli.output import (
    check_place_of_page,
    check_place_of_picture,
    check_place_of_table,
    print_json,
    print_table,
    saved_kind,
)

COLUMNS = ("rank", "item", "strength", "lower", "upper", "rank_lower", "rank_upper", "wins", "ties", "losses")


def output_name(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    """Return the path to write to; its ending decides the format."""
    if value is not None and value.suffix not in (".csv", ".parquet", ".md", ".html"):
        raise click.BadParameter(
            f"{value.name!r} ends in none of .csv, .parquet, .md and .html: {value.stem}.html is a page"
        )
    return value


@click.command("leaderboard")
@options.file_argument
@click.option("-o", "--output", type=options.an_output, callback=output_name,
              help="Write the whole leaderboard to this file: a table (.csv, .parquet, .md) or a page "
                   "(.html).")  # fmt: skip
@click.option("--plot", type=options.an_output, help="Draw the strongest items and their match-ups to this file.")
@click.option("--judge", "judges", multiple=True, metavar="ID",
              help="Rank for this judge; can be repeated.  [default: the average of all]")  # fmt: skip
@click.option("--reference", multiple=True, metavar="ITEM",
              help="Measure strengths against this item; can be repeated.  [default: all items]")  # fmt: skip
@click.option("--level", type=options.a_share, default=0.9, help="Probability that an interval holds the true value.")
@options.number_option(20, "How many items to print.")
@options.quiet_option
@options.titles_option
@options.reading_options
@options.json_option
def leaderboard_command(
    file: Path,
    output: Path | None,
    plot: Path | None,
    judges: tuple[str, ...],
    reference: tuple[str, ...],
    level: float,
    N: int,
    quiet: bool,
    titles: Path | None,
    reading: options.Reading,
    as_json: bool,
) -> None:
    """Rank the items of FILE, with intervals and cycles.

    FILE holds games or votes: winner and loser; or left, right and winner, with ties; or both sides and their scores;
    or rankings (a > b > c); with or without a column of judges. Or it is a model of such a file.
    """
    import polars as pl

    from sadrec.ranking import arena_report

    if plot is not None:
        check_place_of_picture(plot)
    if output is not None:
        if output.suffix in (".csv", ".parquet"):
            check_place_of_table(output, COLUMNS)
        else:
            check_place_of_page(output)
    model = _model(file, reading, quiet)
    state = model.state
    named = options.read_titles(titles, state.items)
    who = [options.parse_id(state.users, text) for text in judges] or None
    against = [options.parse_item(state.items, text, named) for text in reference] or None
    ids, field = state.items.array, None if against is None else state.items.several(against)
    places, report = arena_report(state.belief, state.judges(who), titled(ids, named), level, state.results, field)
    table = places.with_columns(pl.Series("item", ids[places["item"].to_numpy()]))
    if output is not None:
        _write(output, table, report, named, file)
    if plot is not None:
        from sadrec._core.files import save_figure
        from sadrec.ranking import plot_leaderboard

        names = titled(table["item"].to_numpy(), named).tolist()
        save_figure(plot, plot_leaderboard(table, report["probability"], names), dpi=120)
    if as_json:
        print_json({
            "file": str(file), "level": level, "leaderboard": table.head(N).to_dicts(),
            "unexplained": report["unexplained"], "features": report["features"],
            "cycles": [{**cycle, "path": ids[cycle["path"]].tolist()} for cycle in report["cycles"]],
            "nash": [{"item": ids[one["item"]], "share": one["share"]} for one in report["nash"]],
            **with_titles({}, table["item"].head(N), named),
        })  # fmt: skip
        return
    header, rows = _rows(table, named)
    print_table(header, rows[:N])
    if len(rows) > N:
        click.echo(f"... and {len(rows) - N:,} more (-n, or -o FILE)")
    _tell(report, titled(state.items.array, named))
    for path in (output, plot):
        if path is not None:
            click.echo(f"Written: {path}")


def _model(file: Path, reading: options.Reading, quiet: bool) -> Any:
    """Load a model, or fit one to a table of comparisons."""
    from sadrec import SAD

    if saved_kind(file):
        if given := reading.options():
            raise click.UsageError(f"{given[0]} says how to read a table, but {file.name} is a model: leave it out")
        return load(file)
    return SAD(random_state=0).fit(reading.comparisons(file), show_progress=not quiet)


def _rows(table: Any, titles: Mapping[Any, str]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return the header and the rows of the printed table."""
    sure, counted = table["lower"].null_count() == 0, table["wins"].null_count() == 0
    header = (
        "rank",
        "item",
        "strength",
        *(("interval", "ranks") * sure),
        *(("won", "tied", "lost") * counted),
        "unexplained",
    )
    rows = []
    for row in table.to_dicts():
        cells: list[Any] = [row["rank"], titles.get(row["item"], row["item"]), f"{row['strength']:+.2f}"]
        if sure:
            cells += [f"{row['lower']:+.2f} .. {row['upper']:+.2f}", f"{row['rank_lower']} .. {row['rank_upper']}"]
        if counted:
            cells += [f"{row[name]:,.10g}" for name in ("wins", "ties", "losses")]
        rows.append((*cells, f"{row['unexplained']:.0%}"))
    return header, rows


def _tell(report: dict[str, Any], names: Any) -> None:
    """Print how much a ranking explains, the most probable cycles, and the Nash mixture."""
    click.echo(f"\nA ranking explains {1 - report['unexplained']:.0%} of the squared margins.")
    for one in report["features"]:
        interval = f"{one['lower']:+.2f} .. {one['upper']:+.2f}"
        click.echo(
            f"{one_line(one['feature'])} adds {one['coefficient']:+.2f} ({interval}) to the log-odds of its side"
        )
    for cycle in report["cycles"][:5]:
        chain = " > ".join(one_line(names[item]) for item in [*cycle["path"], cycle["path"][0]])
        sure = "" if cycle["probability"] is None else f" ({cycle['probability']:.0%} sure)"
        click.echo(f"A cycle: {chain}{sure}")
    if len(report["nash"]) > 1:
        best = sorted(report["nash"], key=lambda one: -one["share"])[:8]
        mixture = ", ".join(f"{one_line(names[one['item']])} {one['share']:.0%}" for one in best)
        click.echo(f"The mixture that nothing beats (Nash): {mixture}")


def _write(output: Path, table: Any, report: dict[str, Any], titles: Mapping[Any, str], file: Path) -> None:
    """Write a table or a page, whole or not at all."""
    from sadrec._core.files import write_frame, write_whole

    if output.suffix == ".html":
        from sadrec.serving import static_page

        write_whole(output, static_page(report, f"Leaderboard of {file.name}"))
        return
    if output.suffix == ".md":
        header, rows = _rows(table, titles)
        lines = [header, ["---"] * len(header), *rows]
        cells = ([escape(one_line(cell), quote=False).replace("|", "\\|") for cell in line] for line in lines)
        write_whole(output, "".join(f"| {' | '.join(line)} |\n" for line in cells))
        return
    import polars as pl

    if titles:
        title = pl.Series("title", titled(table["item"].to_numpy(), titles).tolist(), dtype=pl.String)
        table = table.insert_column(table.columns.index("item") + 1, title)
    write_frame(output, table)
