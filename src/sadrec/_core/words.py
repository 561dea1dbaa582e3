"""Text from elsewhere (ids, messages of other libraries), as it is shown to people."""

from collections.abc import Iterable, Mapping
from typing import Any


def one_line(value: Any) -> str:
    r"""Return a value as text on one line: what moves the cursor or changes the colour of a terminal is spelled out.

    >>> one_line("tea\nand \x1b[31mscones")
    'tea\\nand \\x1b[31mscones'
    """
    text = str(value)
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def titled(ids: Iterable[Any], titles: Mapping[Any, str]) -> Any:
    """Return the titles of items, an array of text; an item without one is called by its id.

    >>> titled([7, 8], {7: "tea"})
    array(['tea', '8'], dtype='<U3')
    """
    import numpy as np  # here: the command line shows its help without it

    return np.array([titles.get(item) or str(item) for item in ids], dtype=np.str_)
