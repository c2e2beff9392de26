"""Run a command and print its wall time in seconds and its peak memory in MB: `python benchmarks/peak.py COMMAND...`.

On Linux a process's peak is never below that of its parent, so this imports nothing large. Of several processes it is
the peak of the largest.
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
    print(json.dumps([elapsed, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3]))
    sys.exit(status)
