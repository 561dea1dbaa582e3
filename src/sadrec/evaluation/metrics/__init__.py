"""The measures, with formula and source: pairs (consistency), sampled items (recommendation), lists."""
