"""The convolutions of ResNet-50 as nests of ein, beside PyTorch, by turns.

    python bench/peers/convolutions.py --ein build/bench/ein_convolution_nests [--threads 1] [--batch 1]

Ratios are PyTorch's time over ein's. `nest` is ein's nest alone, on an image that has margins; `margin` is with the copy that
makes these, as PyTorch's takes an image without. `onednn` is PyTorch's oneDNN on weights that are in its own order already.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import time

# Else its idle threads spin on the processors that ein is measured on.
os.environ |= {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0", "KMP_BLOCKTIME": "0"}
import torch  # noqa: E402

from cases import RESNET50  # noqa: E402

DTYPES = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16}


def torch_calls(dtype, layout, which, batch, case):
    """What PyTorch is asked for, by name."""
    side, inner, outer, window, step, margin = case
    memory = torch.channels_last if layout == "nhwc" else torch.contiguous_format
    make = lambda *shape: torch.rand(*shape).to(DTYPES[dtype]).contiguous(memory_format=memory)
    x, w = make(batch, inner, side, side), make(outer, inner, window, window)
    convolve = lambda: torch.nn.functional.conv2d(x, w, None, step, margin)
    if which == "forward":
        calls = {"torch": convolve}
        if dtype != "f64":
            packed = torch.ops.mkldnn._reorder_convolution_weight(
                w, [margin] * 2, [step] * 2, [1] * 2, 1, list(x.shape))
            calls["onednn"] = lambda: torch.ops.mkldnn._convolution_pointwise(
                x, packed, None, [margin] * 2, [step] * 2, [1] * 2, 1, "none", [], "")
        return calls
    gradient = make(*convolve().shape)
    mask = [which == "image", which == "weights", False]
    return {"torch": lambda: torch.ops.aten.convolution_backward(
        gradient, x, w, None, [step] * 2, [margin] * 2, [1] * 2, False, [0] * 2, 1, mask)}


def seconds_of(call, least, threads):
    now = time.thread_time if threads == 1 else time.perf_counter
    begin, calls = now(), 0
    while True:
        call()
        calls += 1
        spent = now() - begin
        if spent >= least:
            return spent / calls


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ein", required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch", type=int, nargs="+", default=[1])
    parser.add_argument("--layouts", nargs="+", default=["nhwc", "nchw"])
    parser.add_argument("--passes", nargs="+", default=["forward", "weights", "image"])
    parser.add_argument("--dtype", default="f32", choices=DTYPES)
    parser.add_argument("--only", default="", help="a text of the cases' names")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.02)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.set_grad_enabled(False)
    ein = subprocess.Popen([arguments.ein, str(arguments.threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(line):
        ein.stdin.write(line + "\n")
        ein.stdin.flush()
        return [float(x) for x in ein.stdout.readline().split()]

    rows = []
    for batch in arguments.batch:
        for layout in arguments.layouts:
            for which in arguments.passes:
                ratios = []
                for case in RESNET50:
                    side, inner, outer, window, step, margin = case
                    name = f"{window}x{window}/{step} {side} {inner}->{outer}"
                    if arguments.only not in name or (which == "image" and inner == 3):
                        continue
                    (flop,) = ask(f"case {arguments.dtype} {layout} {which} {batch} " + " ".join(map(str, case)))
                    calls = torch_calls(arguments.dtype, layout, which, batch, case)
                    for call in calls.values():
                        call()
                    times = {}
                    for _ in range(arguments.rounds):
                        nest, with_margin = ask(f"run {arguments.seconds}")
                        times.setdefault("nest", []).append(nest)
                        times.setdefault("margin", []).append(with_margin)
                        for who, call in calls.items():
                            times.setdefault(who, []).append(seconds_of(call, arguments.seconds, arguments.threads))
                    middle = {who: statistics.median(all) for who, all in times.items()}
                    row = {"batch": batch, "layout": layout, "pass": which, "case": name, "flop": flop, "seconds": middle}
                    rows.append(row)
                    ratios.append({who: middle[who] / middle["margin"] for who in calls})
                    print(f"{batch} {layout} {which:8} {name:22}" +
                          "".join(f"  {who} {flop / t / 1e9:6.1f}" for who, t in middle.items()) +
                          "".join(f"  {who}/margin {r:5.2f}" for who, r in ratios[-1].items()), flush=True)
                for who in ratios[0] if ratios else []:
                    all = [r[who] for r in ratios]
                    print(f"== {batch} {layout} {which}: {who}, geometric mean "
                          f"{math.exp(statistics.fmean(map(math.log, all))):.2f}, least {min(all):.2f}", flush=True)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
