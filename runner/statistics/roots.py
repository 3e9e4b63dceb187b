"""The root of a function of one number, without `scipy.optimize`, which takes a third of a second to import."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

_RELATIVE = 4 * float(np.finfo(float).eps)


def find_root(function: Callable[[float], float], low: float, high: float, tolerance: float = 1e-12) -> float:
    """Return where a function is 0 that has different signs at both ends, by Brent's method (1973, chapter 4).

    The steps are those of `scipy.optimize.brentq`.
    """
    before, now, other = low, high, 0.0  # the root is between `now`, the best place so far, and `other`
    f_before, f_now, f_other = function(before), function(now), 0.0
    last_step = step = 0.0
    while f_before != 0 and f_now != 0:
        if (f_before < 0) != (f_now < 0):
            other, f_other = before, f_before
            last_step = step = now - before
        if abs(f_other) < abs(f_now):
            before, now, other = now, other, now
            f_before, f_now, f_other = f_now, f_other, f_now
        least, middle = (tolerance + _RELATIVE * abs(now)) / 2, (other - now) / 2
        if abs(middle) < least:
            return now
        tried = math.inf
        if abs(last_step) > least and abs(f_now) < abs(f_before):
            if before == other:  # the secant
                tried = -f_now * (now - before) / (f_now - f_before)
            else:  # inverse quadratic interpolation
                slope, other_slope = (f_before - f_now) / (before - now), (f_other - f_now) / (other - now)
                tried = -f_now * (f_other * other_slope - f_before * slope)
                tried /= other_slope * slope * (f_other - f_before)
        if 2 * abs(tried) < min(abs(last_step), 3 * abs(middle) - least):
            last_step, step = step, tried
        else:
            last_step = step = middle
        before, f_before = now, f_now
        now += step if abs(step) > least else math.copysign(least, middle)
        f_now = function(now)
    return before if f_before == 0 else now
