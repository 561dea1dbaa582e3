"""A figure that notebooks show by themselves (needs matplotlib)."""

from io import BytesIO

from matplotlib.figure import Figure


class Picture(Figure):
    """A matplotlib figure attached to no window; as the last line of a notebook's cell it is shown."""

    def _repr_png_(self) -> bytes:
        content = BytesIO()
        self.savefig(content, format="png", dpi=110)
        return content.getvalue()
