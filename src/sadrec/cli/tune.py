"""``sadrec tune``: choose settings on a validation part of a file."""

from pathlib import Path
from typing import Any

import click

from sadrec._core import settings as _settings
from sadrec.cli import options
from sadrec.cli.fit import new_model
from sadrec.cli.output import check_replacing, overwrite_option, print_json, print_table, resumable
from sadrec.models import TrainingSettings


@click.command("tune")
@options.file_argument
@click.option("-o", "--output", type=options.an_output, required=True,
              help="JSON file for the best settings, which `sadrec fit --settings` takes, or `sadrec posterior "
              "--settings`.")  # fmt: skip
@click.option("--model", type=click.Choice(["sad", "bpr", "gibbs"]), help="Which model.  [default: sad]")
@click.option("--sampler", type=click.Choice(["tpe", "random", "grid"]), default="tpe",
              help="tpe needs the extra `tune`; grid tries every combination of --try.")  # fmt: skip
@click.option("--try", "tries", multiple=True, metavar="NAME=VALUES",
              help="Values of a setting to try: factors=16,32 or regularization=0.001..0.1; may be repeated. "
              "Default: the ranges in docs/settings.md.")  # fmt: skip
@click.option("--trials", type=click.IntRange(min=1), help="How many settings to try in all.")
@click.option("--metric", help="For example ndcg@10, m1 or log_loss; for comparisons log_loss or accuracy.")
@click.option("--folds", type=click.IntRange(min=1), default=1, help="Validation parts to average.")
@click.option("--test", type=options.a_share, default=0.1, help="The share that is held out for validation.")
@click.option("--rule", type=click.Choice(["best", "one-error"]), default="best",
              help="one-error takes the first settings within a standard error of the best.")  # fmt: skip
@click.option("--budget", type=click.FloatRange(min=0, min_open=True), help="Seconds that one trial may take.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), help="Seconds after which no trial starts.")
@overwrite_option
@options.settings_options(TrainingSettings)
@options.quiet_option
@options.reading_options
@options.json_option
def tune_command(
    file: Path,
    output: Path,
    model: str | None,
    sampler: Any,
    tries: tuple[str, ...],
    rule: str,
    overwrite: bool,
    settings: dict[str, Any],
    quiet: bool,
    reading: options.Reading,
    as_json: bool,
    **search: Any,
) -> None:
    """Choose settings of a model on a validation part of FILE.

    FILE is the training data: hold out your test data before. Interrupted with Ctrl-C or killed, the same command
    continues; finished trials are kept in OUTPUT.trials, so that a larger --trials adds to them.
    """
    from sadrec.evaluation import data_fingerprint, tune

    estimator: Any = new_model(model, settings)
    space = tried(estimator, tries, sampler)
    data = reading.read(file)
    about = {"data": data_fingerprint(data), "model": type(estimator).__name__.lower()}
    check_replacing([output], output, about, overwrite)
    folder = output.with_name(f"{output.name}.trials")
    with resumable(folder):
        result = tune(
            estimator,
            data,
            sampler=sampler,
            space=space,
            rule="one_error" if rule == "one-error" else "best",
            seed=estimator.random_state,
            path=folder,
            show_progress=not quiet,
            **search,
        )
    result.save(output)
    if as_json:
        content = {"settings": result.settings, "metric": result.metric, "score": result.score}
        print_json({"output": str(output), **content, "trials": result.frame.to_dicts()})
        return
    print_table(("setting", "value"), list(result.settings.items()))
    click.echo(
        f"{result.metric} {result.score:.4g} after {len(result.trials)} trials; settings written to {output}, "
        f"trials in {folder}"
    )


def tried(model: Any, tries: tuple[str, ...], sampler: str) -> dict[str, Any] | None:
    """Return the search space: the given values, or None for the declared ranges.

    Examples
    --------
    >>> from sadrec import SAD
    >>> tried(SAD(), ("factors=16,32", "bias=yes,no"), "grid")
    {'factors': [16, 32], 'bias': [True, False]}
    >>> tried(SAD(), ("regularization=0.001..0.1",), "random")
    {'regularization': Span(low=0.001, high=0.1, log=True)}
    """
    spaces = {options.spelled(name)[2:]: entry for name, entry in _settings.opened(model).items()}
    if not tries:
        if sampler == "grid":
            raise click.UsageError("--sampler grid needs what to try: --try factors=16,32 --try bias=yes,no")
        return None
    space: dict[str, Any] = {}
    for text in tries:
        name, _, values = text.partition("=")
        entry = spaces.get(name.replace("_", "-"))
        if entry is None or not values:
            raise click.UsageError(f"--try {text}: it must be NAME=VALUES, with one of {', '.join(spaces)}")
        low, dots, high = values.partition("..")
        if dots:
            search = entry.metadata["search"]
            log = search.log if isinstance(search, _settings.Span) else False
            space[entry.name] = _settings.Span(_value(entry, low), _value(entry, high), log)
        else:
            space[entry.name] = [_value(entry, value) for value in values.split(",")]
    return space


def _value(entry: Any, text: str) -> Any:
    rule = entry.metadata["rule"]
    try:
        return rule.check(options.value_type(rule).convert(text.strip(), None, None), entry.name)
    except (ValueError, click.BadParameter):
        raise click.UsageError(f"--try {entry.name}: {text!r} does not fit: {rule.describe()}") from None
