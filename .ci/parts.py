"""Parts of a check, each with a line of its own: `ok`, `skip` where what it needs is not installed, `FAIL`."""

import contextlib
import sys

failed = []


def part(name):
    """Runs the function below it at once, and prints what it returns. One that takes an argument gets a stack for what is to be closed."""

    def run(body):
        try:
            with contextlib.ExitStack() as stack:
                print(f"ok    {name}: {body(stack) if body.__code__.co_argcount else body()}")
        except ImportError as error:
            print(f"skip  {name}: {error}")
        except Exception as error:  # Whatever a program of others raises is what it thinks of ours.
            failed.append(name)
            print(f"FAIL  {name}: {type(error).__name__}: {error}")

    return run


def end():
    sys.exit(1 if failed else 0)
