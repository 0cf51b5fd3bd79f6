#!/usr/bin/env python3
"""Times of ein's byte-level BPE beside the tokenizers library, by turns in one run.

usage: bench/text/tokenizers.py [--ein PROGRAM] [--rounds N] [--threads N] [--tokenizer TOKENIZER.json]
                                [--train TEXT=VOCABULARY...] [--encode TEXT...]

Texts are files. A ratio is the library's time over ein's, of the medians. Training reads a file; encode and decode are of one
text in memory, whole, which both do on one thread; of its lines the library encodes several at a time. It wants the Python package tokenizers 0.23.3.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.path = [path for path in sys.path if path != os.path.dirname(os.path.abspath(__file__))]  # this file has its name


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ein", default="build/bench/ein_text_bench")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tokenizer")
    parser.add_argument("--train", nargs="*", default=[])
    parser.add_argument("--encode", nargs="*", default=[])
    options = parser.parse_args()
    os.environ["RAYON_NUM_THREADS"] = str(options.threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "true"
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    def ein(*words):
        command = [options.ein, "2", str(options.threads), *words]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])

    def seconds(call):
        begin = time.perf_counter()
        call()
        return time.perf_counter() - begin

    def train(path, size):
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.train([path], trainers.BpeTrainer(
            vocab_size=size, special_tokens=["<|endoftext|>"], show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))

    print("| case | threads | ein | tokenizers | ratio |\n|---|---:|---:|---:|---:|")

    def row(name, threads, ours, theirs):
        ours(), theirs()
        times = [(ours(), theirs()) for _ in range(options.rounds)]
        mine, other = (statistics.median(side) for side in zip(*times))
        print(f"| {name} | {threads} | {1e3 * mine:.1f} ms | {1e3 * other:.1f} ms | {other / mine:.2f} |", flush=True)

    for case in options.train:
        path, size = case.rsplit("=", 1)
        row(f"train {pathlib.Path(path).name}, {size} tokens", options.threads, lambda: ein("train", size, path),
            lambda: seconds(lambda: train(path, int(size))))
    for path in options.encode:
        text = pathlib.Path(path).read_text(encoding="utf-8")
        library = Tokenizer.from_file(options.tokenizer)
        name = f"{pathlib.Path(path).name}, {len(text.encode()) / 1e6:.1f} MB"
        row(f"encode {name}", 1, lambda: ein("encode", options.tokenizer, path), lambda: seconds(lambda: library.encode(text)))
        lines = text.split("\n")
        row(f"encode each line, {name}", options.threads, lambda: ein("lines", options.tokenizer, path),
            lambda: seconds(lambda: library.encode_batch(lines)))
        ids = library.encode(text).ids
        row(f"decode {name}", 1, lambda: ein("decode", options.tokenizer, path),
            lambda: seconds(lambda: library.decode(ids, skip_special_tokens=False)))


main()
