"""A module of a user's, which registers a risk measure when it is imported."""

import bathysphere


@bathysphere.separable
def best_member(values, risk_coef):
    return values.max() + risk_coef
