"""The method card names the libraries that are installed, and needs none that is optional."""

from importlib.metadata import PackageNotFoundError, version

from drosurv.report.sections import method


def test_optional_libraries_are_named_only_where_they_are_installed(monkeypatch):
    def without_torch(library):
        if library == "torch":
            raise PackageNotFoundError(library)
        return version(library)

    monkeypatch.setattr(method, "version", without_torch)
    # Not from the cache, which an earlier report may have filled.
    found = method._versions.__wrapped__()
    assert "torch version" not in found
    assert found["numpy version"] == version("numpy")
