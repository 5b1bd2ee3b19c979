"""The `manifactor` command and ``python -m manifactor``."""

import sys

from manifactor.command import EXIT_BAD_INPUT, shortages, signals


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        # First: libraries that find too little room end the process, or hang.
        problem = shortages.missing_room()
        if not problem:
            return _ended_by_signals()
    except (ImportError, MemoryError, RuntimeError, OSError) as error:
        problem = shortages.shortage(error)
        if not problem:
            raise
    sys.stderr.write(f"manifactor: error: {problem}\n")
    return EXIT_BAD_INPUT


def _ended_by_signals() -> int:
    with signals.ended_by_signals():
        try:
            # Importing numpy and scikit-learn takes a second or more. The import is
            # inside the `try` so that Ctrl-C during that time gives one line, not a
            # traceback.
            from manifactor.command.main import main as run

            return run()
        except KeyboardInterrupt as stop:
            signals.said()
            sys.stderr.write(f"manifactor: {signals.how(stop)}; nothing was written.\n")
            return signals.exit_code(stop)


if __name__ == "__main__":
    sys.exit(main())
