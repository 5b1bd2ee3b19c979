"""The `manifactor` command and ``python -m manifactor``."""

import sys

from manifactor.command import EXIT_INTERRUPTED


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        # Importing numpy and scikit-learn takes a second or more. The import is inside
        # the `try` so that Ctrl-C during that time gives one line, not a traceback.
        from manifactor.command.main import main as run

        return run()
    except KeyboardInterrupt:
        sys.stderr.write("manifactor: interrupted; nothing was written.\n")
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
