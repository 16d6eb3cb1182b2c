"""``dbanon`` and ``python -m dbanon``."""

import gc
import sys

INTERRUPTED = 130
# What is imported stays until the end: to look through it again and again takes a seventh of the
# time in which a command starts.
_OBJECTS_BETWEEN_COLLECTIONS = 50_000


class _Unneeded:
    """Hides pandas, which no command uses: pyarrow would import one that happens to be there."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        """Raise what an import does where nothing is installed."""
        if name == "pandas":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def main() -> None:
    """Run the command line; Ctrl-C while it is imported ends it as it does later."""
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    sys.meta_path.insert(0, _Unneeded)
    try:
        from dbanon.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; nothing was changed\n")
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
