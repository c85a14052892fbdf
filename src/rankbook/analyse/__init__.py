"""What the files say together: imports, inheritance, tests, requirements and relations across the tree."""

from rankbook.analyse.run import analyse, survey

__all__ = ["analyse", "survey"]
