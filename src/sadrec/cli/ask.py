"""``sadrec recommend`` and ``sadrec prefer``: questions to a fitted model."""

from pathlib import Path
from typing import Any

import click

from sadrec._output import json_option, print_json, print_table

model_argument = click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
user_option = click.option("--user", required=True, help="Id of the user.")


def parse_id(ids: Any, text: str) -> Any:
    """Turn the text of an id into the kind of id the model has."""
    kind = ids.array.dtype.kind
    try:
        if kind in "iu":
            return int(text)
        if kind == "f":
            return float(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a number, but the model's {ids.what}s are") from None
    return text


@click.command("recommend")
@model_argument
@user_option
@click.option("-n", "--number", "N", type=click.IntRange(min=1), default=10, show_default=True, help="How many items.")
@click.option("--keep-seen", is_flag=True, help="Do not leave out what the user has seen.")
@json_option
def recommend_command(model: Path, user: str, N: int, keep_seen: bool, as_json: bool) -> None:
    """Show the best items for a user."""
    from sadrec import SAD

    fitted = SAD.load(model, mmap=True)
    ids, scores = fitted.recommend(parse_id(fitted.user_ids, user), N=N, filter_already_liked_items=not keep_seen)
    if as_json:
        print_json({"user": user, "items": ids, "scores": scores})
    else:
        print_table(
            ("rank", "item", "mean margin"), list(zip(range(1, len(ids) + 1), ids, map(float, scores), strict=True))
        )


@click.command("prefer")
@model_argument
@user_option
@click.argument("item")
@click.argument("rival")
@json_option
def prefer_command(model: Path, user: str, item: str, rival: str, as_json: bool) -> None:
    """Tell whether a user prefers ITEM to RIVAL, and how surely."""
    from sadrec import SAD

    fitted = SAD.load(model, mmap=True)
    asked = (parse_id(fitted.user_ids, user), parse_id(fitted.item_ids, item), parse_id(fitted.item_ids, rival))
    x, p = fitted.preference(*asked), fitted.probability(*asked)
    if as_json:
        print_json({"user": asked[0], "item": asked[1], "rival": asked[2], "preference": x, "probability": p})
        return
    better, worse = (item, rival) if x >= 0 else (rival, item)
    click.echo(f"{user} prefers {better} to {worse} with probability {max(p, 1 - p):.3f} (x = {x:+.3f})")
