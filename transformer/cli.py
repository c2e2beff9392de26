"""The console command `transformer`, described by `transformer --help`."""

import argparse
import codecs
import os
import sys
from errno import ENOSPC, EPIPE
from pathlib import Path
from typing import Any, TextIO

from transformer.core.errors import OUT_OF_MEMORY, UserError, is_out_of_memory, printable, unusable
from transformer.core.process import limit_openmp_spin
from transformer.core.task import ENGINES, families, task_names, tasks_of

_PACKAGE = Path("transformer", "cli.py")
_RUNNING = Path(__file__).parents[1] / _PACKAGE


def find_workspace(folder: Path) -> Path:
    """Return the nearest folder, from `folder` upwards, with a `.dvc` and a dvc.yaml; `folder` itself if none has."""
    return next((each for each in (folder, *folder.parents) if _is_root(each)), folder)


def enter_workspace() -> None:
    """Change to the workspace. Paths on the command line must have been resolved by `given_path` before."""
    os.chdir(find_workspace(Path.cwd()))


def run_own_code() -> None:
    """Restart the command with the workspace's code if it runs another's.

    An environment has the command of the clone that it was made in. In another clone, or a worktree, DVC's stages run
    the code of that one.
    """
    workspace = find_workspace(Path.cwd())
    if (workspace / _PACKAGE).is_file() and not (workspace / _PACKAGE).samefile(_RUNNING):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(workspace), os.environ.get("PYTHONPATH"))))
        os.execv(sys.executable, (sys.executable, "-P", "-m", "transformer", *sys.argv[1:]))


def require_workspace() -> None:
    """Raise UserError if the working directory is not a workspace."""
    here = Path.cwd()
    if not _is_root(here):
        raise UserError(
            f"{here} is not in a clone of this project (no .dvc and dvc.yaml, here or above): change to one"
        )


def given_path(text: str) -> Path:
    """Resolve a path from the command line against the user's folder; - stays as it is."""
    path, here = Path(text), Path.cwd()
    return path if text == "-" or find_workspace(here) == here else here / path


def _is_root(folder: Path) -> bool:
    return (folder / ".dvc").is_dir() and (folder / "dvc.yaml").is_file()


_SHOWN = 3  # changes of a stage


def use_utf8() -> None:
    """Restart the command in Python's UTF-8 mode unless arguments, file names and output are UTF-8, as in any locale.

    Otherwise a C locale would read arguments as ASCII, and print answers as it can.
    """
    encodings = [
        sys.getfilesystemencoding(),
        *(getattr(stream, "encoding", None) for stream in (sys.stdout, sys.stderr)),
    ]
    if {codecs.lookup(name).name for name in encodings if name} != {"utf-8"}:
        os.environ.update(PYTHONUTF8="1", PYTHONIOENCODING="utf-8")
        os.execv(sys.executable, (sys.executable, "-X", "utf8", *sys.orig_argv[1:]))


def main() -> None:
    """Run one command in UTF-8, with the code of the clone that the user is in."""
    use_utf8()
    run_own_code()
    run_command()


def run_command() -> None:
    """Run one command; a UserError becomes one line on stderr and exit status 1."""
    limit_openmp_spin()
    try:
        arguments = _parser().parse_args()
        enter_workspace()
        if not arguments.anywhere:
            require_workspace()
        arguments.run(arguments)
        sys.stdout.flush()
    except UserError as error:
        sys.exit(f"error: {error}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "transformer":
            raise
        sys.exit(f"error: this command needs {error.name}, which is not installed: install the extra `workflow` too")
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        sys.exit(f"error: {OUT_OF_MEMORY}")
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        if error.filename is not None:  # not a stream
            sys.exit(f"error: {unusable(error)}")
        if error.errno not in (EPIPE, ENOSPC):  # the reader has closed the pipe, or the disk is full
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python would complain again at exit
        sys.exit(1 if error.errno == EPIPE else f"error: the output cannot be written: {error.strerror}")
    except Exception as error:
        dvc = sys.modules.get("dvc.exceptions")  # used by few commands
        if dvc is None or not isinstance(error, dvc.DvcException):
            raise
        sys.exit(f"error: DVC says: {printable(' '.join(str(error).split()))}")


def _say(line: str, stream: TextIO | None = None) -> None:
    """Print a message, on stdout by default."""
    print(printable(line), file=stream, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="transformer", description="Train-your-own Transformers.")
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    parser.set_defaults(anywhere=False)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for family in families().values():
        for name, text in family.commands:
            command = commands.add_parser(name, help=text, description=text)
            _add_asking(command, family.name, name)
            family.command_line().add_options(command, name)
    attention = commands.add_parser(
        "attention", help="show what a model attends to in one text, in the terminal or as a file"
    )
    attention.add_argument("text", metavar="TEXT")
    _add_model(attention, "seq2seq")
    attention.add_argument("-d", "--device", default="auto", choices=("auto", "cpu", "cuda", "mps"))
    attention.add_argument("--map", help="name of the attention map to show; default: the model's first")
    attention.add_argument("--layers", default="last", choices=("last", "all"), help="default: %(default)s")
    attention.add_argument("-o", "--output", type=given_path, help="a .png or .svg file to write")
    attention.set_defaults(run=_attention, anywhere=True)
    compare = commands.add_parser("compare", help="show how two results differ: parameters, data, code and scores")
    compare.add_argument("first", metavar="A", help="a commit, experiment, MLflow run, or `workspace`")
    compare.add_argument("second", metavar="B", nargs="?", default="workspace", help="like A; default: %(default)s")
    compare.add_argument("--task", choices=task_names(), help="only this task; default: every task that both have")
    compare.add_argument("--samples", type=int, default=1000, help="bootstrap samples; default: %(default)s; 0: none")
    compare.add_argument("--markdown", action="store_true", help="print Markdown, for a pull request or a note")
    compare.set_defaults(run=_compare)
    verify = commands.add_parser("verify", help="compute a commit's results again, and compare every byte")
    verify.add_argument("commit", nargs="?", default="HEAD", metavar="COMMIT", help="default: %(default)s")
    verify.add_argument(
        "--task", choices=task_names(), help="only this task, and what it needs of others; default: all"
    )
    verify.set_defaults(run=_verify)
    accept = commands.add_parser("accept", help="record a change of code that cannot matter")
    accept.add_argument("stage", nargs="?", metavar="STAGE", help="such as train@translation; default: all")
    accept.set_defaults(run=_accept)
    check = commands.add_parser("check", help="validate params.yaml, and say which stages would run, and why")
    check.add_argument("path", nargs="?", type=given_path, help="a file of parameters to validate alone")
    check.set_defaults(run=_check, anywhere=True)
    parameters = commands.add_parser("parameters", help="what each parameter means, its value and what it may be")
    parameters.add_argument("prefix", nargs="?", default="", metavar="PREFIX", help="such as translation.train")
    parameters.add_argument("--markdown", action="store_true", help="as tables")
    parameters.set_defaults(run=_parameters)
    profile = commands.add_parser("profile", help="write params.yaml from profiles/default.yaml and NAME.yaml")
    profile.add_argument("name", nargs="?", metavar="NAME", help="such as `default`; with --data, the one in place")
    profile.add_argument("--data", type=given_path, help="a folder with local corpora (multi30k/, imdb/)")
    profile.set_defaults(run=_profile)
    corpus = commands.add_parser(
        "new-corpus", help="look at a folder of files, and write a profile with the parameters that fit"
    )
    corpus.add_argument("path", type=given_path, metavar="PATH", help="the folder with train and, if any, val and test")
    corpus.add_argument("--name", help="of the profile; default: the folder's")
    corpus.add_argument(
        "--columns", nargs=2, metavar="OURS=THEIRS", help="as in `label=stars text=review` or `de=source en=target`"
    )
    corpus.add_argument(
        "--quotes", choices=("csv", "none"), default="csv", help="what quotation marks in tables mean: `none`, text"
    )
    corpus.set_defaults(run=_new_corpus)
    commands.add_parser("sync", help="write every result that DVC tracks to MLflow").set_defaults(run=_sync)
    report = commands.add_parser("report", help="write reports/TASK/report.html for the results in the workspace")
    report.add_argument("--task", choices=task_names(), help="only this task; default: every task with a result")
    report.set_defaults(run=_report)
    ui = commands.add_parser("ui", help="serve MLflow's UI with all results, to this machine only")
    ui.add_argument("--port", type=int, default=5000, help="default: %(default)s")
    ui.set_defaults(run=_ui)
    serve = commands.add_parser("serve", help="serve a registered model by HTTP, with a page to try it")
    serve.add_argument("--task", choices=task_names(), default=tasks_of("seq2seq")[0], help="default: %(default)s")
    serve.add_argument(
        "-m",
        "--model",
        type=_given_model,
        help="such as models:/NAME@best, or a folder; default: the workspace's result of the task",
    )
    serve.add_argument("--port", type=int, default=5001, help="default: %(default)s")
    serve.add_argument(
        "--host", default="127.0.0.1", help="default: %(default)s, this machine only; others need the printed token"
    )
    serve.set_defaults(run=_serve)
    summary = commands.add_parser("summary", help="print the main metrics and where to find more")
    summary.add_argument("--task", choices=task_names(), help="only this task; default: all")
    summary.set_defaults(run=_summary)
    return parser


def _add_asking(command: argparse.ArgumentParser, family: str, name: str) -> None:
    """Add the arguments of every command that queries an exported model."""
    command.add_argument("texts", nargs="*", metavar="TEXT", help="input texts; default: lines of FILE or stdin")
    command.add_argument("-f", "--file", type=given_path, help="a UTF-8 file, one text per line; - for stdin")
    _add_model(command, family)
    command.add_argument("-d", "--device", default="auto", choices=("auto", "cpu", "cuda", "mps"))
    command.add_argument("-e", "--engine", choices=ENGINES, help="what computes; default: what the model is of, torch")
    command.set_defaults(run=_ask, family=family, command=name, anywhere=True)


def _add_model(command: argparse.ArgumentParser, family: str) -> None:
    """Add `--model`; default: the bundle of the family's only task."""
    tasks = tasks_of(family)
    if len(tasks) > 1:
        bundles = " or ".join(f"models/{task}/bundle" for task in tasks)
        command.add_argument("-m", "--model", type=given_path, required=True, help=f"such as {bundles}")
        return
    own = Path("models", tasks[0] if tasks else family, "bundle")
    command.add_argument("-m", "--model", type=given_path, default=own, help="default: %(default)s")


class _Version(argparse.Action):
    """Unlike argparse's own action, reads the version only when asked: that takes as long as all of --help."""

    def __call__(self, parser: argparse.ArgumentParser, *given: Any) -> None:
        from importlib.metadata import version

        print(f"transformer {version('transformer')}")
        parser.exit()


def _ask(arguments: argparse.Namespace) -> None:
    from transformer.commands.ask import ask

    ask(arguments)


def _attention(arguments: argparse.Namespace) -> None:
    from transformer.commands.ask import opened, show_attention

    show_attention(lambda: opened(arguments), arguments)


def _compare(arguments: argparse.Namespace) -> None:
    from transformer.workflow.compare import differences, lines
    from transformer.workflow.results import find_results

    if arguments.samples < 0:
        raise UserError(f"--samples ({arguments.samples}) must be 0 or more")
    first, second = (find_results(Path.cwd(), name, arguments.task) for name in (arguments.first, arguments.second))
    wanted = [arguments.task] if arguments.task else task_names()
    pairs = [(first.results[t], second.results[t]) for t in wanted if t in first.results and t in second.results]
    for line in (found.partial[task] for found in (first, second) for task in wanted if task in found.partial):
        _say(line, sys.stderr)
    for line in filter(None, (result.warning() for pair in pairs for result in pair)):
        _say(line, sys.stderr)
    if not pairs:
        raise UserError(f"{arguments.first} and {arguments.second} have no results for the same task: run `dvc repro`")
    wrong = []
    for one, two in pairs:
        try:
            found = differences(one, two, samples=arguments.samples)
        except UserError as error:  # such as files of this task alone that are not dvc.lock's
            wrong.append(str(error))
            continue
        for line in lines(found, one.name, two.name, markdown=arguments.markdown):
            print(line)
        print()
    if wrong:
        raise UserError("; ".join(dict.fromkeys(wrong)))


def _verify(arguments: argparse.Namespace) -> None:
    from transformer.workflow.reproduction import verify

    verify(Path.cwd(), arguments.commit, arguments.task, echo=_say)


def _check(arguments: argparse.Namespace) -> None:
    from transformer.commands.check import check_params
    from transformer.workflow.results import stale_stages

    path = arguments.path or Path("params.yaml")
    check_params(path)
    _say(f"{path}: all parameters are valid")
    if arguments.path is not None:
        return
    stale = stale_stages(Path.cwd())
    for stage, changed in stale.items():
        _say(f"{stage}: {', '.join(changed[:_SHOWN])}{f' and {len(changed) - _SHOWN} more' * (len(changed) > _SHOWN)}")
    if stale:
        raise UserError(f"{len(stale)} stages are not up to date: run `dvc repro`")
    print("every stage is up to date")


def _accept(arguments: argparse.Namespace) -> None:
    from transformer.commands.accept import accept

    accepted = accept(Path.cwd(), arguments.stage)
    for stage in accepted:
        print(f"{stage}: accepted")
    if not accepted:
        print("nothing to accept: dvc.lock is up to date with the code")


def _parameters(arguments: argparse.Namespace) -> None:
    from transformer.commands.parameters import as_markdown, as_text, parameters
    from transformer.core.params import read_params

    every = parameters(read_params(Path("params.yaml")))
    found = [each for each in every if each.path.startswith(arguments.prefix)]
    if not found:
        raise UserError(f"no parameter starts with `{arguments.prefix}`: `transformer parameters` lists all of them")
    print(as_markdown(found) if arguments.markdown else as_text(found), end="")


def _profile(arguments: argparse.Namespace) -> None:
    from transformer.commands.profiles import use_profile

    print(use_profile(Path.cwd(), arguments.name, arguments.data))


def _new_corpus(arguments: argparse.Namespace) -> None:
    from transformer.commands.new_corpus import new_corpus

    given = {"name": arguments.name, "columns": arguments.columns, "quotes": arguments.quotes}
    for line in new_corpus(Path.cwd(), arguments.path, **given):
        _say(line)


def _sync(arguments: argparse.Namespace) -> None:
    from transformer.workflow.mlflow import in_words
    from transformer.workflow.sync import sync

    try:
        written = sync(Path.cwd(), echo=lambda line: _say(line, sys.stderr))
    except UserError:
        raise
    except Exception as error:  # the boundary: MLflow, its database, DVC and the connection raise their own errors
        raise UserError(f"not all runs written: {in_words(error)}; fix that, then sync again") from error
    print(f"{written} runs written")


def _ui(arguments: argparse.Namespace) -> None:
    from transformer.commands.serve import show

    show(Path.cwd(), task_names(), arguments.port)


def _serve(arguments: argparse.Namespace) -> None:
    from transformer.commands.serve import serve

    serve(Path.cwd(), arguments.task, arguments.model, arguments.host, arguments.port)


def _given_model(text: str) -> str:
    """Return the URI, or the path, relative to the folder the user is in."""
    return text if ":/" in text else str(given_path(text))


def _report(arguments: argparse.Namespace) -> None:
    from transformer.reporting.page import write_page
    from transformer.workflow.results import WORKSPACE, find_results

    own = find_results(Path.cwd(), WORKSPACE, arguments.task)
    for task in [arguments.task] if arguments.task else own.results:
        _say(str(write_page(Path.cwd(), task)))
    if not arguments.task and own.partial:
        raise UserError("; ".join(own.partial.values()))


def _summary(arguments: argparse.Namespace) -> None:
    from transformer.commands.summary import print_summary

    print_summary(Path.cwd(), arguments.task)


if __name__ == "__main__":  # python -m transformer.cli
    main()
