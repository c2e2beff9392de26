"""What the models for long texts are for: `python -m benchmarks.long_texts copy|border|memory|generation|length|depth`.

copy: Reformer's table 2, trained and evaluated with several rounds of hashing. border: a copy across segments.
memory: the loss of a trained Transformer-XL by the length of its memory, and with the same seconds of training without
one; DATA's tiny Shakespeare. generation: tokens per second with a memory and without. length: seconds and memory of a
training step by length, with hashing and without. depth: its memory by the number of layers.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.families.language.interface import LanguageConfig
from transformer.families.language.network import LanguageNetwork
from transformer.families.language.networks import build_network, use
from transformer.families.language.transformer_xl import TransformerXL

_COMMON: dict[str, Any] = {
    "objective": "causal", "d_model": 128, "heads": 4, "head_dim": None, "d_ff": 256, "layers": 1, "dropout": 0.0,
    "attention_dropout": 0.0, "activation_dropout": 0.0, "activation": "relu", "norm": "pre", "max_length": 128,
    "embedding_init": "normal", "residual_init": "xavier", "scale_embeddings": False, "output": "plain",
}  # fmt: skip
_REFORMER: dict[str, Any] = {
    "kind": "reformer", "positions": "learned", "buckets": 16, "hash_rounds": 1, "chunk_length": 16, "hash_seed": 1,
    "feed_forward_chunk": None,
}  # fmt: skip
_XL: dict[str, Any] = {"kind": "transformer_xl", "memory_length": 32, "same_length": False, "clamp_length": None}
_PLAIN: dict[str, Any] = {"kind": "transformer", "positions": "learned"}
_RETURNED = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
"""Freed memory goes back at once: else the C library's fragments would be measured. It costs half of the time."""
_SYMBOLS, _FULL = 128, "full"
_ROUNDS = (0, 8, 4, 2, 1)


def network(size: int = _SYMBOLS, **params: Any) -> LanguageNetwork:
    """Make a network of `size` symbols; 0 is padding, which does not occur."""
    torch.manual_seed(1)
    given = {"model": _COMMON | params, "size": size, "pad_id": 0, "mask_id": size, "vocabulary_sha256": "0" * 64}
    return build_network(LanguageConfig.model_validate(given))


def fit(model: LanguageNetwork, losses: Iterable[Callable[[], Tensor]], rate: float) -> int:
    """Train on a loss per update, with a warmup of 100; returns the number of updates."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.99), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 100))
    updates = 0
    model.train()
    for loss in losses:
        optimizer.zero_grad()
        loss().backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        updates += 1
    model.eval()
    return updates


def words(count: int, length: int, random: torch.Generator) -> Tensor:
    """Draw words (B, n) of symbols from 2 on; 1 is the separator."""
    return torch.randint(2, _SYMBOLS, (count, length), generator=random)


def copies(count: int, length: int, random: torch.Generator) -> Tensor:
    """Draw 0w0w (B, length), with the separator for 0."""
    word, separator = words(count, length // 2 - 1, random), torch.ones(count, 1, dtype=torch.int64)
    return torch.cat((separator, word, separator, word), dim=1)


def second_half(model: LanguageNetwork, ids: Tensor) -> tuple[Tensor, Tensor]:
    """Return the logits of the second w, and its symbols."""
    half = ids.shape[1] // 2
    return model.logits(model(ids)[:, half:-1]).flatten(0, 1), ids[:, half + 1 :].flatten()


def copy(updates: int, length: int) -> None:
    """Print the share of symbols copied right, in percent, by the rounds in training and in evaluation."""
    print(f"0w0w of length {length}, {updates} updates; rows: rounds in training, columns: in evaluation")
    print("trained\t" + "\t".join(str(each or _FULL) for each in _ROUNDS), flush=True)
    for trained in (0, 4, 2, 1):
        own = _REFORMER | {"hash_rounds": trained, "max_length": length, "buckets": length // 8}
        model, random = network(**own), torch.Generator().manual_seed(2)

        def loss(model: LanguageNetwork = model, random: torch.Generator = random) -> Tensor:
            return F.cross_entropy(*second_half(model, copies(32, length, random)))

        fit(model, repeat(loss, updates), rate=1e-3)
        shares, held_out = [], copies(200, length, torch.Generator().manual_seed(3))
        for rounds in _ROUNDS:
            use(model, memory_length=None, hash_rounds=rounds)
            with torch.inference_mode():
                logits, wanted = second_half(model, held_out)
            shares.append(100 * float((logits.argmax(dim=-1) == wanted).float().mean()))
        print(f"{trained or _FULL}\t" + "\t".join(f"{share:.1f}" for share in shares), flush=True)


def border(updates: int, length: int) -> None:
    """Print the share of symbols of a second segment that repeat the first, with a memory and without."""
    for memory in (length, 0):
        model = network(**(_XL | {"memory_length": memory, "max_length": length, "layers": 2}))
        assert isinstance(model, TransformerXL)
        random = torch.Generator().manual_seed(2)

        def second(word: Tensor, model: TransformerXL = model) -> tuple[Tensor, Tensor]:
            _, before = model.segment(word, None)
            states, _ = model.segment(word, before)
            return model.logits(states[:, :-1]).flatten(0, 1), word[:, 1:].flatten()

        def loss(random: torch.Generator = random) -> Tensor:
            return F.cross_entropy(*second(words(32, length, random)))

        fit(model, repeat(loss, updates), rate=1e-3)
        with torch.inference_mode():
            logits, wanted = second(words(200, length, torch.Generator().manual_seed(3)))
        right = 100 * float((logits.argmax(dim=-1) == wanted).float().mean())
        print(
            f"segments of {length}, memory {memory}: {right:.1f} % right (chance {100 / (_SYMBOLS - 2):.1f})",
            flush=True,
        )


def _characters(data: Path) -> tuple[Tensor, Tensor, int]:
    """Return the ids of the first 90 % of tiny Shakespeare, of the last 10 %, and the number of symbols."""
    text = (data / "shakespeare" / "input.txt").read_text(encoding="utf-8")
    symbols = {letter: number for number, letter in enumerate(sorted(set(text)), start=1)}
    ids = torch.tensor([symbols[letter] for letter in text])
    train = int(0.9 * len(ids))
    return ids[:train], ids[train:], len(symbols) + 1


def _streamed(ids: Tensor, streams: int, length: int) -> list[Tensor]:
    """Return the segments (B, T + 1) of parallel streams, in order; the last id of each is the next one's first."""
    rows = ids[: len(ids) // streams * streams].view(streams, -1)
    return [rows[:, start : start + length + 1] for start in range(0, rows.shape[1] - 1, length)]


def _read(model: LanguageNetwork, rows: Tensor, memory: Any) -> tuple[Tensor, Any]:
    """Return the mean loss of a segment (B, T + 1), and the memory after it."""
    states, memory = (
        model.segment(rows[:, :-1], memory) if isinstance(model, TransformerXL) else (model(rows[:, :-1]), None)
    )
    return F.cross_entropy(model.logits(states).flatten(0, 1), rows[:, 1:].flatten()), memory


def _loss(model: LanguageNetwork, ids: Tensor, length: int) -> float:
    """Return nats per character of ids, read as eight streams."""
    memory, total, count = None, 0.0, 0
    with torch.inference_mode():
        for rows in _streamed(ids, 8, length):
            loss, memory = _read(model, rows, memory)
            total += loss.item() * (rows.numel() - len(rows))
            count += rows.numel() - len(rows)
    return total / count


def memory(data: Path, seconds: float) -> None:
    """Print nats per character by the length of the memory, and without one after the same seconds of training."""
    train, held_out, size = _characters(data)
    shared = {"layers": 4, "d_ff": 512, "activation": "gelu", "max_length": 32, "residual_init": "scaled"}
    rows = _streamed(train, 32, 32)
    for name, own in {
        "plain": _PLAIN,
        "memory of 0": _XL | {"memory_length": 0},
        "memory of 64": _XL | {"memory_length": 64, "clamp_length": 64},
    }.items():
        model = network(size, **(own | shared))

        def losses(model: LanguageNetwork = model) -> Iterator[Callable[[], Tensor]]:
            started = time.monotonic()
            while True:
                before: Any = None
                for given in rows:
                    if time.monotonic() - started > seconds:
                        return

                    def loss(given: Tensor = given) -> Tensor:
                        nonlocal before
                        found, before = _read(model, given, before)
                        return found

                    yield loss

        updates = fit(model, losses(), rate=1e-3)
        print(f"{name}: {updates} updates in {seconds:.0f} s, {_loss(model, held_out, 32):.4f} nats", flush=True)
        if isinstance(model, TransformerXL) and model.memory_length:
            for length in (0, 32, 64, 128, 256, 512):
                use(model, memory_length=length, hash_rounds=None)
                print(f"  evaluated with a memory of {length}: {_loss(model, held_out, 32):.4f} nats", flush=True)


def _rate(step: Callable[[], Any]) -> float:
    """Return how often per second a step can be done: the median of 20."""
    times = []
    for _ in range(20):
        started = time.perf_counter()
        step()
        times.append(time.perf_counter() - started)
    return 1 / statistics.median(times)


def generation() -> None:
    """Print tokens per second over a text's length: with keys and values of the memory, and reading a window again."""
    own = _XL | {"memory_length": 512, "max_length": 64, "layers": 4, "d_ff": 512}
    model = network(**own).eval()
    assert isinstance(model, TransformerXL)
    window = own["memory_length"] + own["max_length"]
    ids = words(1, 4000, torch.Generator().manual_seed(1))
    print("length\twith memory\twindow read again\tratio   (tokens/s)")
    with torch.inference_mode():
        for length in (100, 500, 1000, 4000):
            cache = model.start(ids[:, :length])
            again = partial(model, ids[:, max(0, length - window) : length])
            rates = [_rate(partial(model.step, ids[:, 0], cache)), _rate(again)]
            print(f"{length}\t{rates[0]:.0f}\t{rates[1]:.1f}\t{rates[0] / rates[1]:.0f}", flush=True)


def _measured(size: int, rounds: int, layers: int, **environment: str) -> list[float]:
    """Return the seconds of a training step and its process's peak memory in MB; -1 rounds: a plain Transformer."""
    command = [sys.executable, "-m", "benchmarks.long_texts", "step", "--one", str(size), str(rounds), str(layers)]
    ran = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | environment)
    found: list[float] = json.loads(ran.stdout)
    return found


def length() -> None:
    """Print seconds and peak memory of a training step by length, with hashing and without."""
    print("length\tfull: s, MB\thashed, 2 rounds: s, MB")
    for size in (256, 512, 1024, 2048, 4096, 8192):
        found = [_measured(size, rounds, 2) for rounds in (0, 2)]
        print(f"{size}\t" + "\t".join(f"{seconds:.2f}, {peak:.0f}" for seconds, peak in found), flush=True)


def depth() -> None:
    """Print the peak memory of a training step on 2,048 tokens by depth: reversible layers, and plain ones."""
    print("layers\treversible: MB\tplain: MB")
    for layers in (2, 4, 8, 16):
        print(
            f"{layers}\t" + "\t".join(f"{_measured(2048, rounds, layers, **_RETURNED)[1]:.0f}" for rounds in (2, -1)),
            flush=True,
        )


def step(size: int, rounds: int, layers: int) -> None:
    """Print what `_measured` returns."""
    import resource

    own = _REFORMER | {"hash_rounds": rounds, "chunk_length": 64, "buckets": max(2, size // 32)}
    model = network(**((_PLAIN if rounds < 0 else own) | {"layers": layers, "max_length": size})).train()
    ids, times = words(1, size, torch.Generator().manual_seed(1)), []
    for _ in range(4):
        started = time.perf_counter()
        loss = F.cross_entropy(model.logits(model(ids)[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()  # type: ignore[no-untyped-call]
        times.append(time.perf_counter() - started)
    print(json.dumps([statistics.median(times), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3]))


def main() -> None:
    """Run one of the comparisons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("copy", "border", "memory", "generation", "length", "depth", "step"))
    parser.add_argument("--data", type=Path, default=Path("data/local"), help="the folder of shakespeare/input.txt")
    parser.add_argument("--updates", type=int, default=1500, help="of copy and border")
    parser.add_argument("--length", type=int, default=128, help="of the text to copy")
    parser.add_argument("--seconds", type=float, default=200, help="of each training of memory")
    parser.add_argument("--one", type=int, nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    torch.set_num_threads(2)
    if given.what == "copy":
        copy(given.updates, given.length)
    elif given.what == "border":
        border(given.updates, given.length // 4)
    elif given.what == "memory":
        memory(given.data, given.seconds)
    elif given.what == "generation":
        generation()
    elif given.what == "length":
        length()
    elif given.what == "depth":
        depth()
    else:
        step(*given.one)


if __name__ == "__main__":
    main()
