"""Has the server run a command: `python client.py SOCKET NAME PROGRAM ARGUMENT...`. Starts in 20 ms.

Exits as the command does. If the server is gone, or Python is called with options, it runs PROGRAM itself instead.
"""

import json
import os
import signal
import socket
import sys


def main() -> None:
    address, name, program, *arguments = sys.argv[1:]
    plain = arguments and (arguments[0] in ("-m", "-c") or not arguments[0].startswith("-"))
    if name == "python" and not plain:
        os.execv(program, [program, *arguments])
    server = socket.socket(socket.AF_UNIX)
    try:
        server.connect(address)
    except OSError:
        os.execv(program, [program, *arguments])
    request = {
        "name": name,
        "program": program,
        "arguments": arguments,
        "environment": dict(os.environ),
        "folder": os.getcwd(),  # noqa: PTH109  # pathlib takes as long to load as all the rest
        "pid": os.getpid(),
    }
    content = json.dumps(request).encode()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _: server.send(bytes([number])))
    socket.send_fds(server, [len(content).to_bytes(8, "big")], [0, 1, 2])
    server.sendall(content)
    status = int(server.recv(16) or b"1")
    if status < 0:
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


main()
