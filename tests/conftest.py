"""What every test shares: where data go, and which examples Hypothesis draws."""

import os

import pytest
from hypothesis import settings

# The same examples in every run, so that what passed once passes again; `make search` draws new ones.
settings.register_profile("repeatable", derandomize=True)
settings.register_profile("search", print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.fixture(scope="session", autouse=True)
def data_directory(tmp_path_factory):
    """Downloads go to a folder of this test session, unless the environment names one."""
    with pytest.MonkeyPatch.context() as patch:
        if "DROSURV_DATA" not in os.environ:
            patch.setenv("DROSURV_DATA", str(tmp_path_factory.mktemp("data")))
        yield
