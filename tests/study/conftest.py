import pytest


@pytest.fixture(autouse=True)
def key(tmp_path, monkeypatch):
    """No test writes to the user's own folder."""
    monkeypatch.setenv("CBO_GYM_KEY", str(tmp_path / "key"))
