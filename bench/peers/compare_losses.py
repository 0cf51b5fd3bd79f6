"""Trains the same model from the same weights on the same batches with `ein train` and with PyTorch, and compares the loss
of every step.

    python bench/peers/compare_losses.py --ein build/tools/ein --data samples/shakespeare.txt

The weights are those of a checkpoint that `ein train --max-iters 0` leaves; the batches are computed here, by what
ein/data.hpp says of get_batch. Prints a table and the largest difference; the exit code is 1 when that is above
--tolerance. With --figures DIR, the text, the weights and PyTorch's figures go there: the tests' data.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from train_gpt import read_text

PEER = pathlib.Path(__file__).with_name("train_gpt.py")
SETTINGS = {"block_size": 64, "batch_size": 12, "n_layer": 4, "n_head": 4, "n_embd": 128, "learning_rate": 1e-3,
            "min_lr": 1e-4, "warmup_iters": 100}


def philox(counter_low, counter_high, key):
    """Philox4x32-10 (Salmon et al. 2011): four words, the low one first."""
    word = 0xFFFFFFFF
    c = [counter_low & word, counter_low >> 32, counter_high & word, counter_high >> 32]
    k = [key & word, key >> 32]
    for _ in range(10):
        product0, product1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [product1 >> 32 ^ c[1] ^ k[0], product1 & word, product0 >> 32 ^ c[3] ^ k[1], product0 & word]
        k = [(k[0] + 0x9E3779B9) & word, (k[1] + 0xBB67AE85) & word]
    return c


def batch(tokens, rows, length, seed, number):
    """Inputs and targets of batch `number`: row r starts at the upper half of 64 random bits times the places there are."""
    pairs = []
    for row in range(rows):
        low, high, _, _ = philox(1 << 63 | row, number, seed)
        start = (high << 32 | low) * (len(tokens) - length) >> 64
        pairs.append((tokens[start:start + length], tokens[start + 1:start + 1 + length]))
    return np.array(pairs, dtype=np.int64).transpose(1, 0, 2)


def run(words):
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{result.stderr}")


def flags(settings):
    words = []
    for name, value in settings.items():
        name = name.replace("_", "-")
        words += ([] if value else ["--no-" + name]) if isinstance(value, bool) else ["--" + name, value]
    return words


def compare(options, settings, scratch):
    """Steps of both as (loss, gradient norm), and the path of the weights."""
    data, steps = options.data, options.steps
    common = flags(settings) + ["--data", data]
    ein = [options.ein, "train", *common, "--seed", options.seed, "--eval-iters", 1]
    run([*ein, "--max-iters", 0, "--out", scratch / "start"])
    weights = scratch / "start" / "step-000000.safetensors"
    run([*ein, "--max-iters", steps, "--out", scratch / "run", "--init-from", weights])
    lines = [json.loads(line) for line in open(scratch / "run" / "log.jsonl", encoding="utf-8")]
    ours = [tuple(math.nan if line[key] is None else line[key] for key in ("loss", "grad_norm"))  # null: not finite
            for line in lines if "loss" in line]

    tokens, _, _ = read_text(data)
    batches = [batch(tokens, settings["batch_size"], settings["block_size"], options.seed, n) for n in range(steps)]
    np.save(scratch / "batches.npy", np.stack(batches))
    run([sys.executable, PEER, *common, "--iters", steps, "--init", weights, "--batches", scratch / "batches.npy",
         "--losses", scratch / "losses.jsonl", "--eval-iters", 0])
    theirs = [(line["loss"], line["grad_norm"]) for line in map(json.loads, open(scratch / "losses.jsonl"))]
    return ours, theirs, weights


def save_figures(directory, options, settings, theirs, weights):
    from safetensors.numpy import load_file, save_file

    directory.mkdir(parents=True, exist_ok=True)
    (directory / "text.txt").write_bytes(options.data.read_bytes())
    save_file({name[6:]: value for name, value in load_file(weights).items() if name.startswith("model.")},
              directory / f"{options.name}.safetensors")
    figures = {"options": settings | {"seed": options.seed}, "losses": [loss for loss, _ in theirs],
               "grad_norms": [norm for _, norm in theirs]}
    (directory / f"{options.name}.json").write_text(json.dumps(figures, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ein", required=True, help="the ein command")
    parser.add_argument("--data", required=True, type=pathlib.Path, help="a text file in UTF-8")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1337)
    parser.add_argument("--tolerance", type=float, default=1e-4)
    parser.add_argument("--no-bias", dest="bias", action="store_false")
    for name, value in SETTINGS.items():
        parser.add_argument("--" + name.replace("_", "-"), type=type(value), default=value)
    parser.add_argument("--figures", type=pathlib.Path, help="a directory for the tests' data")
    parser.add_argument("--name", default="figures", help="of the files in it")
    options = parser.parse_args()
    settings = {name: getattr(options, name) for name in SETTINGS} | {"bias": options.bias}
    with tempfile.TemporaryDirectory() as scratch:
        ours, theirs, weights = compare(options, settings, pathlib.Path(scratch))
        if options.figures:
            save_figures(options.figures, options, settings, theirs, weights)
    print("step         ein     PyTorch  difference")
    for step, ((a, _), (b, _)) in enumerate(zip(ours, theirs, strict=True)):
        print(f"{step + 1:4}  {a:10.7f}  {b:10.7f}  {a - b:10.1e}")
    largest = max(abs(a - b) for (a, _), (b, _) in zip(ours, theirs))
    norms = max(abs(a - b) / b for (_, a), (_, b) in zip(ours, theirs))
    print(f"largest difference {largest:.1e} of losses, {norms:.1e} of gradient norms, relative")
    if not largest < options.tolerance:
        sys.exit(1)


if __name__ == "__main__":
    main()
