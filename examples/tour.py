"""From `make repro` to attention maps, a changed parameter and a comparison: run it in the repository's root.

    python examples/tour.py

Each cell starts with `# %%`, so editors run it cell by cell, and `jupytext --to notebook examples/tour.py` makes a
notebook of it. It takes a few minutes: the fourth cell trains a translation model once more.
"""

# %% What `make repro` left: one exported model per task
import json
import subprocess
from pathlib import Path

import transformer

translator = transformer.load("models/translation/bundle")
sentence = "Ein Mann schläft auf einer Bank."
print(translator.translate([sentence]))

# %% How good it is: every metric of every split is a line of JSON, with its 95 % interval
metrics = json.loads(Path("reports/translation/evaluation.json").read_text(encoding="utf-8"))
for name in ("bleu", "bleu_low", "bleu_high", "chrf"):
    print(f"{name:>10}  {metrics['test'][name]:.1f}")

# %% What it attends to: the weights are computed again from the inputs of each attention layer
from transformer.families.seq2seq.figures import drawings_of  # noqa: E402
from transformer.reporting.attention_maps import attention_figure  # noqa: E402
from transformer.reporting.style import save  # noqa: E402

drawings = {drawing.name: drawing for drawing in drawings_of(translator, sentence, layers="last")}
print(*drawings, sep="\n")
drawing = drawings[next(name for name in drawings if name.startswith("cross"))]
save(Path("build/tour/cross_attention.svg"), drawing.title, lambda: attention_figure(drawing))

# %% A changed parameter: a temporary clone leaves the workspace alone, and DVC runs only what depends on the change
change = "translation.train.label_smoothing=0.1"
subprocess.run(["dvc", "exp", "remove", "--quiet", "tour"], check=False, stderr=subprocess.DEVNULL)  # an earlier one
subprocess.run(["dvc", "exp", "run", "--temp", "--name", "tour", "-S", change, "report@translation"], check=True)

# %% What separates the two results: parameters, data, code, and scores with the paired bootstrap
subprocess.run(["transformer", "compare", "workspace", "tour", "--task", "translation"], check=True)
