"""Template packs: folders of Jinja templates, found in the project first and then among those that come with rankbook."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from pathlib import Path
from types import MethodType
from typing import Any, cast

import jinja2
from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.runtime import Context, Macro
from jinja2.sandbox import SandboxedEnvironment

from rankbook import compiled
from rankbook.config import Settings, told_at
from rankbook.errors import TemplateError
from rankbook.front_matter import PAGE_KINDS
from rankbook.pages.evidence import PATTERNS
from rankbook.pages.rows import ROWS
from rankbook.pages.text import FILTERS, text

_SUFFIX = ".md.jinja"
_SHARED = "_shared"
"""Folder of the templates that all packs may use."""


@contextmanager
def template_errors() -> Iterator[None]:
    """Turn whatever goes wrong in a template into a sentence with the template's file and line.

    Raises:
        TemplateError: the template is broken.
    """
    try:
        yield
    except jinja2.TemplateSyntaxError as error:
        raise TemplateError(f"broken template: {error.message}", where=error.filename, line=error.lineno) from error
    except jinja2.TemplateNotFound as error:
        where, line = _place_of(error)
        what = f"there is no template '{error.name}' in the pack"
        raise TemplateError(what, where=where, line=line, right="write it, or take it out of the one that names it") from error
    except (jinja2.TemplateError, TypeError, AttributeError, LookupError, ArithmeticError, ValueError) as error:
        where, line = _place_of(error)
        if where is None:
            raise
        raise TemplateError(f"broken template: {error}", where=where, line=line) from error


def _place_of(error: Exception) -> tuple[str | None, int | None]:
    """Give the file and the line of the template in which an error was raised; None for one that no template has raised."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.endswith(".jinja")]
    return (frames[-1].filename, frames[-1].lineno) if frames else (None, None)


def pack_folders(settings: Settings) -> tuple[str, ...]:
    """Find the folders of the pack: the project's own first, then that of rankbook, then what all packs share.

    Raises:
        TemplateError: no folder of that name is there.
    """
    own = settings.below_root(settings.templates)
    if settings.pack in _packs(own):
        places = (own / settings.pack, _own_packs() / settings.pack, _own_packs() / _SHARED)
        return tuple(dict.fromkeys(str(place) for place in places if place.is_dir()))
    known = ", ".join(sorted(_packs(own)))
    where, line = told_at(settings, "pack") or (own, None)
    raise TemplateError(f"there is no template pack '{settings.pack}'", where=where, line=line, right=f"known packs are {known}")


class _Generator(CodeGenerator):
    """Compiles what a template prints so that `text` alone escapes it: what that gives is Markdown, and need not be asked again."""

    def _output_child_pre(self, node: nodes.Expr, frame: Frame, finalize: Any) -> None:  # noqa: ARG002 - the signature is Jinja's
        self.write(f"({finalize.src}")


class _Context(Context):
    """Calls macros, and the methods of what templates are given, without looking for marks on them that only functions of Jinja carry."""

    def call(self, called: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        kind = type(called)
        if kind is not MethodType and kind is not Macro:
            return super().call(called, *args, **kwargs)
        kwargs.pop("_loop_vars", None)
        kwargs.pop("_block_vars", None)
        return called(*args, **kwargs) if kind is MethodType else called(self.eval_ctx, *args, **kwargs)


class _Loader(jinja2.FileSystemLoader):
    """Reads templates, and nothing that only passes for one: a link out of the folder of all packs, or what is no text."""

    def __init__(self, folders: tuple[str, ...]) -> None:
        super().__init__(folders)
        self.given: dict[str, tuple[str, str] | None] = {}
        """Text and file of each template that was asked for; None for one that is not there or cannot be read."""

    def get_source(self, environment: jinja2.Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        self.given[template] = None
        for folder in map(Path, self.searchpath):
            file = folder / template
            if file.is_file():
                # Those that come with rankbook may be links: so some installers put packages together.
                if not folder.is_relative_to(_own_packs()) and not file.resolve().is_relative_to(folder.parent.resolve()):
                    raise TemplateError(
                        "the template is a link that leads out of the templates", where=file, right="put the file itself there"
                    )
                break
        try:
            text, path, is_there = super().get_source(environment, template)
        except UnicodeDecodeError as error:
            raise TemplateError("the template is not UTF-8", where=file, right="save it as UTF-8") from error
        self.given[template] = text, path
        return text, path, is_there

    def is_as_it_was(self, environment: jinja2.Environment) -> bool:
        """Say whether all that was read would be read again, letter for letter, and what was not there is not there yet."""
        before, self.given = self.given, {}
        for name in before:
            with suppress(jinja2.TemplateError, TemplateError, OSError):
                self.get_source(environment, name)
        return self.given == before


class _OfPack(jinja2.Environment):
    """That of any pack: globals are those that there are when a template is read, in one dictionary, which is quickly copied for a page."""

    code_generator_class = _Generator

    def make_globals(self, d: MutableMapping[str, Any] | None) -> MutableMapping[str, Any]:
        return {**self.globals, **(d or {})}


class _Environment(_OfPack):
    """That of packs of our own, whose templates write `each.name` for attributes alone."""

    context_class = _Context
    getattr = staticmethod(getattr)  # type: ignore[assignment] # that of Jinja asks for items too


class _Sandboxed(_OfPack, SandboxedEnvironment):
    """That of packs of a project."""


@lru_cache(maxsize=4)
def environment(folders: tuple[str, ...]) -> jinja2.Environment:
    """Make the environment of a pack.

    What a template prints is escaped as prose unless a filter has made Markdown of it, so that a template that forgets a filter is safe.
    Templates of a project reach nothing but what they are given.
    """
    is_own = all(Path(folder).is_relative_to(_own_packs()) for folder in folders)
    made = (_Environment if is_own else _Sandboxed)(
        loader=_Loader(folders),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        finalize=text,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
        optimized=False,  # to look in all expressions for what is constant takes longer than it saves
        bytecode_cache=compiled.kept("" if is_own else "_sandboxed"),
    )
    made.filters.update(FILTERS | ROWS)
    made.globals["patterns"] = PATTERNS
    return made


def check_pack(folders: tuple[str, ...]) -> None:
    """Read all templates of a pack, so that a broken one is told of before anything is written, and no process reads them again.

    Raises:
        TemplateError: a template is missing or broken.
    """
    made = environment(folders)
    if not cast("_Loader", made.loader).is_as_it_was(made):  # a server makes pages again and again
        environment.cache_clear()
        made = environment(folders)
    parts = made.list_templates(filter_func=lambda name: name.startswith("_") and name.endswith(_SUFFIX))
    for name in (*(kind + _SUFFIX for kind in PAGE_KINDS), *parts):
        with template_errors():
            made.get_template(name)


def fill(folders: tuple[str, ...], kind: str, **values: Any) -> str:
    """Fill the template of a kind of page.

    Raises:
        TemplateError: the template is broken.
    """
    with template_errors():
        return environment(folders).get_template(kind + _SUFFIX).render(**values)


def file_of(folders: tuple[str, ...], kind: str) -> Path:
    """Give the file of the template of a kind of page."""
    files = [Path(folder, kind + _SUFFIX) for folder in folders]
    return next((file for file in files if file.is_file()), files[0])


def _packs(own: Path) -> set[str]:
    folders = (folder for folder in (own, _own_packs()) if folder.is_dir())
    return {entry.name for folder in folders for entry in folder.iterdir() if entry.is_dir() and entry.name[0] not in "._"}


@cache
def _own_packs() -> Path:
    """Find the packs that come with rankbook: inside the installed package, or at the root of a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "templates"
    return installed if installed.is_dir() else package.parents[1] / "templates"
