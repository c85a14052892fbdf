"""The Markdown set-up of a docs tree: the extensions of the nearest `mkdocs.yml`, or Material's usual ones."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import markdown
import yaml
from msgspec import Struct, field

from rankbook.errors import ConfigError, bad_yaml
from rankbook.listings.fingerprint import Fingerprint, fingerprint
from rankbook.listings.superfences import Recorder, install

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

RENDERING = threading.RLock()
"""Held by the thread that renders a page."""
_NAMES = ("mkdocs.yml", "mkdocs.yaml")
_BUILT_IN: Mapping[str, Mapping[str, Any]] = {"toc": {}, "tables": {}, "fenced_code": {}}
"""What MkDocs adds to every site."""
_USUAL: Mapping[str, Mapping[str, Any]] = {
    "admonition": {},
    "attr_list": {},
    "def_list": {},
    "footnotes": {},
    "md_in_html": {},
    "pymdownx.details": {},
    "pymdownx.superfences": {},
    "pymdownx.tabbed": {"alternate_style": True},
    "pymdownx.highlight": {"anchor_linenums": True},
}


class Site(Struct, frozen=True, eq=False, dict=True):
    """How a docs tree turns Markdown into pages."""

    config: Path | None = None
    """Its `mkdocs.yml`; None for the usual set-up."""
    extensions: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {**_BUILT_IN, **_USUAL})
    """Python-Markdown extensions in their order, each with its settings."""
    docs: Path | None = None
    """Folder of its pages; None where there is no `mkdocs.yml`."""
    excluded: str = ""
    """What its `exclude_docs` says."""

    @functools.cached_property
    def recorder(self) -> Recorder:
        """The site's Markdown, ready to tell which fences of a text it renders.

        Raises:
            ConfigError: the site does not use `pymdownx.superfences`.
        """
        return self._built[0]

    @functools.cached_property
    def left_out(self) -> tuple[str, ...]:
        """Extensions and settings that cannot be had here, each as a sentence: a listing that depends on one may be missed."""
        return self._built[1]

    @functools.cached_property
    def fingerprint(self) -> Fingerprint:
        """All that the rendering of a text depends on, as far as it is known."""
        return fingerprint(self.recorder.md, self.extensions, self.left_out)

    @contextlib.contextmanager
    def at_home(self) -> Iterator[None]:
        """Stand in the site's folder, where MkDocs starts from, and pass over warnings of extensions, which must not stop a run here.

        Both hold for the whole process, and a Markdown is no thread's own: one thread at a time is at home.
        """
        here = self.config is None or self.config.parent == Path.cwd()
        home = contextlib.nullcontext() if here or self.config is None else contextlib.chdir(self.config.parent)
        with RENDERING, warnings.catch_warnings(action="ignore"), home:
            yield

    def markdown(self) -> tuple[markdown.Markdown, tuple[str, ...]]:
        """Set up the site's Markdown as its build does.

        Returns:
            The Markdown, and what had to be left out.
        """
        md = markdown.Markdown()
        left_out: list[str] = []
        with self.at_home():
            for name, settings in self.extensions.items():
                _register(md, name, settings, left_out)
        return md, tuple(left_out)

    @functools.cached_property
    def _built(self) -> tuple[Recorder, tuple[str, ...]]:
        md, left_out = self.markdown()
        recorder = install(md)
        if recorder is None:
            raise ConfigError(
                "the site's Markdown has no 'pymdownx.superfences', so what it shows as a listing is not known",
                where=self.config,
                right="add it to markdown_extensions" + (f" ({'; '.join(left_out)})" if left_out else ""),
            )
        return recorder, left_out


def site_of(page: Path) -> Site:
    """Give the set-up of the site that a page belongs to: that of the nearest `mkdocs.yml` above it.

    Args:
        page: a page, which need not exist.

    Returns:
        One and the same `Site` for all pages below an unchanged `mkdocs.yml`; for those of a folder, where that has paths of `!relative`.

    Raises:
        ConfigError: the `mkdocs.yml` cannot be read.
    """
    for folder in page.absolute().parents:
        for name in _NAMES:
            config = folder / name
            if config.is_file():
                changed = config.stat().st_mtime_ns
                found = _site(config, changed, None)
                return _site(config, changed, page.absolute().parent) if any(map(_is_by_page, found.extensions.values())) else found
    return _USUAL_SITE


_USUAL_SITE = Site()


@functools.lru_cache(maxsize=64)
def _site(config: Path, _changed: int, beside: Path | None) -> Site:
    """Read the set-up of a site.

    Args:
        config: its `mkdocs.yml`.
        beside: folder of pages, to which paths of a bare `!relative` lead; they stay as they are when None.
    """
    values = _values(config)
    docs = Path(os.path.normpath(config.parent / str(values.get("docs_dir") or "docs")))
    places = {"$docs_dir": docs, "$config_dir": config.parent, **({"": beside} if beside is not None else {})}
    plugins = values.get("plugins")
    added = _listed(config, plugins).get("markdown-exec") if isinstance(plugins, list | dict) else None
    listed = _listed(config, values.get("markdown_extensions"))
    listed = listed if added is None else _with_executed_fences(listed, added)
    return Site(
        config,
        {**_BUILT_IN, **{name: _led(settings, places) for name, settings in listed.items()}},
        docs,
        str(values.get("exclude_docs") or ""),
    )


def _with_executed_fences(listed: dict[str, Mapping[str, Any]], settings: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Add the fences that the plugin `markdown-exec` adds to a site: those that ask to be run by it are rendered by its own formatter.

    Args:
        listed: the extensions of the site.
        settings: of the plugin.

    Source: https://pawamoy.github.io/markdown-exec/
    """
    own = listed.get("pymdownx.superfences")
    if own is None:
        return listed
    words = settings.get("languages") or _EXECUTED
    added = [{"name": word, "class": word, "validator": _Executed(), "format": _Missing("markdown_exec.formatter")} for word in words]
    return {**listed, "pymdownx.superfences": {**own, "custom_fences": [*(own.get("custom_fences") or ()), *added]}}


_EXECUTED = ("bash", "console", "md", "markdown", "py", "python", "pycon", "pyodide", "sh", "tree")
"""Words of the fences that it takes."""
_ALWAYS = ("pyodide", "tree")
"""Those that it takes whatever they ask for."""
_NO = frozenset({"", "no", "off", "false", "0"})


class _Executed(Struct, frozen=True):
    """Stands for the validator of `markdown-exec`: it takes a fence that asks to be run."""

    def __call__(self, language: str, inputs: dict[str, str], options: dict[str, Any], _attributes: object, _md: object) -> bool:
        """Tell whether it takes a fence."""
        auto = [each.strip() for each in os.environ.get("MARKDOWN_EXEC_AUTO", "").split(",")]
        options.update(inputs)
        return language in (*_ALWAYS, *auto) or inputs.get("exec", "no").lower() not in _NO


class _Relative(Struct, frozen=True):
    """A path of `!relative`."""

    place: str
    """`$docs_dir`, `$config_dir`, or empty for the folder of the page that is rendered."""
    rest: str


def _led(value: Any, places: Mapping[str, Path]) -> Any:
    """Give a setting in which the paths of `!relative` are led to their places, as far as these are known."""
    if isinstance(value, dict):
        return {key: _led(inner, places) for key, inner in value.items()}
    if isinstance(value, list):
        return [_led(inner, places) for inner in value]
    return str(places[value.place] / value.rest) if isinstance(value, _Relative) and value.place in places else value


def _is_by_page(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_is_by_page, value.values()))
    return any(map(_is_by_page, value)) if isinstance(value, list) else isinstance(value, _Relative)


class _Missing(Struct, frozen=True):
    """Stands for a Python object that the configuration names and that cannot be imported."""

    name: str

    def __call__(self, *_arguments: object, **_keywords: object) -> bool:
        """Say yes: as the validator of a custom fence it takes the fence, as its formatter it is never called."""
        return True


class _Loader(yaml.UnsafeLoader):
    """Reads `mkdocs.yml` as MkDocs does, which imports what the file names, and goes on when that cannot be imported."""

    def named(self, suffix: str, node: yaml.Node) -> object:
        """Import what `!!python/name:` names."""
        try:
            return self.find_python_name(suffix, node.start_mark)  # type: ignore[attr-defined] # not in PyYAML's stubs
        except Exception:  # noqa: BLE001 - importing runs the code of others
            return _Missing(suffix)

    def applied(self, suffix: str, node: yaml.Node) -> object:
        """Call what `!!python/object/apply:` names."""
        try:
            return self.construct_python_object_apply(suffix, node)  # type: ignore[attr-defined] # as above
        except Exception:  # noqa: BLE001 - as above
            return _Missing(suffix)

    def environment(self, node: yaml.Node) -> object:
        """Read the environment variables of `!ENV`."""
        if not isinstance(node, yaml.SequenceNode):
            return yaml.safe_load(os.environ.get(str(node.value), "")) if isinstance(node, yaml.ScalarNode) else None
        *names, last = self.construct_sequence(node) or [None]
        set_here = [os.environ[name] for name in [*names, last] if isinstance(name, str) and name in os.environ]
        return yaml.safe_load(set_here[0]) if set_here else last if names else None

    def relative(self, node: yaml.Node) -> _Relative:
        """Read a path of `!relative`, `!relative $docs_dir` or `!relative $config_dir/more`."""
        place, _, rest = str(node.value or "").partition("/")
        return _Relative(place, rest)

    def unknown(self, suffix: str, _node: yaml.Node) -> object:
        """Pass over a tag of a plugin that is not here."""
        return _Missing(suffix)


_Loader.add_multi_constructor("tag:yaml.org,2002:python/name:", _Loader.named)
_Loader.add_multi_constructor("tag:yaml.org,2002:python/object/apply:", _Loader.applied)
_Loader.add_multi_constructor("!", _Loader.unknown)
_Loader.add_constructor("!ENV", _Loader.environment)
_Loader.add_constructor("!relative", _Loader.relative)


def _values(config: Path) -> dict[str, Any]:
    try:
        loader = _Loader(config.read_bytes())
        values = loader.get_single_data()
    except yaml.YAMLError as error:
        raise bad_yaml(error, config) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the settings of the site: {error}", where=config, right="it must be YAML in UTF-8") from error
    if not isinstance(values, dict):
        return {}
    parent = values.pop("INHERIT", None)
    return _merged(_values(config.parent / parent), values) if isinstance(parent, str) else values


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    both = {key: _merged(below[key], above[key]) for key in above if isinstance(above[key], dict) and isinstance(below.get(key), dict)}
    return {**below, **above, **both}


def _listed(config: Path, entries: object) -> dict[str, Mapping[str, Any]]:
    if isinstance(entries, dict):
        entries = [{name: settings} for name, settings in entries.items()]
    if not isinstance(entries, list | None):
        raise ConfigError("markdown_extensions is not a list", where=config, right="write one extension a line, each after '- '")
    listed: dict[str, Mapping[str, Any]] = {}
    for entry in entries or []:
        for name, settings in entry.items() if isinstance(entry, dict) else [(entry, None)]:
            listed[str(name)] = settings if isinstance(settings, dict) else {}
    return listed


def _register(md: markdown.Markdown, name: str, settings: Mapping[str, Any], left_out: list[str]) -> None:
    usable = {key: value for key, value in settings.items() if name == "pymdownx.superfences" or not _names_missing(value)}
    left_out.extend(f"setting '{key}' of '{name}' is left out: it names what cannot be imported here" for key in settings.keys() - usable)
    try:
        md.registerExtensions([name], {name: usable})
    except Exception as error:  # noqa: BLE001 - an extension is the code of others
        left_out.append(f"extension '{name}' is left out: {error}")


def _names_missing(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_names_missing, value.values()))
    return any(map(_names_missing, value)) if isinstance(value, list) else isinstance(value, _Missing)
