"""Items and users nobody has seen: what features are worth, beside LightFM and models of features alone."""
