"""What can go wrong with a rival."""


class RivalError(RuntimeError):
    """A rival could not be installed, failed, or ran out of time; the message says which, and what it last said."""


class RivalTimeoutError(RivalError):
    """A rival was stopped because its time was up."""


class RegistryUnreachableError(RivalError):
    """The packages of a rival could not be fetched: no connection to the package registry."""
