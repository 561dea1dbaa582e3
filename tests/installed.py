"""Install what was built into an empty environment of every Python there is, and use it: ``make dist``.

A Python that is not there is said and passed over.
"""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
USE = """
import sys, numpy as np
from sadrec import SAD, Interactions, Items, __version__
from sadrec.data import simulate

liked = Interactions.from_csr(np.random.default_rng(0).random((60, 40)) < 0.2)
ids, scores = SAD(factors=4, iterations=3).fit(liked, show_progress=False).recommend(7, N=3)
assert len(ids) == 3
model = SAD().fit(simulate("sim2", n=5, m=8, k=2).comparisons, show_progress=False)
model.save("m.sad")
assert np.array_equal(SAD.load("m.sad").margins(0, [1], [2]), model.margins(0, [1], [2]))
print(__version__, "works on Python", sys.version.split()[0])
"""


def pythons() -> dict[str, str | None]:
    """Return the interpreter of every version, None where there is none."""
    paths: dict[str, str | None] = {}
    for version in VERSIONS:
        command = [sys.executable, "-m", "uv", "python", "find", "--no-project", "--no-python-downloads", version]
        done = subprocess.run(command, capture_output=True, text=True)
        paths[version] = done.stdout.strip() if done.returncode == 0 else None
    return paths


def main(folder: str = "dist") -> int:
    """Try the newest wheel and source archive of a folder; return the exit code."""
    archives = [max(Path(folder).glob(kind), key=lambda path: path.stat().st_mtime) for kind in ("*.whl", "*.tar.gz")]
    used = 0
    for version, python in pythons().items():
        if python is None:
            sys.stdout.write(f"no Python {version} here: not tried\n")
            continue
        for archive in archives[: 1 if used else 2]:  # the source archive once: it makes the same wheel
            with TemporaryDirectory() as place:
                env = f"{place}/env"
                subprocess.run([python, "-m", "venv", env], check=True)
                installed = f"{env}/Scripts/python.exe" if sys.platform == "win32" else f"{env}/bin/python"
                subprocess.run([installed, "-m", "pip", "install", "--quiet", str(archive.resolve())], check=True)
                subprocess.run([installed, "-c", USE], cwd=place, check=True)
                subprocess.run([installed, "-m", "sadrec", "--version"], cwd=place, check=True)
        used += 1
    return 0 if used else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
