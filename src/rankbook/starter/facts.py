"""What is known of a repository: plain data, from which its files are written."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from rankbook.remotes import Remote
from rankbook.terminal import word

WRITTEN_BY = "# Written by `rankbook init`; yours to change."
"""First line of the files that are written whole."""


class Install(Struct, frozen=True):
    """How a project and what its tests need are installed on a machine that has nothing but Python."""

    commands: tuple[str, ...]
    """Commands of a shell, in order, the one that installs rankbook last."""
    found: str
    """What says so: `pyproject.toml with the extra test`."""
    folder: str = ""
    """Folder of programs that they make, which later steps need on their path; empty for none."""
    paths: tuple[str, ...] = ()
    """Folders from which the tests import what nothing installs, below the root."""
    cpu_torch: tuple[str, str] = ("", "")
    """Variable of the environment, and its value, by which torch comes for the CPU; empty where a lock file says which torch comes."""
    builds: bool = False
    """Whether something of the project itself is built from what is checked out."""


class Wishes(Struct, frozen=True):
    """What the user asks for."""

    title: str = ""
    """Title of the site; empty to find one."""
    forges: tuple[str, ...] = ()
    """Whose CI is wanted; empty to find out."""
    ignores_pages: bool = False
    """Whether Git is not to keep the generated pages."""


class Demands(Struct, frozen=True):
    """What the tests need, as a survey of them says."""

    gpus: tuple[int, ...] = ()
    """GPUs of the tests that need some, a number for each."""
    torch: bool = False
    """Whether a test imports torch."""
    torch_testing: bool = False
    """Whether a test imports what torch tests itself by, which needs more than torch brings."""
    imports: frozenset[str] = frozenset()
    """First parts of the names of the modules that the tests import."""
    modules: tuple[str, ...] = ()
    """Files that hold tests."""
    clash: tuple[str, ...] = ()
    """Two generated pages, below their folder, that would have one address as folders; empty when each has its own."""


class Facts(Struct, frozen=True):
    """All that the written files hang on."""

    root: Path
    """Folder of the project."""
    below: str
    """The project's folder below the top of its repository; empty for the top."""
    title: str
    sources: tuple[str, ...]
    """Files and folders of the tests."""
    include: tuple[str, ...]
    """Patterns of the files to take; empty for all."""
    docs: str
    """Folder of the site's pages."""
    is_docs_new: bool
    """Whether no page of a person stands in it."""
    out: str
    """Folder of the generated pages, below the root."""
    site_dir: str
    """Folder of the built site, below the root; empty for one that lies elsewhere."""
    config: str
    """The site's settings: `mkdocs.yml`."""
    remote: Remote | None
    branch: str
    """The branch that the site is published from."""
    python: str
    """Version of Python for CI: `3.13`."""
    install: Install
    """For the jobs that execute the tests."""
    site: Install
    """For the jobs that only generate and build."""
    rankbook: str
    """What pip is told to install for rankbook."""
    is_published: bool
    """Whether pip gets it by that on machines of others."""
    needs_torch: bool
    gpus: int
    """GPUs of the machine that executes what needs some; 0 for none."""
    forges: tuple[str, ...]
    """Whose files for CI are written: `github`, `gitlab`."""
    is_ignored: bool
    """Whether Git does not keep the generated pages."""
    is_bytecode_kept: bool = False
    """Whether Git would keep what Python compiles beside the tests when they run."""
    is_strict: bool = True
    """Whether a warning ends the site's build: where its settings are the project's own, they never were asked for that."""
    stage: str = ""
    """Stage that jobs of GitLab take; empty for GitLab's own."""
    has_submodules: bool = False
    """Whether other repositories hold some of what the jobs need: of the sources, of what the tests import, or of what is built."""
    clash: tuple[str, ...] = ()
    """Two generated pages, as the site names them, that would have one address as folders; empty when each has its own."""
    packages: tuple[str, ...] = ()
    """Folders in which the project's own modules lie that the tests import, and that have no page."""

    @property
    def top(self) -> Path:
        """The top of the repository."""
        return self.root.parents[len(Path(self.below).parts) - 1] if self.below else self.root

    @property
    def shown(self) -> str:
        """Folder of the generated pages, below that of the site's pages; empty where it lies elsewhere."""
        return self.out.removeprefix(f"{self.docs}/") if self.out.startswith(f"{self.docs}/") else ""

    @property
    def proved(self) -> str:
        """What pytest executes: the whole book where all of it is ours, else the generated pages."""
        return f"{self.docs}/" if self.is_docs_new else f"{self.out}/"

    def prove(self, options: str = "") -> str:
        """Give the command that executes the book.

        Args:
            options: of pytest, each with a space before it.
        """
        paths = f"PYTHONPATH={word(':'.join(self.install.paths))} " if self.install.paths else ""
        return f"{paths}pytest --doctest-glob='*.md' {word(self.proved)}{options}"

    def at_top(self, path: str) -> str:
        """Name a path of the project as the top of the repository has it."""
        return f"{self.below}/{path}" if self.below else path
