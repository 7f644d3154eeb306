"""The main function of every script: turns errors into a message and an exit code."""

import sys
from collections.abc import Callable

from benchmark.errors import Failure, Interrupted, WrongInput
from benchmark.signals import Signals

from cloud.errors import ApiError, NoAnswerError

FAILED = 1
WRONG_INPUT = 2

UNAUTHORIZED = 401


def run(work: Callable[[], int]) -> int:
    """Returns the exit code. A signal may come at any moment; there is nothing to clean up."""
    Signals().install()
    try:
        return work()
    except WrongInput as e:
        print(e, file=sys.stderr)
        return WRONG_INPUT
    except ApiError as e:
        print(e, file=sys.stderr)
        if e.status == UNAUTHORIZED:
            print("DO_API_TOKEN is wrong, expired, or may not do this.", file=sys.stderr)
            return WRONG_INPUT
        return FAILED
    except (Failure, NoAnswerError) as e:
        print(e, file=sys.stderr)
        return FAILED
    except Interrupted as e:
        print("\nInterrupted; run the same command to resume.", file=sys.stderr)
        return 128 + e.signal_number
