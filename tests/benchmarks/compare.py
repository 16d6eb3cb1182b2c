"""Compare algorithms on Adult as a user would, and draw the picture of the guide.

    python tests/benchmarks/compare.py                            # what --compare takes by itself
    python tests/benchmarks/compare.py --algorithms auto,mondrian

Prints the costs at k = 5 and l = 3, and draws the loss against k into docs/loss.svg, on an
embedded server of its own.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from measuring import measure, own_server, say

PICTURE = Path(__file__).parents[2] / "docs" / "loss.svg"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--algorithms", help="names with commas between them")
    chosen = parser.parse_args().algorithms
    which = ("--algorithms", chosen) if chosen else ()
    PICTURE.parent.mkdir(exist_ok=True)
    with own_server():
        measure("demo", "--dataset", "adult")
        say(measure("plan", "adult", "--compare", *which).output)
        measure("plan", "adult", "--compare", *which, "--plot", str(PICTURE))
    say(f"{PICTURE} written")


if __name__ == "__main__":
    main()
