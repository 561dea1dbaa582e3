"""Questions to a fitted model: ``sadrec recommend | prefer | cycles | explain | similar``."""

from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import click

from sadrec._words import one_line
from sadrec.cli.options import an_output, json_option, model_argument, number_option, parse_id, user_option
from sadrec.cli.output import print_json, print_table


def pair_question(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the arguments of a question about a user and two items."""
    for add in (json_option, click.argument("rival"), click.argument("item"), user_option, model_argument):
        command = add(command)
    return command


def load(model: Path) -> Any:
    """Load a model."""
    from sadrec import SAD

    return SAD.load(model, mmap=True)


def load_and_parse(model: Path, user: str, item: str, rival: str) -> tuple[Any, dict[str, Any]]:
    """Load a model, and turn the texts of ids into ids."""
    fitted = load(model)
    ids = parse_id(fitted.user_ids, user), parse_id(fitted.item_ids, item), parse_id(fitted.item_ids, rival)
    return fitted, dict(zip(("user", "item", "rival"), ids, strict=True))


def properties(thing: Any, *names: str) -> dict[str, Any]:
    """Return some attributes by their names."""
    return {name: getattr(thing, name) for name in names}


@click.command("recommend")
@model_argument
@click.option("--user", help="Id of the user.")
@click.option("--all", "everybody", is_flag=True, help="For all users, written to OUTPUT.")
@click.option("-o", "--output", type=an_output, help="Parquet file for --all.")
@number_option(10, "How many items.")
@click.option("--method", type=click.Choice(["margin", "wins", "liked", "markov", "nash"]), default="margin",
              help="How the best candidates are ordered.")  # fmt: skip
@click.option("--groups", is_flag=True, help="Show items that form a cycle together.")
@click.option("--keep-seen", is_flag=True, help="Do not leave out what the user has seen.")
@json_option
def recommend_command(
    model: Path,
    user: str | None,
    everybody: bool,
    output: Path | None,
    N: int,
    method: Any,
    groups: bool,
    keep_seen: bool,
    as_json: bool,
) -> None:
    """Show the best items for a user, or write those for all users to a file."""
    if everybody == (user is not None):
        raise click.UsageError("give --user ID, or --all with -o FILE")
    if everybody and output is None:
        raise click.UsageError("--all needs -o FILE to write to")
    if user is not None and output is not None:
        raise click.UsageError("-o belongs to --all; the answer for one user is printed")
    if output is not None and output.suffix not in (".parquet", ".pq"):
        raise click.UsageError(f"the file for --all is parquet: name it {output.with_suffix('.parquet')}")
    if groups and (everybody or keep_seen or method != "margin"):
        raise click.UsageError(
            "--groups is for one user, by wins among new items: leave out --all, --method and --keep-seen"
        )
    fitted = load(model)
    if output is not None:
        write_all(fitted, output, N, method, keep_seen)
        if as_json:
            print_json({"users": len(fitted.users), "N": N, "method": method, "output": str(output)})
        else:
            click.echo(f"the best {N} items for {len(fitted.users):,} users written to {output}")
        return
    who = parse_id(fitted.user_ids, str(user))
    if groups:
        shown = fitted.recommend_groups(who, N=N)
        if as_json:
            print_json([properties(group, "items", "wins", "strength") for group in shown])
        else:
            click.echo("\n".join(f"{place:3d}. {group}" for place, group in enumerate(shown, 1)))
        return
    ids, scores = fitted.recommend(who, N=N, filter_already_liked_items=not keep_seen, method=method)
    if as_json:
        print_json({"user": who, "items": ids, "scores": scores, "method": method})
    elif not len(ids):
        click.echo(f"nothing is left to show {one_line(user)}: all {len(fitted.items)} items were seen (--keep-seen)")
    else:
        title = "mean margin" if method == "margin" else method
        print_table(("rank", "item", title), list(zip(range(1, len(ids) + 1), ids, map(float, scores), strict=True)))


def write_all(fitted: Any, output: Path, N: int, method: str, keep_seen: bool) -> None:
    """Write the recommendations for all users as a parquet file (user, rank, item, score), whole or not at all."""
    import numpy as np
    import polars as pl
    from tqdm import tqdm

    from sadrec._files import write_whole

    N = min(N, len(fitted.items))
    with tqdm(total=len(fitted.users), unit="user", desc="recommending", disable=None) as bar:
        ids, scores = fitted.recommend(
            fitted.users, N=N, filter_already_liked_items=not keep_seen, method=method, progress=bar.update
        )
    ranks = np.tile(np.arange(1, N + 1, dtype=np.int32), len(ids))
    columns = {"user": np.repeat(fitted.users, N), "rank": ranks, "item": ids.ravel(), "score": scores.ravel()}
    real = np.isfinite(columns["score"])
    content = BytesIO()  # what polars says of a full disk is no sentence
    pl.DataFrame({name: column[real] for name, column in columns.items()}).write_parquet(content)
    write_whole(output, content.getvalue())


@click.command("cycles")
@model_argument
@user_option
@number_option(50, "Favourites to look at.", least=2)
@click.option("--minimum", type=click.FloatRange(min=0), default=0.0, help="The margin a win needs to count.")
@click.option("--plot", type=an_output, help="Draw the strongest one to this file.")
@json_option
def cycles_command(model: Path, user: str, N: int, minimum: float, plot: Path | None, as_json: bool) -> None:
    """Find where a user's taste runs in cycles."""
    fitted = load(model)
    who = parse_id(fitted.user_ids, user)
    cycles, triads = fitted.cycles(who, N, minimum=minimum), fitted.cyclic_triads(who, N, strongest=0)
    share = fitted.intransitivity(who)
    if plot is not None:
        draw_strongest(fitted, who, cycles, N, minimum, plot)
    if as_json:
        shown = ("members", "path", "margins", "probabilities", "strength")
        content: dict[str, Any] = {"cyclic_triads": properties(triads, "count", "total", "share")}
        content["cycles"] = [properties(cycle, *shown) for cycle in cycles]
        print_json({"user": who, "intransitivity": share, **content})
    else:
        for cycle in cycles:
            click.echo(str(cycle))
        bar = f" of wins by more than {minimum:g}" if minimum else ""
        click.echo(
            f"{len(cycles) or 'no'} cycle{'s' * (len(cycles) != 1)}{bar} among the {min(N, len(fitted.items))} "
            f"favourites of {one_line(user)}; {triads.count} of {triads.total} triples are cyclic; "
            f"no scores can explain {100 * share:.2g} % of all preferences"
        )


def draw_strongest(fitted: Any, user: Any, cycles: list[Any], N: int, minimum: float, path: Path) -> None:
    """Draw the strongest cycle and those around it, 20 items that can be read, to a file, whole or not at all."""
    import numpy as np

    from sadrec._files import save_figure
    from sadrec.ranking.plots import plot_tournament

    around, cycle = None, None
    if cycles:
        cycle = cycles[0]
        others = cycle.members[~np.isin(cycle.members, cycle.path)]
        around = np.concatenate([cycle.path, others])[: max(20, len(cycle))]
    figure = plot_tournament(fitted.tournament(user, items=around, N=min(N, 20)), cycle, minimum=minimum)
    save_figure(path, figure, dpi=120)


@click.command("explain")
@pair_question
def explain_command(model: Path, user: str, item: str, rival: str, as_json: bool) -> None:
    """Say why a user prefers ITEM to RIVAL, or does not."""
    fitted, asked = load_and_parse(model, user, item, rival)
    reason = fitted.explain(**asked)
    if as_json:
        content = properties(reason, "margin", "probability", "contributions")
        print_json({**asked, **content, "for_item": reason.supporters(), "for_rival": reason.opponents()})
    else:
        click.echo(str(reason))


@click.command("similar")
@model_argument
@click.option("--item", help="Id of an item.")
@click.option("--user", help="Id of a user.")
@number_option(10, "How many.")
@json_option
def similar_command(model: Path, item: str | None, user: str | None, N: int, as_json: bool) -> None:
    """Show the items most like an item, or the users most like a user."""
    if (item is None) == (user is None):
        raise click.UsageError("give --item ID or --user ID")
    fitted = load(model)
    if item is not None:
        kind, (ids, cosines) = "item", fitted.similar_items(parse_id(fitted.item_ids, item), N)
    else:
        kind, (ids, cosines) = "user", fitted.similar_users(parse_id(fitted.user_ids, str(user)), N)
    if as_json:
        print_json({"ids": ids, "cosines": cosines})
    else:
        print_table((kind, "cosine"), list(zip(ids, map(float, cosines), strict=True)))


@click.command("prefer")
@pair_question
def prefer_command(model: Path, user: str, item: str, rival: str, as_json: bool) -> None:
    """Tell whether a user prefers ITEM to RIVAL, and how surely.

    x is the preference, in log-odds. Models of comparisons also know its standard deviation, and the probability is
    nearer to one half the larger that is.
    """
    fitted, asked = load_and_parse(model, user, item, rival)
    x, p, deviation = fitted.preference(**asked), fitted.probability(**asked), None
    with suppress(ValueError):  # most fits do not know it
        deviation = fitted.deviation(**asked)
    if as_json:
        print_json({**asked, "preference": x, "probability": p, "deviation": deviation})
        return
    user, item, rival = map(one_line, (user, item, rival))
    sure = "" if deviation is None else f", standard deviation {deviation:.3f}"
    if p == 0.5:
        click.echo(f"{user} is undecided between {item} and {rival} (x = {x:.3g}{sure})")
    else:
        better, worse = (item, rival) if p > 0.5 else (rival, item)
        click.echo(f"{user} prefers {better} to {worse} with probability {max(p, 1 - p):.3f} (x = {x:+.3f}{sure})")
