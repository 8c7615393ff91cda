"""The cache of pages between builds of the site."""

from website.common import cache


def test_pages_are_made_again_only_after_a_change(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "FOLDER", tmp_path / "cache")
    monkeypatch.setattr(cache, "code_digest", lambda: "code")
    source, builds = tmp_path / "source.md", []

    def made():
        builds.append(source.read_text())
        return {"page.md": f"# {source.read_text()}", "picture.svg": b"<svg/>"}

    source.write_text("one")
    pages = [cache.cached("page", [source, "name"], made) for _ in range(2)]
    assert pages == [{"page.md": "# one", "picture.svg": b"<svg/>"}] * 2
    source.write_text("two")
    assert cache.cached("page", [source, "name"], made)["page.md"] == "# two"
    cache.cached("page", [source, "another"], made)
    assert builds == ["one", "two", "two"]
