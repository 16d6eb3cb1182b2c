"""``python -m dbanon``."""

from dbanon.cli import main

if __name__ == "__main__":
    main()
