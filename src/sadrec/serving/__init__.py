"""The same verbs over HTTP, and a page on which taste can be seen (needs the extra ``serve``).

================  ===================================================================================================
module            does
================  ===================================================================================================
``settings``      what a service is told when it starts, and the bounds of what can be asked
``served``        one model ready to answer, with titles, posterior and twin; loaded, verified and warmed up
``store``         the model that answers now, and its exchange when the file changes
``questions``     the types of questions, and ``answers`` those of answers: the OpenAPI page is made of them
``verbs``         from a question to an answer, one function per verb
``interview``     what to ask a visitor next, and again
``app``           the routes (FastAPI), and ``service``: keys, bounds, metrics and the direct path around them
``events``        what people answered, appended to a file that ``sadrec fit`` reads
``keys``          API keys, kept as hashes
``metrics``       figures for Prometheus, of several workers
``worker``        one process that answers
``run``           the process that starts workers, replaces them and ends them
``explorer/``     the page at ``/``
================  ===================================================================================================
"""

from typing import TYPE_CHECKING

from sadrec._lazy import lazily

if TYPE_CHECKING:
    from sadrec.serving.app import create_app
    from sadrec.serving.settings import ServeSettings

__all__ = ["ServeSettings", "create_app"]

if not TYPE_CHECKING:
    __getattr__ = lazily(__name__, {"app": "create_app", "settings": "ServeSettings"})
