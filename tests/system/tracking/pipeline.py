"""One stage of a tiny pipeline with the real one's files: `python pipeline.py STAGE TASK`."""

import hashlib
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from transformer.core.code import ran_path
from transformer.core.files import write_json
from transformer.core.params import parameters_digest
from transformer.inference.bundle import bundle_digest
from transformer.workflow.recording import record_result
from transformer.workflow.results import find_results, note_times

EPOCHS = 3
DECLARED = {"build_vocab": ("vocab",), "train": ("model", "train"), "figures": ("figures", "train")}
DECLARED |= {"evaluate": ("evaluate", "train")}


def write(path: str, content: Any) -> None:
    text = content if isinstance(content, str) else json.dumps(content, sort_keys=True)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")


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
    write(f"reports/{task}/vocabulary.json", {"size": {"text": 7}})


def train(task: str, params: dict[str, Any]) -> None:
    rate = float(params["train"]["learning_rate"])
    write(f"models/{task}/trained/model.safetensors", f"{rate} {params['train']['layers']}")
    rows = [f"{epoch}\t{epoch * 10}\t{rate / epoch}\n" for epoch in range(1, EPOCHS + 1)]
    write(f"reports/{task}/history.tsv", "epoch\tstep\ttrain_loss\n" + "".join(rows))
    write(f"reports/{task}/training.json", {"epochs": EPOCHS, "train_loss": rate / EPOCHS, "device": "cpu"})


def figures(task: str, params: dict[str, Any]) -> None:
    trained = Path(f"models/{task}/trained/model.safetensors").read_text()
    write(f"reports/{task}/figures/attention_1.svg", f"{trained} {params['figures']['sentences']}")


def evaluate(task: str, params: dict[str, Any]) -> None:
    score = 100 * float(params["train"]["learning_rate"]) + params["evaluate"]["bonus"]
    scores = {"bleu": score, "accuracy": score / 100}
    evaluation = {"validation": scores, "test": scores, "signatures": {"bleu": "v1"}}
    write(f"reports/{task}/evaluation.json", evaluation)
    write(f"reports/{task}/predictions.tsv", "split\tsource\thypothesis\ntest\ta\tb\n")


def export(task: str, params: dict[str, Any]) -> None:
    score = json.loads(Path(f"reports/{task}/evaluation.json").read_text())["validation"]["bleu"]
    metric = {"name": "validation.bleu", "value": score, "higher_is_better": True}
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
    key = find_results(Path.cwd(), "workspace", task).results[task].pipeline.key
    write(f"reports/{task}/report.html", f"the page of {key}")
    write(f"reports/{task}/result.json", {"key": key})
    if params["runtime"]["tracking"]:
        print(record_result(task, params["runtime"]["tracking_seconds"]), flush=True)


def main() -> None:
    stage, task = sys.argv[1:]
    start = time.time()
    content = YAML(typ="safe", pure=True).load(Path("params.yaml").read_text())
    globals()[stage](task, content[task] | content)
    sections = {f"{task}.{name}": content[task][name] for name in DECLARED.get(stage, (stage,)) if stage != "report"}
    ran: dict[str, Any] = {"parameters": parameters_digest(sections), "code": None, "other_versions": []}
    if stage != "report":
        write_json(Path(ran_path(stage, task)), ran)
        note_times(task, stage, start - 1, time.time(), [])


if __name__ == "__main__":
    main()
