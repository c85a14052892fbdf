"""The kinds of keyword: one row per kind, in the order in which keyword pages show them."""

from __future__ import annotations

from msgspec import Struct


class Kind(Struct, frozen=True):
    """A kind of keyword."""

    heading: str
    """Plural, as a heading says it."""
    description: str
    """What an entry of it is, in one line."""


KINDS: dict[str, Kind] = {
    "class": Kind("Classes", "Where a class, a structure or a union is defined."),
    "type": Kind("Types", "Where an interface, a trait, an enumeration or a name for another type is defined."),
    "namespace": Kind("Namespaces", "Namespaces, packages and modules that the file opens."),
    "test": Kind("Tests", "Functions, methods and macros that a test runner collects."),
    "fixture": Kind("Fixtures", "Functions that pytest calls to prepare a test."),
    "function": Kind("Functions", "Where a function outside a class is defined or declared."),
    "method": Kind("Methods", "Where a function inside a class is defined."),
    "kernel": Kind("Kernels", "Functions that a GPU runs and a CPU launches."),
    "macro": Kind("Macros", "Macros that the file defines, or calls where a definition stands."),
    "target": Kind("Targets", "What a build file builds: libraries, programs, rules."),
    "option": Kind("Options", "What a user of the build may set."),
    "import": Kind("Imports", "Modules, names and files that the file imports or includes, by their full names."),
    "constant": Kind("Constants", "Names assigned at the level of the module or of a class."),
    "variable": Kind("Variables", "Variables of a script or a file, assigned outside its functions."),
    "key": Kind("Keys", "Keys and tables of a data file, to the third level."),
    "section": Kind("Sections", "Headings of a document."),
    "directive": Kind("Directives", "Directives of a reStructuredText document, with their first argument."),
    "base class": Kind("Base classes", "Classes that a class of the file derives from."),
    "decorator": Kind("Decorators", "What is applied with `@` to a function or a class."),
    "mark": Kind("Marks", "pytest marks that the file sets."),
    "environment variable": Kind("Environment variables", "Variables that the file reads or sets."),
    "call": Kind("API calls", "Imported functions and classes that the file calls, by their full dotted names."),
}
"""All kinds by the word that `Keyword.kind` holds; one use per name and scope is kept, the first."""
