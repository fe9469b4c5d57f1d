"""The one exception that speaks to a person."""


class BathysphereError(ValueError):
    """Bad input, told in a sentence that says what was expected, what arrived and what to do next.

    The command line prints the sentence without a traceback; `--debug` shows both.
    """
