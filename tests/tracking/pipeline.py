"""One stage of a tiny pipeline with the real one's files and observer: `python pipeline.py STAGE TASK`."""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from transformer.core.digest import sign
from transformer.export.converted import bundle_digest
from transformer.results.chain import chains_in_lock
from transformer.results.place import made_from

EPOCHS = 3
DECLARED = {
    "download": ("download",),
    "build_vocab": ("vocab",),
    "train": ("model", "train", "hardware"),
    "evaluate": ("train", "evaluate", "hardware"),
    "export": ("export",),
}


def write(path: str, content: Any) -> None:
    text = content if isinstance(content, str) else json.dumps(content, sort_keys=True)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")


def learning_rate(params: dict[str, Any]) -> float:
    return float(params["train"]["learning_rate"])


def download(task: str, params: dict[str, Any]) -> None:
    rows = {split: f"{split} {params['download']['seed']}\n" for split in ("train", "validation", "test")}
    for split, text in rows.items():
        write(f"data/{task}/corpus/{split}.jsonl", text)
    digests = {split: hashlib.sha256(text.encode()).hexdigest() for split, text in rows.items()}
    origin = {"source": "sample", "rows": dict.fromkeys(rows, 1), "sha256": digests}
    write(f"data/{task}/corpus/provenance.json", origin)


def tokenize(task: str, params: dict[str, Any]) -> None:
    write(f"data/{task}/tokens/pretokenizer.json", params["tokenize"])


def build_vocab(task: str, params: dict[str, Any]) -> None:
    write(f"data/{task}/vocab/text/tokenizer.json", params["vocab"])
    write(f"data/{task}/encoded/train/text.ids.npy", Path(f"data/{task}/corpus/train.jsonl").read_text())
    write(f"reports/{task}/vocabulary.json", {"size": {"text": 7}})


def train(task: str, params: dict[str, Any]) -> None:
    rate = learning_rate(params)
    write(f"models/{task}/trained/model.safetensors", f"{rate} {params['train']['layers']}")
    rows = [f"{epoch}\t{epoch * 10}\t{rate / epoch}\n" for epoch in range(1, EPOCHS + 1)]
    write(f"reports/{task}/history.tsv", "epoch\tstep\ttrain_loss\n" + "".join(rows))
    write(f"reports/{task}/training.json", {"epoch": EPOCHS, "train_loss": rate / EPOCHS, "device": "cpu"})


def figures(task: str, params: dict[str, Any]) -> None:
    trained = Path(f"models/{task}/trained/model.safetensors").read_text()
    write(f"reports/{task}/figures/attention_1.svg", f"{trained} {params['figures']['sentences']}")


def evaluate(task: str, params: dict[str, Any]) -> None:
    score = 100 * learning_rate({"train": json.loads(Path(f"reports/{task}/training.json").read_text())} | params)
    figures = {"validation": {"score": score + params["evaluate"]["bonus"]}, "signatures": {"score": "v1"}}
    write(f"reports/{task}/evaluation.json", figures)
    write(f"reports/{task}/predictions.tsv", "source\thypothesis\na\tb\n")
    write(f"reports/{task}/plots/curve.tsv", "x\ty\n1\t2\n")


def export(task: str, params: dict[str, Any]) -> None:
    score = json.loads(Path(f"reports/{task}/evaluation.json").read_text())["validation"]["score"]
    metric = {"name": "validation.score", "value": score, "higher_is_better": True}
    decoding = {"method": "beam", "beam_size": 4, "n_best": 1}
    write(f"models/{task}/bundle/config.json", {"task": task, "main_metric": metric, "decoding": decoding})
    write(f"models/{task}/bundle/pretokenizer.json", {})


def convert(task: str, params: dict[str, Any]) -> None:
    shutil.rmtree(f"models/{task}/converted", ignore_errors=True)
    Path(f"models/{task}/converted").mkdir()
    digest, weights = bundle_digest(Path(f"models/{task}/bundle")), str(params["convert"])
    for engine in params["convert"]["formats"]:
        write(f"models/{task}/converted/{engine}/config.json", {"engine": engine, "made_from": digest})
        write(f"models/{task}/converted/{engine}/model/weights", weights)
    sizes = {engine: {"bytes": len(weights)} for engine in params["convert"]["formats"]}
    write(f"reports/{task}/conversion.json", sizes | {"other": {"refused": "cannot hold it"}})


def report(task: str, params: dict[str, Any]) -> None:
    chain = next(chain for chain in chains_in_lock(Path("dvc.lock").read_bytes()) if chain.task == task)
    names = {"row": chain.row_key(), "made-from": made_from(Path(), chain)}
    write(f"reports/{task}/report.html", "".join(f'<meta name="{n}" content="{text}">' for n, text in names.items()))


def main() -> None:
    stage, task = sys.argv[1:]
    content = YAML(typ="safe", pure=True).load(Path("params.yaml").read_text())
    observer = None
    if content["runtime"]["tracking"]:
        command = [sys.executable, "-m", "transformer.tracking.live", task, stage]
        observer = subprocess.Popen(command, stdin=subprocess.PIPE)
    globals()[stage](task, content[task])
    declared = {name: name if name == "hardware" else f"{task}.{name}" for name in DECLARED.get(stage, ())}
    sign(stage, task, {path: (content | content[task])[name] for name, path in declared.items()})
    if observer is not None:
        values = {"live_loss": 0.5, "tokens_per_second": 7.0}
        points = {"event": "metrics", "step": 1, "time": 1, "values": values}
        end = {"event": "end", "status": "FINISHED"}
        observer.communicate("".join(json.dumps(event) + "\n" for event in (points, end)).encode())


if __name__ == "__main__":
    main()
