"""The kinds of keyword: one row per kind, in the order in which keyword pages show them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of keyword."""

    heading: str
    """Plural, as a heading says it."""
    description: str
    """What an entry of it is, in one line."""


KINDS: dict[str, Kind] = {
    "class": Kind("Classes", "Where a class is defined."),
    "test": Kind("Tests", "Functions and methods that a test runner collects."),
    "fixture": Kind("Fixtures", "Functions that pytest calls to prepare a test."),
    "function": Kind("Functions", "Where a function outside a class is defined."),
    "method": Kind("Methods", "Where a function inside a class is defined."),
    "import": Kind("Imports", "Modules and names that the file imports, by their full dotted names."),
    "constant": Kind("Constants", "Names assigned at the level of the module or of a class."),
    "base class": Kind("Base classes", "Classes that a class of the file derives from."),
    "decorator": Kind("Decorators", "What is applied with `@` to a function or a class."),
    "mark": Kind("Marks", "pytest marks that the file sets."),
    "environment variable": Kind("Environment variables", "Variables that the file reads or sets."),
    "call": Kind("API calls", "Imported functions and classes that the file calls, by their full dotted names."),
}
"""All kinds by the word that `Keyword.kind` holds; one use per name and scope is kept, the first."""
