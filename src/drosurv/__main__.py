"""``python -m drosurv``: the command line where the ``drosurv`` command is not on the path."""

from drosurv.cli import main

if __name__ == "__main__":
    main()
