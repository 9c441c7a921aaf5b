import pytest

from experiments.command import app


@pytest.fixture(scope="session")
def experiments(command_line):
    """Runs commands of ``python -m experiments``."""
    return command_line(app)
