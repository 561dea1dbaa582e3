"""The standard normal distribution and its positive part, accurate far into the tails.

Nothing here loops until something happens: every draw is the inverse of a distribution function at one uniform number.
"""

import math
from typing import Any

from sadrec._core.kernel import kernel

_ROOT_HALF = math.sqrt(0.5)
_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
# Below this the ratio of tails is inverted directly: normal_cdf stays representable far beyond it.
_TAIL = -6.0
_TINY = 1e-300
# Wichura (1988), algorithm AS 241: coefficients of a numerator and a denominator in three ranges, highest power first.
# fmt: off
_MIDDLE_ABOVE = (
    2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
    1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0,
)
_MIDDLE_BELOW = (
    5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
    5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0,
)
_OUTER_ABOVE = (
    7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
    3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0,
)
_OUTER_BELOW = (
    1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
    6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0,
)
_FAR_ABOVE = (
    2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
    2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0,
)
_FAR_BELOW = (
    2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
    1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0,
)
# fmt: on


@kernel
def normal_cdf(x: float) -> float:
    """Probability that a standard normal number is below ``x``; relative accuracy holds to x = -37."""
    return 0.5 * math.erfc(-x * _ROOT_HALF)


@kernel
def mills_ratio(x: float) -> float:
    """Upper tail over density, ``(1 - Phi(x)) / phi(x)``, for x >= 4 (a continued fraction of fixed length)."""
    tail = 0.0
    for term in range(24, 0, -1):
        tail = term / (x + tail)
    return 1.0 / (x + tail)


@kernel
def log_normal_cdf(x: float) -> float:
    """Logarithm of :func:`normal_cdf`, finite for every finite ``x``."""
    if x > _TAIL:
        if x > 0.0:
            return math.log1p(-normal_cdf(-x))
        return math.log(normal_cdf(x))
    return math.log(mills_ratio(-x)) - 0.5 * x * x - _LOG_ROOT_TWO_PI


@kernel
def polynomial(r: float, coefficients: Any) -> float:
    """Return the value of a polynomial of degree 7, by Horner's rule."""
    a, b, c, d, e, f, g, h = coefficients
    value: float = ((((((a * r + b) * r + c) * r + d) * r + e) * r + f) * r + g) * r + h
    return value


@kernel
def normal_quantile_lower(p: float) -> float:
    """Quantile of the standard normal distribution for 0 < p <= 1/2."""
    q = p - 0.5
    if q > -0.425:
        r = 0.180625 - q * q
        return q * polynomial(r, _MIDDLE_ABOVE) / polynomial(r, _MIDDLE_BELOW)
    r = math.sqrt(-math.log(p))
    if r <= 5.0:
        return -polynomial(r - 1.6, _OUTER_ABOVE) / polynomial(r - 1.6, _OUTER_BELOW)
    return -polynomial(r - 5.0, _FAR_ABOVE) / polynomial(r - 5.0, _FAR_BELOW)


@kernel
def positive_normal(mean: float, u: float) -> float:
    """Draw from N(mean, 1) restricted to (0, inf): the value whose upper tail is the share ``u`` of the total.

    With ``a = -mean`` it solves ``Q(a + z) = u Q(a)`` for z, Q the upper tail of the standard normal. For mean > -6 one
    normal quantile gives z. Below, that loses digits: three Newton steps on ``log(Q(a + z) / Q(a))`` start at the z
    with ``exp(-a z - z^2 / 2) = u``.
    """
    if mean > _TAIL:
        if mean > 0.0:
            beyond = normal_cdf(-mean)
            p = u * (1.0 - beyond)
            # From the nearer end, where the number keeps its digits.
            z = mean - normal_quantile_lower(p) if p <= 0.5 else mean + normal_quantile_lower(1.0 - u + u * beyond)
        else:
            z = mean - normal_quantile_lower(u * normal_cdf(mean))
        return max(z, _TINY)
    a = -mean
    log_u = math.log(u)
    z = -2.0 * log_u / (a + math.sqrt(a * a - 2.0 * log_u))
    ratio_at_a = mills_ratio(a)
    for _ in range(3):
        ratio = mills_ratio(a + z)
        z -= ratio * (z * (a + 0.5 * z) - math.log(ratio / ratio_at_a) + log_u)
    return max(z, _TINY)
