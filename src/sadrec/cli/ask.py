"""Questions to a fitted model: ``sadrec recommend | prefer | cycles | explain | similar``."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from sadrec._core.types import METHODS
from sadrec._core.words import one_line, titled
from sadrec.cli.options import (
    an_output,
    engine_options,
    json_option,
    model_argument,
    number_option,
    parse_id,
    parse_item,
    quiet_option,
    read_titles,
    titles_option,
    user_option,
)
from sadrec.cli.output import (
    check_place_of_picture,
    check_place_of_table,
    is_folder,
    print_json,
    print_table,
    resumable,
)

EVEN = 0.55
"""A step of a cycle below this probability is hardly more than chance."""


def pair_question(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the arguments of a question about a user and two items."""
    arguments = click.argument("rival"), click.argument("item")
    for add in (json_option, titles_option, *arguments, user_option, model_argument):
        command = add(command)
    return command


def load(model: Path) -> Any:
    """Load a model, memory-mapped, after verifying its checksum."""
    from sadrec import SAD

    return SAD.load(model, mmap=True, verify=True)


def load_and_parse(
    model: Path, user: str | None, item: str, rival: str, table: Path | None
) -> tuple[Any, dict[str, Any], Mapping[Any, str]]:
    """Load a model and the titles of its items, and turn the texts of ids, or titles, into ids."""
    fitted = load(model)
    titles = read_titles(table, fitted.state.items)
    pair = (parse_item(fitted.state.items, text, titles) for text in (item, rival))
    return (
        fitted,
        dict(zip(("user", "item", "rival"), (parse_id(fitted.state.users, user), *pair), strict=True)),
        titles,
    )


def with_titles(content: dict[str, Any], ids: Iterable[Any], titles: Mapping[Any, str]) -> dict[str, Any]:
    """Return what is printed as JSON, with the titles of the items in it by id, where there is a table of them."""
    return {**content, "titles": {str(item): titles[item] for item in ids if item in titles}} if titles else content


def with_titles_column(
    header: tuple[str, ...], columns: list[Any], at: int, titles: Mapping[Any, str]
) -> tuple[tuple[str, ...], list[Any]]:
    """Return the header and the rows of a table, with a column of titles after the items where there are titles."""
    if titles:
        header = (*header[: at + 1], "title", *header[at + 1 :])
        columns = [*columns[: at + 1], titled(columns[at], titles), *columns[at + 1 :]]
    return header, list(zip(*columns, strict=True))


def name_of(user: str | None) -> str:
    """Return the user's name in a sentence."""
    return "everybody" if user is None else one_line(user)


def is_contest(model: Any, user: str | None) -> bool:
    """Whether a question is about matches of one judge, where items win and nobody prefers."""
    return user is None and len(model.users) == 1 and model.state.results is not None


def properties(thing: Any, *names: str) -> dict[str, Any]:
    """Return some attributes by their names."""
    return {name: getattr(thing, name) for name in names}


@click.command("recommend")
@model_argument
@user_option
@click.option("--all", "everybody", is_flag=True, help="For all users, written to OUTPUT.")
@click.option("-o", "--output", type=click.Path(),
              help="File for --all, .parquet or .csv; or a folder, written part by part and continued by the same "
              "command.")  # fmt: skip
@number_option(10, "How many items.")
@click.option("--method", type=click.Choice(METHODS), default="margin",
              help="How the best candidates are ordered.")  # fmt: skip
@click.option("--groups", is_flag=True, help="Show items that form a cycle together.")
@click.option("--keep-seen", is_flag=True, help="Do not leave out what the user has seen.")
@click.option("--users", type=click.Path(exists=True), help="Parquet file or folder with the users for --all.")
@click.option("--user-items", type=click.Path(exists=True),
              help="Parquet file or folder (user, item) with the items to leave out for each user, instead of seen "
                   "items.")  # fmt: skip
@engine_options
@quiet_option
@titles_option
@json_option
def recommend_command(
    model: Path,
    user: str | None,
    everybody: bool,
    output: str | None,
    N: int,
    method: Any,
    groups: bool,
    keep_seen: bool,
    users: str | None,
    user_items: str | None,
    engine: Any,
    quiet: bool,
    titles: Path | None,
    as_json: bool,
) -> None:
    """Show the best items for a user, or write them for all users."""
    if everybody and user is not None:
        raise click.UsageError("give --user ID, or --all with -o FILE or FOLDER, not both")
    if everybody and output is None:
        raise click.UsageError("--all needs -o FILE or FOLDER to write to")
    if not everybody and output is not None:
        raise click.UsageError("-o belongs to --all; the answer for one user is printed")
    path, folder = (
        None if output is None else Path(output),
        output is not None and (is_folder(output) or not Path(output).suffix),
    )
    if path is not None and not folder and path.suffix not in (".parquet", ".pq", ".csv"):
        raise click.UsageError(
            f"the file for --all is parquet or csv: name it {path.with_suffix('.parquet')}, or {path}/ for a folder"
        )
    for option, given in (("--users", users), ("--user-items", user_items), ("--engine", engine)):
        if given is not None and not folder:
            raise click.UsageError(f"{option} goes with --all -o FOLDER: name one, such as -o everybody/")
    if folder and titles is not None:
        raise click.UsageError("--titles goes with one user, or with -o FILE: a folder has ids only")
    if groups and (everybody or keep_seen or method != "margin"):
        raise click.UsageError(
            "--groups is for one user, by wins among new items: leave out --all, --method and --keep-seen"
        )
    if path is not None and not folder:
        check_place_of_table(path, ("user", "rank", "item", "score"))
    fitted = load(model)
    named = read_titles(titles, fitted.state.items)
    if path is not None:
        count = len(fitted.users)
        if folder:
            choices = {"users": users, "N": N, "user_items": user_items, "engine": engine, "method": method}
            count = write_folder(fitted, path, quiet, filter_already_liked_items=not keep_seen, **choices)
        else:
            write_all(fitted, path, N, method, keep_seen, named, quiet)
        if as_json:
            print_json({"users": count, "N": N, "method": method, "output": str(path)})
        else:
            click.echo(f"the best {N} items for {count:,} users written to {path}")
        return
    who = parse_id(fitted.state.users, user)
    if groups:
        from sadrec.ranking import recommend_groups

        best, _ = fitted.recommend(who, N=max(N, 50))
        shown = recommend_groups(fitted.tournament(who, best), N)
        if as_json:
            content = (properties(group, "items", "wins", "strength") for group in shown)
            print_json([with_titles(entry, entry["items"], named) for entry in content])
        else:
            lines = (group.named(named) if named else group for group in shown)
            click.echo("\n".join(f"{place:3d}. {line}" for place, line in enumerate(lines, 1)))
        return
    ids, scores = fitted.recommend(who, N=N, filter_already_liked_items=not keep_seen, method=method)
    if as_json:
        print_json(with_titles({"user": who, "items": ids, "scores": scores, "method": method}, ids, named))
    elif not len(ids):
        click.echo(f"nothing is left to show {name_of(user)}: all {len(fitted.items)} items were seen (--keep-seen)")
    else:
        header = ("rank", "item", "mean margin" if method == "margin" else method)
        columns = [range(1, len(ids) + 1), ids, scores.astype(float).tolist()]
        print_table(*with_titles_column(header, columns, 1, named))


def write_folder(fitted: Any, output: Path, quiet: bool, **choices: Any) -> int:
    """Write the recommendations for all users, or some, part by part, and return how many users there were."""
    from sadrec.models import read_manifest

    with resumable(output):
        fitted.recommend_all(output=output, show_progress=not quiet, **choices)
    manifest = read_manifest(output)
    return 0 if manifest is None else int(manifest["users"])


def write_all(
    fitted: Any, output: Path, N: int, method: str, keep_seen: bool, titles: Mapping[Any, str], quiet: bool
) -> None:
    """Write the recommendations for all users (user, rank, item[, title], score), whole or not at all."""
    import numpy as np
    import polars as pl

    from sadrec._core.files import write_frame
    from sadrec._core.progress import Bar

    N = min(N, len(fitted.items))
    with Bar(total=len(fitted.users), unit="user", desc="recommending", disable=quiet or None) as bar:
        ids, scores = fitted.recommend(
            fitted.users, N=N, filter_already_liked_items=not keep_seen, method=method, progress=bar.update
        )
    ranks = np.tile(np.arange(1, N + 1, dtype=np.int32), len(ids))
    columns = {"user": np.repeat(fitted.users, N), "rank": ranks, "item": ids.ravel(), "score": scores.ravel()}
    real = np.isfinite(columns["score"])
    frame = pl.DataFrame({name: column[real] for name, column in columns.items()})
    if titles:
        named = pl.DataFrame({"item": fitted.items, "title": titled(fitted.items, titles)})
        frame = frame.join(named, on="item", how="left", maintain_order="left")
        frame = frame.select("user", "rank", "item", "title", "score")
    write_frame(output, frame)


@click.command("cycles")
@model_argument
@user_option
@number_option(50, "Favourites to look at.", least=2)
@click.option("--minimum", type=click.FloatRange(min=0), default=0.0, help="Ignore wins by a smaller margin.")
@click.option("--plot", type=an_output, help="Draw the strongest cycle to this file.")
@titles_option
@json_option
def cycles_command(
    model: Path, user: str | None, N: int, minimum: float, plot: Path | None, titles: Path | None, as_json: bool
) -> None:
    """Find where a user's taste runs in cycles."""
    from sadrec.ranking import cyclic_triads

    if plot is not None:
        check_place_of_picture(plot)
    fitted = load(model)
    named = read_titles(titles, fitted.state.items)
    who = parse_id(fitted.state.users, user)
    cycles, triads = fitted.cycles(who, N, minimum=minimum), cyclic_triads(fitted.tournament(who, N=N), 0)
    share = fitted.intransitivity(who)
    if plot is not None:
        draw_strongest(fitted, who, cycles, N, minimum, plot, named)
    if as_json:
        shown = ("members", "path", "margins", "probabilities", "strength", "probability")
        content: dict[str, Any] = {"cyclic_triads": properties(triads, "count", "total", "share")}
        content["cycles"] = [properties(cycle, *shown) for cycle in cycles]
        members = [item for cycle in cycles for item in cycle.members]
        print_json(with_titles({"user": who, "intransitivity": share, **content}, members, named))
    else:
        for cycle in cycles:
            click.echo(str(cycle.named(named) if named else cycle))
        bar = f" of wins by more than {minimum:g}" if minimum else ""
        unexplained = f"{100 * share:.0f} %" if share >= 0.01 else "less than 1 %"
        contest = is_contest(fitted, user)
        among = "strongest items" if contest else f"favourites of {name_of(user)}"
        click.echo(
            f"{len(cycles) or 'no'} cycle{'s' * (len(cycles) != 1)}{bar} among the {min(N, len(fitted.items))} "
            f"{among}; {triads.count} of {triads.total} triples are cyclic; scores cannot explain {unexplained} of all "
            f"{'margins' if contest else 'preferences'}"
        )
        if any(cycle.probabilities.min() < EVEN for cycle in cycles):
            click.echo(
                f"A step of less than {EVEN:.0%} is hardly more than chance: --minimum 0.5 leaves out wins by less."
            )


def draw_strongest(
    fitted: Any, user: Any, cycles: list[Any], N: int, minimum: float, path: Path, titles: Mapping[Any, str]
) -> None:
    """Draw the strongest cycle and those around it, 20 items that can be read, to a file, whole or not at all."""
    import numpy as np

    from sadrec._core.files import save_figure
    from sadrec.ranking import plot_tournament

    around, cycle = None, None
    if cycles:
        cycle = cycles[0]
        others = cycle.members[~np.isin(cycle.members, cycle.path)]
        around = np.concatenate([cycle.path, others])[: max(20, len(cycle))]
    game = fitted.tournament(user, items=around, N=min(N, 20))
    figure = plot_tournament(game, cycle, titled(game.items, titles).tolist(), minimum=minimum)
    save_figure(path, figure, dpi=120)


@click.command("explain")
@pair_question
def explain_command(model: Path, user: str | None, item: str, rival: str, titles: Path | None, as_json: bool) -> None:
    """Explain why a user prefers ITEM to RIVAL, or does not."""
    fitted, triple, named = load_and_parse(model, user, item, rival, titles)
    reason = fitted.explain(**triple)
    if as_json:
        content = properties(reason, "margin", "probability", "contributions")
        sides = {"for_item": reason.supporters(), "for_rival": reason.opponents()}
        ids = [reason.item, reason.rival, *(item for side in sides.values() for item, _ in side)]
        print_json(with_titles({**triple, **content, **sides}, ids, named))
    else:
        click.echo(str(reason.named(named) if named else reason))


@click.command("similar")
@model_argument
@click.option("--item", help="Id of an item.")
@click.option("--user", help="Id of a user.")
@number_option(10, "How many to show.")
@titles_option
@json_option
def similar_command(
    model: Path, item: str | None, user: str | None, N: int, titles: Path | None, as_json: bool
) -> None:
    """Show the most similar items, or users."""
    if (item is None) == (user is None):
        raise click.UsageError("give --item ID or --user ID")
    fitted = load(model)
    named = read_titles(titles, fitted.state.items) if item is not None else {}
    if item is not None:
        kind, (ids, cosines) = "item", fitted.similar_items(parse_item(fitted.state.items, item, named), N)
    else:
        kind, (ids, cosines) = "user", fitted.similar_users(parse_id(fitted.state.users, user), N)
    if as_json:
        print_json(with_titles({"ids": ids, "cosines": cosines}, ids, named))
    else:
        print_table(*with_titles_column((kind, "cosine"), [ids, cosines.astype(float).tolist()], 0, named))


@click.command("prefer")
@pair_question
def prefer_command(model: Path, user: str | None, item: str, rival: str, titles: Path | None, as_json: bool) -> None:
    """Show how probable it is that a user prefers ITEM to RIVAL.

    x is the preference in log-odds. A model of comparisons also shows its standard deviation: the larger it is, the
    closer the probability is to one half.
    """
    fitted, triple, named = load_and_parse(model, user, item, rival, titles)
    x, p, deviation = fitted.preference(**triple), fitted.probability(**triple), None
    with suppress(ValueError):  # most fits do not know it
        deviation = fitted.deviation(**triple)
    if as_json:
        content = {**triple, "preference": x, "probability": p, "deviation": deviation}
        print_json(with_titles(content, (triple["item"], triple["rival"]), named))
        return
    item, rival = (named.get(triple[side], given) for side, given in (("item", item), ("rival", rival)))
    contest, user, item, rival = is_contest(fitted, user), name_of(user), one_line(item), one_line(rival)
    sure = "" if deviation is None else f", standard deviation {deviation:.3f}"
    if p == 0.5:
        even = f"{item} and {rival} are even" if contest else f"{user} is undecided between {item} and {rival}"
        click.echo(f"{even} (x = {x:.3g}{sure})")
    else:
        better, worse = (item, rival) if p > 0.5 else (rival, item)
        winner = f"{better} beats {worse}" if contest else f"{user} prefers {better} to {worse}"
        click.echo(f"{winner} with probability {max(p, 1 - p):.3f} (x = {x:+.3f}{sure})")
