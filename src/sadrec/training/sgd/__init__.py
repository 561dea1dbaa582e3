"""Stochastic gradient ascent: schedules, samplers, the step, and epochs over lists, orders and comparisons."""
