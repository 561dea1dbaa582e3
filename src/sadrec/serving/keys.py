"""API keys. A file holds one line for each: the hash and the owner's name. The keys themselves are not stored.

A key is 256 random bits, so that a plain SHA-256 of it cannot be guessed back.
"""

import hashlib
import hmac
import logging
import os
import re
import secrets
from pathlib import Path

from sadrec._core.files import open_regular

logger = logging.getLogger("sadrec.serving")

_LINE = re.compile(r"([0-9a-f]{64})\s+(\S.*)")


def new_key(path: str | Path, name: str) -> str:
    """Make a key, append its hash to a file that only its owner can read, and return the key."""
    name = " ".join(name.split())
    if not name or not name.isprintable():
        raise ValueError("a key needs a name: whose it is, or what for")
    key = f"sadrec_{secrets.token_urlsafe(32)}"
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_CREAT | os.O_APPEND | os.O_RDWR, 0o600)
    try:
        size = os.fstat(handle).st_size
        if size and os.pread(handle, 1, size - 1) != b"\n":  # as some editors leave it
            os.write(handle, b"\n")
        os.write(handle, f"{_hash(key)}  {name}\n".encode())
    finally:
        os.close(handle)
    return key


class Keys:
    """The keys that a file allows; the file is read again when it changes."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._signature: tuple[int, int] | None = None
        self._hashes: list[str] = []
        self.read()

    def read(self) -> None:
        """Read the file if it has changed; if it cannot be read, no key is allowed."""
        with os.fdopen(open_regular(self.path), encoding="utf-8", errors="replace") as file:  # names in any encoding
            status = os.fstat(file.fileno())
            signature = status.st_mtime_ns, status.st_size
            if signature == self._signature:
                return
            text = file.read()
        hashes = []
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            match = _LINE.fullmatch(line.strip())
            if match is None:
                raise ValueError(f"{self.path}, line {number}, is not a hash and a name: make keys with `sadrec key`")
            hashes.append(match[1])
        self._hashes, self._signature = hashes, signature

    def refresh(self) -> None:
        """Read the file again; on any error no key is allowed until the file is correct."""
        try:
            self.read()
        except (OSError, ValueError) as error:
            self.refuse_all(error)

    def refuse_all(self, error: Exception) -> None:
        """Allow no key until the file can be read."""
        if self._signature is not None:
            logger.error("no key is allowed until the file of keys is mended: %s", error)
        self._hashes, self._signature = [], None

    @staticmethod
    def given(headers: list[tuple[bytes, bytes]]) -> bytes:
        """Return the key in the headers of a request, valid or not; empty if there is none."""
        given = b""
        for name, value in headers:
            if name == b"x-api-key":
                given = value
            elif name == b"authorization" and value[:7].lower() == b"bearer ":
                given = value[7:]
        return given.strip()

    def allow(self, headers: list[tuple[bytes, bytes]]) -> bool:
        """Whether the headers of a request hold a valid key: ``Authorization: Bearer KEY`` or ``X-API-Key: KEY``."""
        digest = hashlib.sha256(self.given(headers)).hexdigest()
        allowed = False
        for stored in self._hashes:  # all of them, so that the time tells nothing
            allowed |= hmac.compare_digest(stored, digest)
        return allowed


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
