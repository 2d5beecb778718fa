"""How many different canonical texts the architectures of a space have: a command, since it takes its time.

    python tests/unit/search_spaces/distinct_texts.py nasbench101 [--first N] [--dead-work]

It goes through `space.enumerate()`, prints progress to standard error, and at the end the numbers and some of the
architectures that share a text.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections import defaultdict
from itertools import islice

from nasrlm.graph import to_text
from nasrlm.spaces import get_space

SHOWN = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("space")
    parser.add_argument("--first", type=int, help="only so many architectures")
    parser.add_argument("--dead-work", action="store_true", help="texts that keep operations whose result is not used")
    given = parser.parse_args()
    found: dict[bytes, list[str]] = defaultdict(list)
    total = 0
    for total, a in enumerate(islice(get_space(given.space).enumerate(), given.first), 1):
        text = to_text(a, dead_work=given.dead_work)
        found[hashlib.blake2b(text.encode(), digest_size=12).digest()].append(a.string)
        if total % 10_000 == 0:
            print(f"{total:,} architectures, {len(found):,} texts", file=sys.stderr, flush=True)
    print(f"{given.space}: {total:,} architectures, {len(found):,} texts")
    for strings in islice((strings for strings in found.values() if len(strings) > 1), SHOWN):
        print("  one text:", "  ".join(strings))


if __name__ == "__main__":
    main()
