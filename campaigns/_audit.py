"""Known vulnerabilities of what an environment holds, beside the library itself: ``make audit``.

pip-audit asks a service; where that does not answer, or does not know the packages (a mirror of PyPI has no
vulnerabilities), the next one is asked. The exit code is 0 where there is nothing to mend, 1 where there is, and 2
where no service could tell.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import click

SERVICES = ("pypi", "osv", "esms")


def asked(service: str, python: str) -> list[dict[str, Any]] | None:
    """Return what a service knows of each package, None where it cannot be asked."""
    place = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    options = ["--format", "json", "--progress-spinner", "off", "--vulnerability-service", service, "--path", place]
    output = subprocess.run([sys.executable, "-m", "pip_audit", *options], capture_output=True, text=True).stdout
    try:
        packages: list[dict[str, Any]] = json.loads(output)["dependencies"]
    except (ValueError, KeyError):
        return None
    others = [package for package in packages if package["name"] != "sadrec"]
    return None if not others or any("skip_reason" in package for package in others) else others


def audit(python: str, ask: Callable[[str, str], list[dict[str, Any]] | None] = asked) -> int:
    """Say what is known; return the exit code."""
    for service in SERVICES:
        packages = ask(service, python)
        if packages is None:
            continue
        bad = [package for package in packages if package["vulns"]]
        for package in bad:
            names = ", ".join(str(one["id"]) for one in package["vulns"])
            click.echo(f"{package['name']} {package['version']}: {names}")
        click.echo(f"{len(packages)} packages, {len(bad)} with known vulnerabilities, says {service}")
        return 1 if bad else 0
    click.echo(
        f"nothing could be looked up: none of {', '.join(SERVICES)} answers from here; run it where there is a network",
        err=True,
    )
    return 2


if __name__ == "__main__":
    sys.exit(audit(sys.argv[1]))
