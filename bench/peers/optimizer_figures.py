"""Writes tests/fixtures/optim/*.json: what PyTorch's optimizers, written-out formulas, schedules and loss scaling give.

    python bench/peers/optimizer_figures.py tests/fixtures/optim

Every optimizer case updates two tensors, (3, 4) and (5,), in f64 for 100 steps numbered from 1; the gradient of
element i (row-major, from 0 in each tensor) at step t is 0.1 * p + sin(t + i). A case holds what differs from the
file's `start` and the parameters after steps 1, 2, 10 and 100. Adagrad with epsilon inside the root and LAMB, which
PyTorch has not, are computed here from their formulas.
"""

import json
import math
import pathlib
import sys

import numpy as np
import torch

SHAPES = [(3, 4), (5,)]
RECORDED = (1, 2, 10, 100)
RANDOM = np.random.default_rng(5)
START = [np.round(RANDOM.standard_normal(shape), 3) for shape in SHAPES]
ZERO_BIAS = [START[0], np.zeros(SHAPES[1])]  # a tensor whose norm is 0 at first


def gradient(p, step):
    return 0.1 * p + np.sin(step + np.arange(p.size, dtype=np.float64)).reshape(p.shape)


# Schedules: the learning rate of step `it`, counted from 0 -----------------------------------------------------------

def rate(schedule, it):
    """Linear warm-up of warmup_iters steps as nanoGPT counts them, then the schedule's own form."""
    lr, least = schedule["lr"], schedule.get("min_lr", 0.0)
    warmup, end = schedule["warmup_iters"], schedule.get("decay_iters", 0)
    if it < warmup:
        return lr * (it + 1) / (warmup + 1)
    if schedule["kind"] == "constant":
        return lr
    begin = schedule["decay_begin"] if schedule["kind"] == "wsd" else warmup
    if it >= end:
        return least
    if it < begin:
        return lr
    progress = (it - begin) / (end - begin)
    if schedule["kind"] == "cosine":
        return least + 0.5 * (1 + math.cos(math.pi * progress)) * (lr - least)
    return lr + progress * (least - lr)


SCHEDULES = [
    {"kind": "constant", "lr": 0.01, "warmup_iters": 0},
    {"kind": "constant", "lr": 0.01, "warmup_iters": 10},
    {"kind": "linear", "lr": 1e-3, "min_lr": 1e-4, "warmup_iters": 100, "decay_iters": 2000},
    {"kind": "linear", "lr": 0.5, "min_lr": 0.0, "warmup_iters": 0, "decay_iters": 50},
    {"kind": "cosine", "lr": 1e-3, "min_lr": 1e-4, "warmup_iters": 100, "decay_iters": 2000},
    {"kind": "cosine", "lr": 6e-4, "min_lr": 0.0, "warmup_iters": 0, "decay_iters": 7},
    {"kind": "wsd", "lr": 1e-3, "min_lr": 1e-4, "warmup_iters": 100, "decay_begin": 1600, "decay_iters": 2000},
    {"kind": "wsd", "lr": 0.02, "min_lr": 0.0, "warmup_iters": 5, "decay_begin": 5, "decay_iters": 25},
]


def schedule_case(schedule):
    marks = {schedule["warmup_iters"], schedule.get("decay_begin", 0), schedule.get("decay_iters", 0)}
    steps = {0, 1, 3, 12, 49, 99, 777, 1050, 1777, 5000} | {m + d for m in marks for d in (-1, 0, 1)}
    steps = sorted(step for step in steps if step >= 0)
    return {**schedule, "steps": steps, "rates": [rate(schedule, step) for step in steps]}


# Optimizers ----------------------------------------------------------------------------------------------------------

def torch_case(optimizer, start=START, weight_decay_by_tensor=None, schedule=None, clip_grad_norm=None, **options):
    parameters = [torch.tensor(p, requires_grad=True) for p in start]
    groups = [{"params": [p]} for p in parameters]
    if weight_decay_by_tensor:
        for group, decay in zip(groups, weight_decay_by_tensor):
            group["weight_decay"] = decay
    state = optimizer(groups, **options)
    after = {}
    for step in range(1, RECORDED[-1] + 1):
        if schedule:
            for group in state.param_groups:
                group["lr"] = rate(schedule, step - 1)
        for p in parameters:
            p.grad = torch.tensor(gradient(p.detach().numpy(), step))
        if clip_grad_norm:
            torch.nn.utils.clip_grad_norm_(parameters, clip_grad_norm)
        state.step()
        if step in RECORDED:
            after[step] = [p.detach().flatten().tolist() for p in parameters]
    more = {"weight_decay_by_tensor": weight_decay_by_tensor, "schedule": schedule, "clip_grad_norm": clip_grad_norm}
    return finish(start, {**options, **{name: value for name, value in more.items() if value}}, after)


def formula_case(update, start=START, **options):
    """`update(p, g, state, step, **options)` returns the new p; `state` is a dict of its own for each tensor."""
    parameters, states, after = [p.copy() for p in start], [{} for _ in start], {}
    for step in range(1, RECORDED[-1] + 1):
        parameters = [update(p, gradient(p, step), state, step, **options)
                      for p, state in zip(parameters, states)]
        if step in RECORDED:
            after[step] = [p.flatten().tolist() for p in parameters]
    return finish(start, options, after)


def finish(start, options, after):
    own_start = {} if start is START else {"start": [p.flatten().tolist() for p in start]}
    return {"options": options, **own_start, "after": after}


def adagrad_inside(p, g, state, step, lr, eps):
    """Epsilon inside the root: s += g^2; p -= lr g / sqrt(s + eps)."""
    state["s"] = state.get("s", 0.0) + g * g
    return p - lr * g / np.sqrt(state["s"] + eps)


def lamb(p, g, state, step, lr, betas, eps, weight_decay):
    """You et al. 2020, Algorithm 2, phi(z) = z; a ratio with a norm of 0 is 1."""
    state["m"] = betas[0] * state.get("m", 0.0) + (1 - betas[0]) * g
    state["v"] = betas[1] * state.get("v", 0.0) + (1 - betas[1]) * g * g
    m, v = state["m"] / (1 - betas[0] ** step), state["v"] / (1 - betas[1] ** step)
    update = m / (np.sqrt(v) + eps) + weight_decay * p
    norm, update_norm = np.linalg.norm(p), np.linalg.norm(update)
    ratio = norm / update_norm if norm > 0 and update_norm > 0 else 1.0
    return p - lr * ratio * update


def optimizer_cases():
    sgd, adagrad, rmsprop, adam, adamw = (getattr(torch.optim, name) for name in
                                          ("SGD", "Adagrad", "RMSprop", "Adam", "AdamW"))
    cosine = {"kind": "cosine", "lr": 0.01, "min_lr": 1e-3, "warmup_iters": 10, "decay_iters": 80}
    return {
        "sgd": [
            torch_case(sgd, lr=0.1),
            torch_case(sgd, lr=0.1, momentum=0.9),
            torch_case(sgd, lr=0.1, momentum=0.9, nesterov=True),
            torch_case(sgd, lr=0.1, momentum=0.9, dampening=0.5),
            torch_case(sgd, lr=0.05, weight_decay=0.1),
            torch_case(sgd, lr=0.05, momentum=0.8, nesterov=True, weight_decay=0.1),
        ],
        "adagrad": [
            torch_case(adagrad, lr=0.01, eps=1e-10),
            torch_case(adagrad, lr=0.1, lr_decay=0.01, weight_decay=0.1, initial_accumulator_value=0.5, eps=1e-6),
        ],
        "adagrad_inside": [
            formula_case(adagrad_inside, lr=0.01, eps=1e-5),
            formula_case(adagrad_inside, lr=0.3, eps=1e-5),
        ],
        "rmsprop": [
            torch_case(rmsprop, lr=0.01, alpha=0.99, eps=1e-8),
            torch_case(rmsprop, lr=0.01, alpha=0.9, eps=1e-6, momentum=0.9),
            torch_case(rmsprop, lr=0.01, alpha=0.99, eps=1e-8, centered=True),
            torch_case(rmsprop, lr=0.01, alpha=0.95, eps=1e-5, momentum=0.5, centered=True, weight_decay=0.1),
        ],
        "adam": [
            torch_case(adam, lr=1e-3, betas=(0.9, 0.999), eps=1e-8),
            torch_case(adam, lr=0.05, betas=(0.8, 0.95), eps=1e-4),
            torch_case(adam, lr=0.01, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.1),
        ],
        "adamw": [
            torch_case(adamw, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01),
            torch_case(adamw, lr=0.01, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.1),
            torch_case(adamw, lr=0.05, betas=(0.0, 0.9), eps=1e-3, weight_decay=0.0),
            torch_case(adamw, lr=0.01, betas=(0.9, 0.99), eps=1e-8, weight_decay_by_tensor=[0.1, 0.0]),
            torch_case(adamw, lr=0.01, betas=(0.9, 0.99), eps=1e-8, weight_decay_by_tensor=[0.1, 0.0],
                       clip_grad_norm=1.0, schedule=cosine),
        ],
        "lamb": [
            formula_case(lamb, lr=0.01, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01),
            formula_case(lamb, lr=0.05, betas=(0.8, 0.95), eps=1e-8, weight_decay=0.0),
            formula_case(lamb, start=ZERO_BIAS, lr=0.01, betas=(0.9, 0.99), eps=1e-6, weight_decay=0.1),
        ],
    }


# Loss scaling --------------------------------------------------------------------------------------------------------

def grad_scaler():
    """PyTorch's constants, and its scale after each of some updates where a set of them finds an infinity."""
    scaler = torch.amp.GradScaler("cpu")
    constants = {"init_scale": scaler.get_scale(), "growth_factor": scaler.get_growth_factor(),
                 "backoff_factor": scaler.get_backoff_factor(), "growth_interval": scaler.get_growth_interval()}
    runs = [
        scaler_run(constants, updates=6100, infinite=[0, 1, 1500, 3501]),
        scaler_run({**constants, "init_scale": 8.0, "growth_interval": 3}, updates=20, infinite=[2, 6, 7, 17]),
        # Growth stops before f32 overflows.
        scaler_run({**constants, "init_scale": 2.0**126, "growth_interval": 1}, updates=4, infinite=[]),
    ]
    return {**constants, "runs": runs}


def scaler_run(constants, updates, infinite):
    scale, tracker = torch.tensor(constants["init_scale"]), torch.tensor(0, dtype=torch.int32)
    changes, last = [], constants["init_scale"]
    for update in range(updates):
        found = torch.tensor(1.0 if update in infinite else 0.0)
        torch._amp_update_scale_(scale, tracker, found, constants["growth_factor"], constants["backoff_factor"],
                                 constants["growth_interval"])
        if scale.item() != last:
            last = scale.item()
            changes.append([update, last])
    return {"init_scale": constants["init_scale"], "growth_interval": constants["growth_interval"],
            "updates": updates, "infinite": infinite, "scale_changes": changes}


def main():
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    source = f"bench/peers/optimizer_figures.py, torch {torch.__version__}, numpy {np.__version__}"
    files = {name: {"shapes": SHAPES, "start": [p.flatten().tolist() for p in START], "cases": cases}
             for name, cases in optimizer_cases().items()}
    files["schedules"] = {"cases": [schedule_case(schedule) for schedule in SCHEDULES]}
    files["grad_scaler"] = grad_scaler()
    for name, content in files.items():
        text = json.dumps({"source": source, **content})
        for key in "cases", "runs":  # a line for each case
            text = text.replace(f'"{key}": [{{', f'"{key}": [\n{{')
        text = text.replace('}, {"options"', '},\n{"options"').replace('}, {"kind"', '},\n{"kind"')
        (directory / f"{name}.json").write_text(text.replace('}, {"init_scale"', '},\n{"init_scale"') + "\n")


if __name__ == "__main__":
    main()
