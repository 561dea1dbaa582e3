"""sadrec in other toolkits: Cornac, RecTools, LensKit, scikit-learn.

One module each (``sadrec.integrations.cornac``, ``.rectools``, ``.lenskit``, ``.sklearn``), which imports its toolkit
and says so in one line when the toolkit is missing or of a version that was not tested. See docs/integrations.md.
"""
