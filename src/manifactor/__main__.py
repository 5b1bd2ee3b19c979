"""The `manifactor` command and ``python -m manifactor``."""

import signal
import sys


def main() -> int:
    """Run the command line and return its exit code."""
    _end_silently()
    # Not before: the imports would print a traceback if Ctrl-C interrupted them.
    from manifactor.command import signals

    try:
        with signals.ended_by_signals():
            # Importing numpy and scikit-learn takes a second or more. Ctrl-C during
            # that time gives one line.
            from manifactor.command.main import main as run

            return run()
    except KeyboardInterrupt as stop:
        signals.said()
        sys.stderr.write(f"manifactor: {signals.how(stop)}; nothing was written.\n")
        return signals.exit_code(stop)


def _end_silently() -> None:
    """Let Ctrl-C end the process before and after the command, without a traceback."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return  # ignored, as in the background, or the caller's own
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    except ValueError:  # only the main thread may
        return


if __name__ == "__main__":
    sys.exit(main())
