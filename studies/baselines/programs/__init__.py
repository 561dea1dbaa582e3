"""Baselines as programs: a training file in, a users x items score file out.

A program runs in the environment of its own library, where ``sadrec`` is not installed and numpy may be another
one. So the modules of this folder import the standard library, numpy, the one library they are about, and each
other - nothing else. Each has a function ``fit(training, settings)`` that returns a :class:`~.exchange.Fitted`.
"""
