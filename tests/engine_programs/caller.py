"""A caller to be killed: starts a program that never ends, and tells who belongs to it."""

import sys
import time

from rankbook import engines
from rankbook.listing import Program

if __name__ == "__main__":
    engine = engines.create(sys.argv[1])
    execution = engine.start(Program("program", "plain_programs:hang_with_family", sys.argv[2], "x.py"))
    print(next(event["pids"] for event in execution.events() if "pids" in event), flush=True)
    time.sleep(1000)
