"""A whole run: chains in parallel, with progress, checkpoints, and a way out that keeps what there is."""

import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from sadrec._memory import need, size
from sadrec._progress import Bar
from sadrec.posterior.chain import Chain
from sadrec.posterior.draws import Draws
from sadrec.posterior.files import DrawFiles
from sadrec.posterior.settings import GibbsSettings
from sadrec.posterior.triples import Triples

logger = logging.getLogger("sadrec")

_ROUND_SECONDS = 0.2
"""Chains wait for each other about so often: then the bar moves and Ctrl-C is noticed."""
_WORTH_SHARING = 20_000
"""Comparisons per thread below which handing work out costs more than it saves."""


class SamplerError(ValueError):
    """The chains left the finite numbers."""


def bytes_needed(settings: GibbsSettings, users: int, items: int, triples: int) -> dict[str, int]:
    """Say how much memory a run will take, in bytes: for the draws it keeps, and beside them while it runs."""
    numbers = (users + 2 * items) * settings.factors + items * settings.bias
    kept = settings.chains * settings.draws * (numbers + 3 + settings.bias) * 4
    running = triples * (8 + 16 + 2 * 16 + 8 * settings.chains) + settings.chains * numbers * 8
    return {"draws": kept, "running": running}


def check_memory(needed: dict[str, int]) -> None:
    """Log what a run will take, and refuse what there is not."""
    logger.info("the draws will take %s of memory, the run %s beside them", *map(size, needed.values()))
    remedy = "keep fewer draws (raise thin, lower draws or chains) or lower factors"
    need(sum(needed.values()), f"the sampler, whose draws take {size(needed['draws'])},", remedy)


def sample(
    triples: Triples,
    settings: GibbsSettings,
    threads: int = 1,
    *,
    files: DrawFiles | None = None,
    show_progress: bool = True,
) -> tuple[Draws, bool]:
    """Run all chains to the end, or until Ctrl-C; return the draws made and whether these are all that were asked for.

    Chains take turns of a few sweeps, so that all have come equally far at any time.
    """
    chains = [Chain(triples, settings, number) for number in range(settings.chains)]
    rows = triples.users, triples.items
    draws = Draws.empty(settings.chains, settings.draws, *rows, settings.factors, settings.bias)
    kept = 0
    if files is not None:
        kept = files.load(chains, draws, settings.sweeps)
        if chains[0].sweep:
            logger.info("resumed after sweep %d of %d", chains[0].sweep, settings.sweeps)
    saved = chains[0].sweep, kept
    parts = shares(threads, settings.chains, len(triples))
    whole = True
    disable = None if show_progress else True
    bar = Bar(None, "sampling", settings.sweeps, initial=chains[0].sweep, unit="sweep", disable=disable)
    pools = ThreadPoolExecutor(min(threads, settings.chains)), ThreadPoolExecutor(threads)
    with pools[0] as runners, pools[1] as helpers:
        turn = 1
        try:
            while chains[0].sweep < settings.sweeps:
                turn = min(turn, settings.sweeps - chains[0].sweep)
                began = time.perf_counter()
                kept = _turn(chains, draws, turn, runners, helpers, parts)
                bar.update(turn)
                bar.set_postfix_str("warming up" if not kept else f"{kept} draws per chain", refresh=False)
                if not all(np.isfinite(array).all() for chain in chains for array in chain.state[3:6]):
                    raise SamplerError("the chains left the finite numbers: choose smaller prior scales")
                if files is not None and files.due():
                    files.save(chains, draws, saved, kept)
                    saved = chains[0].sweep, kept
                spent = max(time.perf_counter() - began, 1e-6)
                turn = max(1, int(turn * min(2.0, _ROUND_SECONDS / spent)))
        except KeyboardInterrupt:
            whole = False
        finally:
            bar.close()
    # Chains finish the turn in which Ctrl-C was pressed, but for those that had not begun it.
    kept = min(map(_kept, chains))
    level = len({chain.sweep for chain in chains}) == 1
    if files is not None and level and saved[0] < chains[0].sweep:
        files.save(chains, draws, saved, kept)
    return draws.first(kept), whole


def shares(threads: int, chains: int, triples: int) -> int:
    """Return how many threads share the users of one chain: those that have no chain of their own, if it pays."""
    return max(1, min(threads // chains, triples // _WORTH_SHARING))


def _turn(
    chains: Sequence[Chain],
    draws: Draws,
    sweeps: int,
    runners: ThreadPoolExecutor,
    helpers: ThreadPoolExecutor | None,
    parts: int,
) -> int:
    """Let every chain make some sweeps; return how many draws each has now."""

    def run(chain: Chain) -> None:
        settings = chain.settings
        for _ in range(sweeps):
            chain.advance(1, helpers, parts)
            past = chain.sweep - settings.warmup
            if past > 0 and past % settings.thin == 0:
                at = chain.number, past // settings.thin - 1
                draws.user[at], draws.item[at], draws.rival[at] = chain.state.xi, chain.state.eta, chain.state.tau
                draws.scales[at] = chain.scales

    work = [runners.submit(run, chain) for chain in chains]
    for part in work:
        part.result()
    return _kept(chains[0])


def _kept(chain: Chain) -> int:
    """Return how many draws a chain has kept."""
    return max(0, chain.sweep - chain.settings.warmup) // chain.settings.thin
