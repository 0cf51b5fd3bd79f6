"""Trains the same model with `ein train` and with PyTorch by turns, in one run on one machine, and compares the times.

    python bench/peers/train_race.py --ein build/tools/ein --data samples/shakespeare.txt --json race.json

Both evaluate alike. A loop is all steps and evaluations; a process is everything from its start to its end, the loss over
the whole validation text and ein's checkpoints included. ein uses every core, so give --threads as many for PyTorch.
"""

import argparse
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

PEER = pathlib.Path(__file__).with_name("train_gpt.py")
COLUMNS = {"seconds_per_step": ("ms/step", 1e3, 2), "fastest_step": ("fastest", 1e3, 2), "seconds_total": ("loop s", 1, 2),
           "process_seconds": ("process s", 1, 2), "val_loss": ("val loss", 1, 4), "whole_val_loss": ("whole val", 1, 4)}


def run(words):
    begin = time.perf_counter()
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{result.stderr}")
    return result.stdout, time.perf_counter() - begin


def run_peer(options, seed):
    words = [sys.executable, PEER, "--data", options.data, "--threads", options.threads, "--iters", options.iters,
             "--seed", seed]
    text, seconds = run(words + ["--compile"] * options.compile)
    return json.loads(text.splitlines()[-1]) | {"process_seconds": seconds}


def run_ein(options, seed):
    with tempfile.TemporaryDirectory() as out:
        _, process = run([options.ein, "train", "--data", options.data, "--out", out, "--max-iters", options.iters, "--seed", seed])
        lines = [json.loads(line) for line in open(pathlib.Path(out) / "log.jsonl", encoding="utf-8")]
    seconds = [line["seconds"] for line in lines if "seconds" in line]
    last = [line for line in lines if "val_loss" in line][-1]
    last = {key: math.nan if value is None else value for key, value in last.items()}  # null: not finite
    return {"iters": len(seconds), "seconds_per_step": statistics.median(seconds), "fastest_step": min(seconds),
            "seconds_in_steps": sum(seconds), "seconds_total": last["elapsed"], "train_loss": last["train_loss"],
            "val_loss": last["val_loss"], "whole_val_loss": last["whole_val_loss"], "process_seconds": process}


def row(name, figures):
    return f"{name:14}" + "".join(f"{figures[key] * scale:11.{digits}f}" for key, (_, scale, digits) in COLUMNS.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ein", required=True, help="the ein command")
    parser.add_argument("--data", required=True, help="a text file in UTF-8")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--iters", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="PyTorch's")
    parser.add_argument("--seed", type=int, default=1337, help="of the first round; one more in each of the others")
    parser.add_argument("--compile", action="store_true", help="torch.compile instead of eager")
    parser.add_argument("--json", type=pathlib.Path, help="a file for all figures")
    options = parser.parse_args()

    contestants = {"ein": run_ein, "PyTorch": run_peer}
    results = {name: [] for name in contestants}
    print(" " * 14 + "".join(f"{title:>11}" for title, _, _ in COLUMNS.values()))
    for number in range(options.rounds):
        order = list(contestants)[::1 if number % 2 else -1]  # who is first changes, as heat and clocks do
        for name in order:
            results[name].append(contestants[name](options, options.seed + number))
            print(row(f"{name} {number + 1}", results[name][-1]), flush=True)
    medians = {name: {key: statistics.median(r[key] for r in runs) for key in COLUMNS} for name, runs in results.items()}
    for name, figures in medians.items():
        print(row(f"{name}, median", figures))
    ratios = {key: medians["PyTorch"][key] / medians["ein"][key]
              for key in ("seconds_per_step", "fastest_step", "seconds_total", "process_seconds")}
    print("PyTorch to ein: " + ", ".join(f"{COLUMNS[key][0]} {ratio:.2f}" for key, ratio in ratios.items()))
    if options.json:
        settings = {name: getattr(options, name) for name in ("rounds", "iters", "threads", "seed", "compile")}
        machine = {"system": platform.platform(), "cores": os.cpu_count()}
        options.json.write_text(json.dumps({"settings": settings, "machine": machine, "medians": medians, "ratios": ratios,
                                            "runs": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
