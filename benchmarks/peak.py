"""Run a command and print its wall time in seconds and its peak memory in MB: `python benchmarks/peak.py COMMAND...`.

A script without imports from this project: on Linux a process's peak is never below that of its parent, and the parent
of this one may be large. For a command with several processes it is the peak of the largest.
"""

import json
import resource
import subprocess
import sys
import time

if __name__ == "__main__":
    started = time.perf_counter()
    status = subprocess.run(sys.argv[1:], stdout=sys.stderr, check=False).returncode
    elapsed = time.perf_counter() - started
    unit = 1e6 if sys.platform == "darwin" else 1e3  # bytes there, KiB elsewhere
    print(json.dumps([elapsed, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / unit]))
    sys.exit(status)
