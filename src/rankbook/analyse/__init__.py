"""What the files say together: imports, inheritance, tests, requirements and relations across the tree."""

from rankbook.analyse.draft import Draft
from rankbook.analyse.folders import folders_of
from rankbook.analyse.links import Links, Mentions, called, targets, told_anew
from rankbook.analyse.public import public_names, unknown_modules, unmentioned
from rankbook.analyse.reads import looks_the_same
from rankbook.analyse.relations import relations_of
from rankbook.analyse.run import analyse, survey

__all__ = [
    "Draft",
    "Links",
    "Mentions",
    "analyse",
    "called",
    "folders_of",
    "looks_the_same",
    "public_names",
    "relations_of",
    "survey",
    "targets",
    "told_anew",
    "unknown_modules",
    "unmentioned",
]
