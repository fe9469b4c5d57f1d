"""`python -m bathysphere` is the same as `bathysphere`."""

import sys

from bathysphere.cli import main

sys.exit(main())
