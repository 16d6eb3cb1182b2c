"""``dbanon`` and ``python -m dbanon``."""

import gc
import os
import sys

INTERRUPTED = 130
# Imported objects live until the end: repeated collections would take a seventh of the start time.
_OBJECTS_BETWEEN_COLLECTIONS = 500_000


class _Unneeded:
    """Hides what no command uses, but pyarrow and numba would import if installed."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        """Raise the error of a missing package."""
        if name in {"pandas", "coverage"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def main() -> None:
    """Run the command line; Ctrl-C during the import has the usual effect."""
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # others keep what was read
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads wait in a loop at first
    sys.meta_path.insert(0, _Unneeded)
    try:
        from dbanon.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; nothing was changed\n")
        sys.exit(INTERRUPTED)
    finally:
        gc.freeze()  # the collections of an ending process visit all objects, a fifth of its time


if __name__ == "__main__":
    main()
