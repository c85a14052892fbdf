"""The languages of files and fences: one row per language, found by a file's name or by the word that a fence carries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct, field


class Language(Struct, frozen=True):
    """A language of source files, of fences, or of both."""

    name: str
    """Canonical name."""
    type: str
    """What a reader calls a file of it."""
    fences: tuple[str, ...]
    """Words that a fence may carry and that Pygments knows; the first is the one that rankbook writes."""
    suffixes: tuple[str, ...] = ()
    """Ends of file names, with their dot, lower case."""
    filenames: tuple[str, ...] = ()
    """Whole file names."""
    interpreters: tuple[str, ...] = ()
    """Programs that a `#!` line may name, without their version."""
    types: Mapping[str, str] = field(default_factory=dict)
    """What a reader calls the file, by suffix or file name, where that is more than `type`."""


_RUN_ANYWHERE = frozenset({"python", "pycon", "bash", "console"})
"""Languages whose listings are run wherever they stand."""
_DATA = ("text",)
_HEADERS = {
    ".h": "C or C++ header",
    ".hpp": "C++ header",
    ".hh": "C++ header",
    ".hxx": "C++ header",
    ".inl": "C++ header",
    ".inc": "C++ include file",
}

LANGUAGES: tuple[Language, ...] = (
    Language(
        "python",
        "Python source",
        ("python", "py", "python3", "py3", "pyi"),
        (".py", ".pyi", ".pyw"),
        interpreters=("python", "pypy", "pypy3"),
        types={".pyi": "Python type stub"},
    ),
    Language("cython", "Cython source", ("cython", "pyx"), (".pyx", ".pxd")),
    Language("pycon", "Python session", ("pycon", "python-console"), (".pycon",)),
    Language("pytb", "Python traceback", ("pytb", "py3tb")),
    Language("console", "Shell session", ("console", "shell-session"), (".sh-session",)),
    Language("windows session", "Windows session", ("doscon", "ps1con")),
    Language(
        "bash",
        "Shell script",
        ("bash", "sh", "shell", "zsh", "ksh"),
        (".sh", ".bash", ".zsh", ".ksh"),
        ("gradlew", ".bashrc", ".bash_profile", ".profile", ".zshrc", ".envrc"),
        ("bash", "sh", "zsh", "ksh", "dash"),
    ),
    Language("fish", "fish script", ("fish", "fishshell"), (".fish",), interpreters=("fish",)),
    Language("batch", "Windows batch file", ("batch", "bat", "dosbatch", "winbatch"), (".bat", ".cmd")),
    Language("powershell", "PowerShell script", ("powershell", "pwsh", "posh", "ps1", "psm1"), (".ps1", ".psm1", ".psd1"), (), ("pwsh",)),
    Language("markdown", "Markdown document", ("markdown", "md"), (".md", ".markdown", ".mkd")),
    Language("rst", "reStructuredText document", ("rst", "rest", "restructuredtext"), (".rst", ".rest")),
    Language("tex", "TeX document", ("tex", "latex"), (".tex", ".sty", ".cls"), types={".sty": "TeX style"}),
    Language("bibtex", "BibTeX bibliography", ("bibtex", "bib"), (".bib",)),
    Language("cpp", "C++ source", ("cpp", "c++"), (".cpp", ".cc", ".cxx", ".c++", ".ipp", ".tcc", ".tpp", *_HEADERS), types=_HEADERS),
    Language("c", "C source", ("c",), (".c",)),
    Language(
        "cuda",
        "CUDA source",
        ("cuda", "cu"),
        (".cu", ".cuh", ".hip", ".cuda"),
        types={".cuh": "CUDA header", ".hip": "HIP source"},
    ),
    Language("objective-c", "Objective-C source", ("objective-c", "objectivec", "obj-c", "objc"), (".m",)),
    Language("objective-c++", "Objective-C++ source", ("objective-c++", "objectivec++", "obj-c++", "objc++"), (".mm",)),
    Language("metal", "Metal shader", ("cpp",), (".metal",)),
    Language("glsl", "GLSL shader", ("glsl",), (".glsl", ".glslh", ".vert", ".frag", ".comp", ".geom"), types={".glslh": "GLSL header"}),
    Language("hlsl", "HLSL shader", ("hlsl",), (".hlsl",)),
    Language("wgsl", "WebGPU shader", ("wgsl",), (".wgsl",)),
    Language("opencl", "OpenCL kernel", ("c",), (".cl",)),
    Language("assembly", "Assembly source", ("gas", "asm", "nasm"), (".s", ".asm")),
    Language("llvm", "LLVM assembly", ("llvm",), (".ll",)),
    Language("mlir", "MLIR source", _DATA, (".mlir",)),
    Language("ptx", "PTX assembly", _DATA, (".ptx",)),
    Language("cmake", "CMake script", ("cmake",), (".cmake",), ("CMakeLists.txt",)),
    Language(
        "makefile", "Makefile", ("make", "makefile", "mf", "bsdmake"), (".mk", ".mak", ".makefile"), ("Makefile", "makefile", "GNUmakefile")
    ),
    Language("ninja", "Ninja build file", _DATA, (".ninja",)),
    Language("linker script", "Linker script", _DATA, (".ld", ".lds")),
    Language(
        "starlark",
        "Bazel build file",
        ("starlark", "bazel"),
        (".bzl", ".bazel", ".star", ".build"),
        ("BUILD", "WORKSPACE", "BUCK", "TARGETS", "BUCK.oss", "TARGETS.oss"),
        types={".bzl": "Starlark source", ".star": "Starlark source", "BUCK": "Buck build file", "BUCK.oss": "Buck build file"},
    ),
    Language("meson", "Meson build file", ("meson", "meson.build"), (), ("meson.build", "meson_options.txt")),
    Language("dockerfile", "Dockerfile", ("dockerfile", "docker"), (".dockerfile", ".docker"), ("Dockerfile", "Containerfile")),
    Language(
        "yaml",
        "YAML file",
        ("yaml", "yml"),
        (".yaml", ".yml", ".cff"),
        (".clang-format", ".clang-tidy", ".clangd"),
        types={".cff": "Citation file"},
    ),
    Language("toml", "TOML file", ("toml",), (".toml",), ("Pipfile", "poetry.lock", "uv.lock", "Cargo.lock")),
    Language(
        "json",
        "JSON file",
        ("json", "json-object", "jsonld", "json-ld"),
        (".json", ".ipynb", ".jsonl", ".json5", ".webmanifest"),
        (".babelrc", ".eslintrc", "Pipfile.lock"),
        types={".ipynb": "Jupyter notebook", ".jsonl": "JSON lines"},
    ),
    Language("json5", "JSON5 file", ("json5",)),
    Language(
        "ini",
        "INI file",
        ("ini", "cfg", "dosini"),
        (".ini", ".cfg", ".conf", ".flake8", ".coveragerc", ".desktop"),
        (".flake8", ".coveragerc", ".pylintrc", ".editorconfig", ".gitconfig", ".gitmodules", ".npmrc", ".cmakelintrc"),
        types={".conf": "Configuration file"},
    ),
    Language("properties", "Properties file", ("properties", "jproperties"), (".properties",)),
    Language(
        "ignore list",
        "Ignore list",
        _DATA,
        (),
        (".gitignore", ".dockerignore", ".bazelignore", ".prettierignore", ".hgignore", ".gitattributes"),
    ),
    Language(
        "configuration",
        "Configuration file",
        _DATA,
        (".ctags",),
        (".bazelrc", ".bazelversion", ".gdbinit", ".lldbinit", ".python-version", "Doxyfile", "MANIFEST.in"),
        types={"MANIFEST.in": "Python packaging manifest"},
    ),
    Language(
        "xml",
        "XML file",
        ("xml",),
        (".xml", ".xsd", ".xsl", ".plist", ".storyboard", ".xcscheme", ".xib", ".rss"),
        types={".plist": "Property list", ".storyboard": "Xcode storyboard", ".xcscheme": "Xcode scheme"},
    ),
    Language("xcode project", "Xcode project", _DATA, (".pbxproj",)),
    Language("svg", "SVG image", ("xml",), (".svg",)),
    Language("html", "HTML document", ("html",), (".html", ".htm", ".xhtml")),
    Language("css", "CSS style sheet", ("css",), (".css",)),
    Language("scss", "Sass style sheet", ("scss", "sass"), (".scss", ".sass")),
    Language("less", "Less style sheet", ("less",), (".less",)),
    Language("javascript", "JavaScript source", ("javascript", "js"), (".js", ".mjs", ".cjs", ".jsx"), (), ("node", "nodejs")),
    Language("typescript", "TypeScript source", ("typescript", "ts"), (".ts", ".tsx", ".mts")),
    Language("java", "Java source", ("java",), (".java",)),
    Language("kotlin", "Kotlin source", ("kotlin",), (".kt", ".kts")),
    Language(
        "groovy",
        "Gradle build file",
        ("groovy",),
        (".gradle", ".groovy"),
        ("Jenkinsfile",),
        types={".groovy": "Groovy source", "Jenkinsfile": "Jenkins pipeline"},
    ),
    Language("scala", "Scala source", ("scala",), (".scala", ".sc")),
    Language("csharp", "C# source", ("csharp", "c#", "cs"), (".cs",)),
    Language("fsharp", "F# source", ("fsharp", "f#"), (".fs", ".fsx")),
    Language("rust", "Rust source", ("rust", "rs"), (".rs",)),
    Language("go", "Go source", ("go", "golang"), (".go",)),
    Language("swift", "Swift source", ("swift",), (".swift",)),
    Language("zig", "Zig source", ("zig",), (".zig",)),
    Language("nim", "Nim source", ("nim", "nimrod"), (".nim",)),
    Language("dart", "Dart source", ("dart",), (".dart",)),
    Language("php", "PHP source", ("php",), (".php",), (), ("php",)),
    Language(
        "ruby",
        "Ruby source",
        ("ruby", "rb"),
        (".rb", ".gemspec", ".podspec"),
        ("Gemfile", "Rakefile", "Fastfile", "Scanfile", "Podfile", "Appfile"),
        ("ruby",),
    ),
    Language("perl", "Perl script", ("perl", "pl"), (".pl", ".pm"), (), ("perl",)),
    Language("lua", "Lua source", ("lua",), (".lua",), (), ("lua",)),
    Language("r", "R source", ("r", "splus"), (".r",), (), ("Rscript",)),
    Language("julia", "Julia source", ("julia", "jl"), (".jl",), (), ("julia",)),
    Language("matlab", "MATLAB source", ("matlab",), ()),
    Language("fortran", "Fortran source", ("fortran", "f90"), (".f90", ".f95", ".f03", ".f")),
    Language("haskell", "Haskell source", ("haskell", "hs"), (".hs",)),
    Language("ocaml", "OCaml source", ("ocaml",), (".ml", ".mli")),
    Language("elixir", "Elixir source", ("elixir", "ex", "exs"), (".ex", ".exs")),
    Language("erlang", "Erlang source", ("erlang",), (".erl", ".hrl")),
    Language("clojure", "Clojure source", ("clojure", "clj"), (".clj",)),
    Language("lisp", "Lisp source", ("common-lisp", "cl", "lisp", "elisp", "emacs-lisp"), (".lisp", ".el")),
    Language("scheme", "Scheme source", ("scheme", "scm"), (".scm",)),
    Language("sql", "SQL script", ("sql", "mysql", "postgresql", "postgres", "sqlite3"), (".sql",)),
    Language("graphql", "GraphQL schema", ("graphql",), (".graphql",)),
    Language("proto", "Protocol buffer definition", ("protobuf", "proto"), (".proto",)),
    Language("thrift", "Thrift definition", ("thrift",), (".thrift",)),
    Language("flatbuffers", "FlatBuffers schema", _DATA, (".fbs",)),
    Language("nix", "Nix expression", ("nix", "nixos"), (".nix",)),
    Language("terraform", "Terraform file", ("terraform", "tf", "hcl"), (".tf", ".hcl")),
    Language("nginx", "nginx configuration", ("nginx",)),
    Language("apache", "Apache configuration", ("apache", "apacheconf"), (), (".htaccess",)),
    Language("vim", "Vim script", ("vim",), (".vim",), (".vimrc",)),
    Language("jinja", "Jinja template", ("jinja", "django"), (".jinja", ".jinja2", ".j2")),
    Language("html+jinja", "HTML template", ("html+jinja", "html+django", "htmldjango")),
    Language("diff", "Patch", ("diff", "udiff"), (".diff", ".patch")),
    Language("http", "HTTP exchange", ("http",)),
    Language("graphviz", "Graphviz graph", ("dot", "graphviz"), (".dot", ".gv")),
    Language("csv", "CSV table", _DATA, (".csv",)),
    Language("tsv", "TSV table", _DATA, (".tsv",)),
    Language("log", "Log", _DATA, (".log",)),
    Language("expected output", "Expected test output", _DATA, (".expect", ".expected", ".golden")),
    Language("include mapping", "Include mapping", _DATA, (".imp",)),
    Language("suppressions", "Suppression list", _DATA, (".supp", ".sup")),
    Language("ownership", "Code owners", _DATA, (), ("CODEOWNERS", "OWNERS")),
    Language(
        "license",
        "License text",
        _DATA,
        (".apache", ".bsd"),
        ("LICENSE", "LICENCE", "COPYING", "NOTICE", "LICENSE.txt", "LICENSE.TXT"),
        types={"NOTICE": "Notice"},
    ),
    Language("requirements list", "Python requirements list", _DATA, (), ("requirements.txt", "constraints.txt")),
    Language(
        "lock file",
        "Lock file",
        _DATA,
        (".lock",),
        ("go.sum",),
        types={"Gemfile.lock": "Bundler lock file", "yarn.lock": "Yarn lock file", "go.sum": "Go checksum list"},
    ),
    Language("typing marker", "Python typing marker", _DATA, (), ("py.typed",)),
    Language("text", "Text file", ("text", "output"), (".txt", ".text"), ("README", "AUTHORS", "CHANGELOG"), types={"README": "Read-me"}),
)
"""All languages; the first row that names a suffix, a file or a fence holds it."""

STRUCTURED = frozenset({
    "python", "markdown", "rst", "cmake", "json", "yaml", "toml", "c", "cpp", "cuda", "metal", "objective-c", "objective-c++", "java",
    "javascript", "typescript", "rust", "go", "bash", "starlark",
})  # fmt: skip
"""Languages of which definitions, imports or headings are read."""

BINARY_TYPES: Mapping[str, str] = {
    ".png": "PNG image",
    ".jpg": "JPEG image",
    ".jpeg": "JPEG image",
    ".gif": "GIF image",
    ".webp": "WebP image",
    ".ico": "Icon",
    ".bmp": "Bitmap image",
    ".pdf": "PDF document",
    ".pt": "PyTorch file",
    ".pth": "PyTorch file",
    ".ptl": "PyTorch mobile model",
    ".ff": "PyTorch flatbuffer model",
    ".jit": "TorchScript model",
    ".onnx": "ONNX model",
    ".safetensors": "Safetensors file",
    ".npy": "NumPy array",
    ".npz": "NumPy archive",
    ".pkl": "Pickle",
    ".pickle": "Pickle",
    ".pyc": "Python bytecode",
    ".so": "Shared library",
    ".a": "Static library",
    ".o": "Object file",
    ".dll": "Windows library",
    ".exe": "Windows program",
    ".jar": "Java archive",
    ".class": "Java class",
    ".whl": "Python wheel",
    ".zip": "ZIP archive",
    ".tar": "tar archive",
    ".gz": "gzip archive",
    ".bz2": "bzip2 archive",
    ".xz": "xz archive",
    ".zst": "Zstandard archive",
    ".7z": "7-Zip archive",
    ".sqlite": "SQLite database",
    ".db": "Database",
    ".parquet": "Parquet table",
    ".h5": "HDF5 file",
    ".mp4": "MP4 video",
    ".mp3": "MP3 audio",
    ".wav": "WAV audio",
    ".ttf": "TrueType font",
    ".woff": "Web font",
    ".woff2": "Web font",
}
"""What a reader calls a file that has no text, by suffix."""

_HEADER_SIGNS: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (re.compile(r"^[ \t]*(?:@(?:interface|protocol|class|import)\b|#import\b)", re.MULTILINE), "objective-c++", "Objective-C header"),
    (re.compile(r"__(?:global|device)__\s+\w"), "cuda", "CUDA header"),
    (
        re.compile(
            r"^[ \t]*(?:inline |constexpr )?(?:namespace\b|template\b|class\b|using\b|constexpr\b|(?:public|private):)|\bstd::",
            re.MULTILINE,
        ),
        "cpp",
        "C++ header",
    ),
)
"""What tells the language of a header that is named `.h`, with its language and type."""
_NAME_PREFIXES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"Makefile\."), "Makefile"),
    (re.compile(r"(?:.*[-_.])?(?:requirements|constraints)[-\w.]*\.(?:txt|in)$"), "requirements.txt"),
    (re.compile(r"(?:LICEN[CS]ES?|COPYING)[-_.\w]*$"), "LICENSE"),
)
"""Names that say what a file is by how they start, each with a name that stands for it."""

_LOOSE = frozenset({
    ".json5", ".babelrc", ".eslintrc", "tsconfig.json", "jsconfig.json", ".conf", ".editorconfig", ".npmrc", ".cmakelintrc",
})  # fmt: skip
"""Suffixes and names of files that are written much like JSON or INI."""
_TEMPLATE_SUFFIXES = (".in", ".template", ".tpl", ".tmpl", ".oss")
"""Ends of the names of files that become another file when they are filled in: `version.h.in` is a C++ header."""


def by_path(path: str, first_line: str = "") -> Language:
    """Find the language of a file.

    Args:
        path: path or name of the file.
        first_line: its first line, which tells the language of a script without a suffix.

    Returns:
        The language by file name, by suffix or by `#!` line; plain text when none of them tells.
    """
    return _by_name(path) or _by_shebang(first_line) or _TEXT


def by_fence(word: str) -> Language | None:
    """Find the language of the word that a fence carries, in any case; None for an unknown one."""
    return _FENCES.get(word.lower())


def is_run_anywhere(word: str) -> bool:
    """Tell of the word that a fence carries whether its listing is run wherever it stands."""
    found = by_fence(word)
    return found is not None and found.name in _RUN_ANYWHERE


def type_of(path: str, first_line: str = "", *, is_empty: bool = False) -> str:
    """Say what a reader calls a file: `Python source`, `C++ header`, `PNG image`.

    Args:
        path: path or name of the file.
        first_line: its first line, which tells the language of a script without a suffix.
        is_empty: whether it holds nothing, so that only its name can say more.
    """
    name = path.rsplit("/", 1)[-1]
    language = _by_name(name)
    if language is None and _suffix(name) in BINARY_TYPES:
        return BINARY_TYPES[_suffix(name)]
    if is_template(name):
        return f"{type_of(_stem(name))} template"
    if language is None and is_empty:
        return "Empty file"
    language = language or by_path(name, first_line)
    return language.types.get(name) or language.types.get(_suffix(name)) or language.type


def is_template(path: str) -> bool:
    """Tell whether a file becomes another one when it is filled in, so that it does not follow its language's grammar."""
    name = path.rsplit("/", 1)[-1]
    return name not in _FILENAMES and _suffix(name) in _TEMPLATE_SUFFIXES and bool(_stem(name)) and _by_start(name) is None


def is_loose(path: str) -> bool:
    """Tell whether a file of data may be right without following the grammar of its language: JSON with comments, settings like INI."""
    name = path.rsplit("/", 1)[-1]
    return name in _LOOSE or _suffix(name) in _LOOSE


def is_of_lines(path: str) -> bool:
    """Tell whether each line of a file of data stands for itself."""
    return _suffix(path.rsplit("/", 1)[-1]) == ".jsonl"


def shell_of(word: str, path: str = "", first_line: str = "") -> str:
    """Name the shell that a script is for: by its `#!` line, else by the name of its file, else by the word of its fence.

    Args:
        word: that its fence carries.
        path: path or name of its file; empty when it has none.
        first_line: its first line.

    Returns:
        `bash`, which runs what is written for `sh` too, or a shell that understands other things.
    """
    name = path.rsplit("/", 1)[-1]
    said = (_program(first_line), "zsh" if name == ".zshrc" else _suffix(name)[1:], word)
    shells = next(language for language in LANGUAGES if language.name == "bash").interpreters
    found = next((one for one in said if one in shells), "bash")
    return found if found in ("zsh", "ksh") else "bash"


def is_stub(path: str) -> bool:
    """Tell whether a file of Python only declares what another one defines: it is read, and never run."""
    return _suffix(path.rsplit("/", 1)[-1]) == ".pyi"


def header(text: str) -> tuple[str, str] | None:
    """Tell the language and the type of a header that is named `.h`; None when its text leaves that open.

    Args:
        text: its text.
    """
    return next(((language, kind) for sign, language, kind in _HEADER_SIGNS if sign.search(text)), None)


def _by_name(path: str) -> Language | None:
    name = path.rsplit("/", 1)[-1]
    known = _FILENAMES["Dockerfile"] if name.startswith("Dockerfile.") else _FILENAMES.get(name)
    found = known or _SUFFIXES.get(_suffix(name))
    if found is None or found is _TEXT:
        found = _by_start(name) or found
    if found is None and is_template(name):
        return _by_name(_stem(name)) or _TEXT
    return found


def _by_start(name: str) -> Language | None:
    return next((_FILENAMES[known] for start, known in _NAME_PREFIXES if start.match(name)), None)


def _by_shebang(line: str) -> Language | None:
    if not line.startswith("#!"):
        return None
    program = _program(line)
    return _INTERPRETERS.get(program) or _INTERPRETERS.get(program.rstrip("0123456789."))


def _program(line: str) -> str:
    """Give the program that a `#!` line names; empty for any other line."""
    words = [word.rsplit("/", 1)[-1] for word in line[2:].split() if not word.startswith("-")] if line.startswith("#!") else []
    return words[1] if len(words) > 1 and words[0] == "env" else words[0] if words else ""


def _suffix(name: str) -> str:
    stem, dot, end = name.rpartition(".")
    return (dot + end).lower() if stem else ""


def _stem(name: str) -> str:
    return name.rpartition(".")[0]


def _index(pairs: Iterable[tuple[str, Language]]) -> dict[str, Language]:
    index: dict[str, Language] = {}
    for word, language in pairs:
        index.setdefault(word, language)
    return index


_FENCES = _index((word, language) for language in LANGUAGES for word in language.fences)
_SUFFIXES = _index((suffix, language) for language in LANGUAGES for suffix in language.suffixes)
_FILENAMES = _index((name, language) for language in LANGUAGES for name in language.filenames)
_INTERPRETERS = _index((name, language) for language in LANGUAGES for name in language.interpreters)
_TEXT = next(language for language in LANGUAGES if language.name == "text")
_FENCES.update({language.fences[0]: language for language in LANGUAGES if language.name == language.fences[0]})
