"""Figures that notebooks show by themselves (needs matplotlib: the ``plot`` extra)."""

from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure as FigureOfMatplotlib


def new_figure(width: float, height: float) -> "FigureOfMatplotlib":
    """Return an empty figure attached to no window; as the last line of a notebook's cell it is shown."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'sadrec[plot]'") from error

    class Picture(Figure):
        def _repr_png_(self) -> bytes:
            content = BytesIO()
            self.savefig(content, format="png", dpi=110)
            return content.getvalue()

    return Picture(figsize=(width, height), layout="constrained")
