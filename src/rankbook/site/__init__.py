"""The site: generated pages in the shell that an engine has built, with what only the ledger knows.

Each module is imported by itself: a build that finds nothing changed needs few of them.
"""
