"""``dbanon`` and ``python -m dbanon``."""

import sys

INTERRUPTED = 130


def main() -> None:
    """Run the command line; Ctrl-C while it is imported ends it as it does later."""
    try:
        from dbanon.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; nothing was changed\n")
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
