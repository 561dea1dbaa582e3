"""All campaigns, one after the other, with the counts of docs/results/reliability/README.md: ``make campaigns``."""

import subprocess
import sys

import click

LONG = {
    "model_file": 6000,
    "checkpoint": 4000,
    "table": 1600,
    "array": 10000,
    "comparison": 1000,
    "kill": 500,
    "interrupt": 200,
    "resource": 200,
    "thread": 200,
    "api": 50,
    "service": 3000,
    "hardship": 200,
    "cluster": 20,
    "recommend_all": 20,
}


@click.command()
@click.option("--share", type=click.FloatRange(0, min_open=True), default=1.0, help="Do this share of the trials only.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed.")
@click.argument("names", nargs=-1, type=click.Choice(list(LONG)))
def main(share: float, seed: int, names: tuple[str, ...]) -> None:
    """Run campaigns, all of them by default. The exit code is 1 where a promise is broken."""
    broken = False
    for name in names or LONG:
        count = max(1, round(share * LONG[name]))
        command = [sys.executable, "-m", f"campaigns.{name}", "--count", str(count), "--seed", str(seed)]
        broken |= subprocess.run(command).returncode != 0
    sys.exit(broken)


if __name__ == "__main__":
    main()
