"""Start a process of an engine: `python -m rankbook.engines ROLE ARGUMENT...`; for engines only.

Nothing is defined here, because a program's main process empties this very module and makes it its own `__main__`.
"""

from rankbook.engines.roles import main

main()
