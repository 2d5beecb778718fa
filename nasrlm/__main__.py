"""`python -m nasrlm` is `nasrlm`."""

from __future__ import annotations

import sys

from nasrlm.cli import main

if __name__ == "__main__":
    sys.exit(main())
