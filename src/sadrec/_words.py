"""Text from elsewhere (ids, messages of other libraries), as it is shown to people."""

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
