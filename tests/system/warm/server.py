"""Forks a process for each command that a client requests: `python -I server.py SOCKET PYTHON OWNER`.

PYTHON is the interpreter that forked processes report; the server exits when the process OWNER has.
"""

import atexit
import gc
import importlib
import io
import json
import os
import pickle
import re
import runpy
import select
import signal
import socket
import sys
import threading
import traceback
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

LIBRARIES = (
    *("torch", "numpy", "scipy.stats", "pyarrow.parquet", "tokenizers", "safetensors.torch", "pydantic", "tqdm"),
    *("yaml", "ruamel.yaml", "sklearn.linear_model", "sklearn.metrics", "sacrebleu", "spacy", "matplotlib.figure"),
    *("matplotlib.backends.backend_svg", "matplotlib.backends.backend_agg", "pandas", "jinja2"),
    *("mlflow.tracking", "mlflow.pyfunc", "mlflow.store.tracking.sqlalchemy_store", "mlflow.data"),
    *("mlflow.store.model_registry.sqlalchemy_store", "sqlalchemy.dialects.sqlite.pysqlite", "filelock", "psutil"),
    *("dvc.cli.parser", "dvc.repo", "dvc.repo.reproduce", "dvc.repo.experiments", "dvc.utils.hydra", "dvc.fs"),
    *("dvc_data.index", "dvc_objects.fs.local", "scmrepo.git", "pygit2", "dulwich.repo", "networkx"),
    *("onnx", "onnx.checker", "onnxruntime", "onnxruntime.quantization", "ctranslate2", "ctranslate2.specs"),
    # What those import when they are first used.
    *("torch._dynamo", "torch._decomp.decompositions_for_rng", "matplotlib.style", "vl_convert"),
    *("mlflow.tracing.processor.base_mlflow", "mlflow.store.tracking.sqlalchemy_workspace_store", "alembic.command"),
    *("mlflow.store.model_registry.sqlalchemy_workspace_store", "mlflow.store.tracking.file_store"),
    *("mlflow.system_metrics.system_metrics_monitor", "dvc_studio_client.post_live_metrics", "configobj"),
    *("dvc.repo.datasets", "dvc.repo.plots", "dvc.repo.index", "dvc.repo.graph", "dvc.repo.open_repo", "dvc.dirs"),
    *("dvc.repo.artifacts", "dvc.utils.strictyaml", "dvc.data_cloud", "dvc.render.convert"),
    *("dvc.repo.experiments.queue.celery", "dvc.repo.experiments.executor.local", "dvc_data.hashfile.db.local"),
    *("dulwich.ignore", "dulwich.worktree", "dulwich.porcelain", "fsspec.implementations.memory"),
    *("httpx2", "multiprocess.pool", "pyarrow.dataset", "xxhash"),  # for `datasets`, which reads the environment
)
_OWNER_SECONDS = 2.0


class Request:
    """A client's request, with its open files."""

    def __init__(self, client: socket.socket) -> None:
        size, self.files, *_ = socket.recv_fds(client, 8, 3)
        content, wanted = b"", int.from_bytes(size, "big")
        while len(content) < wanted and (more := client.recv(wanted - len(content))):
            content += more
        self.asked: dict[str, Any] = json.loads(content)

    def take_over(self, python: str) -> None:
        """Make this process like the client's own."""
        for number, file in enumerate(self.files):
            os.dup2(file, number)
        for file in self.files:
            os.close(file)
        with suppress(OSError):  # the terminal may belong to another session
            os.setpgid(0, os.getpgid(self.asked["pid"]))
        os.chdir(self.asked["folder"])
        os.environ.clear()
        os.environ.update(self.asked["environment"])
        sys.executable = python
        importlib.invalidate_caches()

    def run(self) -> None:
        """Run the command as the interpreter would."""
        program, arguments = self.asked["program"], self.asked["arguments"]
        sys.orig_argv = [program, *arguments]
        added = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
        if self.asked["name"] != "python":
            arguments = [program, *arguments]
        first, *rest = arguments
        if first == "-m":
            sys.argv, folder = rest, str(Path.cwd())
        elif first == "-c":
            sys.argv, folder = ["-c", *rest[1:]], ""
        else:
            sys.argv, folder = arguments, str(Path(first).resolve().parent)
        sys.path[:0] = [folder, *added]
        if first == "-m":
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        elif first == "-c":
            exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__", "__builtins__": __builtins__})
        else:
            runpy.run_path(first, run_name="__main__")


def serve(listener: socket.socket, owner: int) -> Request | None:
    """Fork for each client, and report its process's exit status. Returns in forked processes, and None at the end."""
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken)
    clients: dict[int, socket.socket] = {}  # by process id
    commands: dict[int, str] = {}
    while Path(f"/proc/{owner}").exists():
        watched: list[Any] = [listener, wake, *clients.values()]
        ready, _, _ = select.select(watched, [], [], _OWNER_SECONDS)
        if wake in ready:
            os.read(wake, 1 << 16)
            _tell_of_ended(clients, commands)
        for process, client in list(clients.items()):
            if client in ready:
                sent = client.recv(1)
                os.kill(process, sent[0] if sent else signal.SIGKILL)
        if listener in ready:
            client, _ = listener.accept()
            request = Request(client)
            process = os.fork()
            if not process:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                signal.signal(signal.SIGINT, signal.default_int_handler)
                for each in (listener, client, *clients.values()):
                    each.close()
                os.close(wake)
                os.close(woken)
                return request
            for file in request.files:
                os.close(file)
            clients[process] = client
            commands[process] = " ".join((request.asked["name"], *request.asked["arguments"]))[:60]
    return None


def _tell_of_ended(clients: dict[int, socket.socket], commands: dict[int, str]) -> None:
    while clients:
        process, status, used = os.wait4(-1, os.WNOHANG)
        if not process:
            return
        print(f"{used.ru_utime:.2f} s user, {used.ru_stime:.2f} s system: {commands.pop(process)!r}", flush=True)
        client = clients.pop(process)
        with suppress(OSError):  # the client has gone
            client.send(str(os.waitstatus_to_exitcode(status)).encode())
        client.close()


def main() -> None:
    address, python, owner = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in LIBRARIES:
        try:
            importlib.import_module(name)
        except ImportError as error:
            print(error, file=sys.stderr, flush=True)
    _leave_exit_alone()
    _handle_locks_fast()
    _draw()
    _map_packages()
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{address}.starting")
        listener.listen(64)
        Path(f"{address}.starting").rename(address)
        request = serve(listener, int(owner))
        if request is None:
            Path(address).unlink()
    if request is not None:
        request.take_over(python)
        _end(_status(request))


def _leave_exit_alone() -> None:
    """Spare forked processes the end of what libraries made when they were imported, half the CPU of a short one."""
    for each in list(weakref.finalize._registry):  # type: ignore[attr-defined]
        each.atexit = False
    dynamo = sys.modules.get("torch._dynamo.utils")
    if dynamo is not None:
        atexit.unregister(dynamo.dump_compile_times)


def _draw() -> None:
    """Have Matplotlib find its fonts and build its parser of formulas, which takes half a second."""
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    figure.subplots().set_xscale("log")
    figure.savefig(io.BytesIO(), format="svg")


def _map_packages() -> None:
    """Have MLflow find which modules each installed package has, which takes a second of every logged model."""
    from mlflow.utils import requirements_utils

    requirements_utils._init_packages_to_modules_map()


def _handle_locks_fast() -> None:
    """Have DVC read a dvc.lock, which has no comments to keep, in C, and write the entries that it holds as they were.

    The same bytes, sooner: DVC reads and writes the whole file in pure Python after each stage.
    """
    from dvc.utils.serialize import _yaml

    parse, dump = _yaml.parse_yaml_for_update, _yaml._dump
    texts: dict[str, str] = {}
    """By a stage's name and entry."""
    contents: dict[str, bytes] = {}
    """By the text that was last written."""

    def parse_lock(text: str, path: Any) -> Any:
        if Path(path).name != "dvc.lock":
            return parse(text, path)
        if text in contents:
            return pickle.loads(contents[text])
        content = _yaml.parse_yaml(text, path)
        entries = re.split(r"^(?=  \S)", text, flags=re.MULTILINE)[1:]
        texts.update(zip(map(json.dumps, content.get("stages", {}).items()), entries, strict=True))
        return content

    def dump_lock(content: Any, stream: Any) -> None:
        if content.keys() != {"schema", "stages"} or not content["stages"]:
            dump(content, stream)
            return
        written = f"schema: '{content['schema']}'\nstages:\n"
        for name, entry in content["stages"].items():
            key = json.dumps((name, entry))
            if key not in texts:
                dump({"stages": {name: entry}}, alone := io.StringIO())
                texts[key] = alone.getvalue().removeprefix("stages:\n")
            written += texts[key]
        contents.clear()
        contents[written] = pickle.dumps(content)
        stream.write(written)

    _yaml.parse_yaml_for_update, _yaml._dump = parse_lock, dump_lock


def _status(request: Request) -> int:
    """Run the command; returns the exit status, and prints errors as the interpreter would."""
    try:
        request.run()
    except SystemExit as end:
        if isinstance(end.code, int | None):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _end(status: int) -> None:
    """Exit like the interpreter, but without tearing down the libraries, which takes 0.4 s."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            status = status or 120
    os._exit(status)


main()
