import os
import zipfile

import pytest


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    directory = tmp_path / "cache"
    monkeypatch.setenv("DROSURV_DATA", str(directory))
    return directory


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """The only folder in which pip finds wheels: nothing else can be downloaded."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def put_wheel(shelf):
    def put(package, version, member, content):
        stem = f"{package.replace('-', '_')}-{version}"
        path = shelf / f"{stem}-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as wheel:
            wheel.writestr(member, content)
            wheel.writestr(
                f"{stem}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
            )
            wheel.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            wheel.writestr(f"{stem}.dist-info/RECORD", "")
        return path

    return put
