"""The `manifactor` command and ``python -m manifactor``."""

import sys

from manifactor.command import signals
from manifactor.command.bus_errors import explain_bus_errors


def main() -> int:
    """Run the command line and return its exit code."""
    explain_bus_errors()
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
