"""What can go wrong with a baseline."""


class BaselineError(RuntimeError):
    """A baseline could not be installed, failed, or ran out of time; the message says which, and what it last said."""


class BaselineTimeoutError(BaselineError):
    """A baseline was stopped because its time was up."""


class RegistryUnreachableError(BaselineError):
    """The packages of a baseline could not be fetched: no connection to the package registry."""
