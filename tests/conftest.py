"""Settings every test shares."""

import numba
import numpy as np

if numba.config.DISABLE_JIT:
    # Hashes and random streams wrap around on purpose; machine code does so silently, NumPy scalars warn.
    np.seterr(over="ignore")
