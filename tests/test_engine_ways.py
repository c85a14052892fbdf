"""What rankbook does for MkDocs more quickly than it does by itself gives what MkDocs gives."""

from __future__ import annotations

import jinja2
import pytest
import yaml

from rankbook import compiled
from tiny_site import build, mkdocs, write_project

OVERRIDE = """\
{% extends "base.html" %}
{% block announce %}{{ "told" | loud }}{% endblock %}
"""
HOOK = """\
def on_env(env, **_):
    env.filters["loud"] = lambda text: text + "SIGN"
    return env
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKBOOK_CACHE_DIR", str(tmp_path / "cache"))
    return write_project(tmp_path / "project")


def settle(project, **changes):
    """Change the settings of the engine, those of the theme beside what they are."""
    path = project / "mkdocs.yml"
    settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    for name, value in changes.items():
        settings[name] = settings[name] | value if isinstance(value, dict) else value
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")


def write(project, files):
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text, encoding="utf-8")


def kept(project):
    """What is kept of the engine's templates, by name, and when it was written."""
    return {path.name: path.stat().st_mtime_ns for path in (project.parent / "cache/templates").glob("__rankbook_engine_*")}


def test_the_theme_gives_the_files_that_it_gives_without_us(project):
    """Of a theme's folders the site holds what MkDocs takes of them, hidden files and folders included where it takes them."""
    own = {
        "theme/.hidden/a.txt": "a",
        "theme/.hidden.txt": "b",
        "theme/seen/.inner/c.txt": "c",
        "theme/seen/d.css": "d",
        "theme/assets/images/favicon.png": "e",
        "theme/seen/readme.txt": "f",
    }
    write(project, own)
    settle(project, theme={"custom_dir": "theme"}, plugins=["search", "rankbook"])
    site = build(project)
    ours = {path.relative_to(site).as_posix(): path for path in site.rglob("*") if path.is_file()}
    made = {name: path.read_bytes() for name, path in ours.items() if "assets" in name or "seen" in name or "hidden" in name}
    write(project, {"docs/index.md": "# Alone\n"})
    settle(project, plugins=["search"], nav=["index.md"], exclude_docs="/book/\n")
    site = build(project)
    plain = {path.relative_to(site).as_posix(): path.read_bytes() for path in site.rglob("*") if path.is_file()}
    taken = {name: data for name, data in plain.items() if "assets" in name or "seen" in name or "hidden" in name}
    assert {"seen/d.css", "assets/images/favicon.png"} <= taken.keys()
    assert {name: data for name, data in made.items() if not name.startswith("assets/rankbook")} == taken


def test_templates_are_compiled_once(project):
    """The second build takes the templates as the first has compiled them, and a template that is changed shows."""
    write(project, {"theme/main.html": OVERRIDE.replace(" | loud }}", " }}")})
    settle(project, theme={"custom_dir": "theme"})
    site = build(project)
    first = kept(project)
    page = (site / "index.html").read_bytes()
    assert len(first) > 10
    assert b"told" in page
    assert (build(project) / "index.html").read_bytes() == page
    assert kept(project) == first
    write(project, {"theme/main.html": OVERRIDE.replace('"told" | loud', '"said"')})
    assert b"said" in (build(project) / "index.html").read_bytes()


def test_what_a_hook_adds_is_compiled_anew(project):
    """Jinja works out constants with the filters that there are: with a hook's filter nothing is taken from an earlier build."""
    write(project, {"theme/main.html": OVERRIDE, "hook.py": HOOK.replace("SIGN", "!")})
    settle(project, theme={"custom_dir": "theme"}, hooks=["hook.py"])
    assert "told!" in (build(project) / "index.html").read_text(encoding="utf-8")
    write(project, {"hook.py": HOOK.replace("SIGN", "?!")})  # of another size: Python tells its bytecode by that, and by whole seconds
    assert "told?!" in (build(project) / "index.html").read_text(encoding="utf-8")


def test_where_nothing_can_be_kept_the_site_is_built(project):
    """A file where templates would be kept costs no more than the time to compile them."""
    write(project.parent, {"cache/templates": "in the way"})
    done = mkdocs(project, "build", "--strict")
    assert done.returncode == 0, done.stderr
    assert (project / "site/book/index.html").is_file()


def test_another_version_compiles_anew(tmp_path, monkeypatch):
    """What was compiled when something else ran does not count, also where the template is the same."""
    monkeypatch.setenv("RANKBOOK_CACHE_DIR", str(tmp_path))

    def made(said, runs):
        monkeypatch.setattr(compiled, "running", lambda: [runs])
        environment = jinja2.Environment(
            loader=jinja2.DictLoader({"page": "{{ 'a' | told }}"}), bytecode_cache=compiled.kept("_test"), autoescape=True
        )
        environment.filters["told"] = lambda _: said
        return environment.get_template("page").render()

    assert made("one", "first") == "one"
    assert made("two", "first") == "one"  # so much is kept
    assert made("two", "second") == "two"
