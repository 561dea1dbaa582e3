"""The verbs over HTTP, and the explorer page (needs the extra ``serve``).

================  ===================================================================================================
module            does
================  ===================================================================================================
``settings``      the settings of a service, and the bounds of questions
``loaded``        a model ready to answer, with titles and posterior; the users and items of questions in it
``reload``        the model that answers now, and its exchange when the file changes
``questions``     the types of questions, and ``answers`` those of answers: the OpenAPI page is made of them
``verbs``         from a question to an answer, one function per verb, listed in ``VERBS``
``interview``     which question an interview asks next
``catalogue``     titles, pictures and search
``problems``      questions without an answer
``routes``        the application (FastAPI), and ``middleware`` around it: keys, bounds, metrics, the quick path
``events``        people's answers, appended to a file that ``sadrec fit`` reads
``keys``          API keys, kept as hashes
``metrics``       figures for Prometheus, of several workers
``server``        a process that answers
``supervisor``    the process that starts workers, replaces them and ends them
``page``          a leaderboard as one HTML file; ``explorer/``, the page at ``/``
================
"""

from typing import TYPE_CHECKING

from sadrec._core.lazy import lazily

if TYPE_CHECKING:
    from sadrec.serving.keys import Keys, new_key
    from sadrec.serving.page import static_page
    from sadrec.serving.routes import create_app
    from sadrec.serving.settings import ServeSettings
    from sadrec.serving.supervisor import Supervisor, log_without_waiting

__all__ = ["ServeSettings", "create_app"]

if not TYPE_CHECKING:
    __getattr__ = lazily(__name__, __file__)
