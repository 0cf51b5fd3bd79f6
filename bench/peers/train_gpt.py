"""The small character GPT of `ein train` in PyTorch, with the training loop of nanoGPT's CPU configuration.

    python bench/peers/train_gpt.py --data FILE --threads 2

Defaults are those of the command: 4 layers, 4 heads, 128 wide, block 64, batch 12, 2000 steps, biases, no dropout.
The last line of the output is one JSON object: median seconds per step, seconds of the whole run with its
evaluations, tokens per second, losses. bench/peers/README.md says how weights and batches are shared with ein.
"""

import argparse
import contextlib
import json
import math
import os
import statistics
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

BETAS, WEIGHT_DECAY, GRAD_CLIP = (0.9, 0.99), 0.1, 1.0


class Attention(nn.Module):
    def __init__(self, width, heads, bias):
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width, bias=bias)
        self.c_proj = nn.Linear(width, width, bias=bias)

    def forward(self, x, cache=None):
        """With a cache, a list of the keys and values of positions before, x is the position after them, which is added."""
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                   for part in self.c_attn(x).split(width, dim=2))
        if cache is not None:
            k, v = (torch.cat(pair, 2) for pair in zip(cache, (k, v))) if cache else (k, v)
            cache[:] = k, v
        y = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
        return self.c_proj(y.transpose(1, 2).reshape(batch, length, width))


class MLP(nn.Module):
    def __init__(self, width, bias):
        super().__init__()
        self.c_fc = nn.Linear(width, 4 * width, bias=bias)
        self.gelu = nn.GELU()
        self.c_proj = nn.Linear(4 * width, width, bias=bias)

    def forward(self, x):
        return self.c_proj(self.gelu(self.c_fc(x)))


class Block(nn.Module):
    def __init__(self, width, heads, bias):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width, bias=bias)
        self.attn = Attention(width, heads, bias)
        self.ln_2 = nn.LayerNorm(width, bias=bias)
        self.mlp = MLP(width, bias)

    def forward(self, x, cache=None):
        x = x + self.attn(self.ln_1(x), cache)
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """GPT-2's form and parameter names; lm_head shares wte's weight."""

    def __init__(self, vocab, block_size, layers, heads, width, bias):
        super().__init__()
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(vocab, width),
            "wpe": nn.Embedding(block_size, width),
            "h": nn.ModuleList(Block(width, heads, bias) for _ in range(layers)),
            "ln_f": nn.LayerNorm(width, bias=bias),
        })
        self.lm_head = nn.Linear(width, vocab, bias=False)
        self.lm_head.weight = self.transformer.wte.weight
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                residual = name.endswith("c_proj.weight")
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * layers) if residual else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, tokens, targets):
        parts = self.transformer
        x = parts.wte(tokens) + parts.wpe(torch.arange(tokens.shape[1], device=tokens.device))
        for block in parts.h:
            x = block(x)
        logits = self.lm_head(parts.ln_f(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))

    def next_logits(self, token, position, caches):
        """Of a token (batch, 1) at that position; `caches` has a list for each block, empty at first."""
        parts = self.transformer
        x = parts.wte(token) + parts.wpe.weight[position]
        for block, cache in zip(parts.h, caches):
            x = block(x, cache)
        return self.lm_head(parts.ln_f(x))[:, -1]


def load_weights(model, path, layout):
    """Fills every parameter from a safetensors file, one of weights or a checkpoint of ein's, whose weights begin with
    "model.". `layout` says how the file keeps the weights of linear layers."""
    from safetensors.torch import load_file

    file = load_file(path)
    if any(name.startswith("model.") for name in file):
        file = {name[6:]: value for name, value in file.items() if name.startswith("model.")}
    linear = {name + ".weight" for name, module in model.named_modules() if isinstance(module, nn.Linear)}
    parameters = dict(model.named_parameters())  # a shared weight appears once, as transformer.wte.weight
    unknown = set(file) - set(parameters) - {"lm_head.weight"}
    if unknown or set(parameters) - set(file):
        sys.exit(f"{path}: unknown tensors {sorted(unknown)}, missing {sorted(set(parameters) - set(file))}")
    with torch.no_grad():
        for name, parameter in parameters.items():
            value = file[name].T if layout == "in-out" and name in linear else file[name]
            if value.shape != parameter.shape:
                sys.exit(f"{path}: {name} is {list(value.shape)}, expected {list(parameter.shape)}")
            parameter.copy_(value)


def read_text(path):
    """Character tokens (sorted vocabulary) of the first 90 % and of the last 10 %, and the vocabulary's size."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    vocabulary = {character: token for token, character in enumerate(sorted(set(text)))}
    tokens = np.array([vocabulary[character] for character in text], dtype=np.uint16)
    split = int(len(tokens) * 0.9)
    return tokens[:split], tokens[split:], len(vocabulary)


def random_batch(tokens, batch, length):
    starts = torch.randint(len(tokens) - length, (batch,)).tolist()
    rows = [torch.from_numpy(tokens[s:s + length + 1].astype(np.int64)) for s in starts]
    return torch.stack([row[:-1] for row in rows]), torch.stack([row[1:] for row in rows])


def learning_rate(step, options):
    """Linear warm-up, then a cosine down to the least one at the last step."""
    most, least, warmup = options.learning_rate, options.min_lr, options.warmup_iters
    if step < warmup:
        return most * (step + 1) / (warmup + 1)
    progress = (step - warmup) / (options.iters - warmup)
    return least + 0.5 * (1 + math.cos(math.pi * progress)) * (most - least)


def make_optimizer(model, rate):
    """The parameters and their AdamW, which decays those with at least two axes."""
    parameters = list(model.parameters())
    groups = [{"params": [p for p in parameters if p.dim() >= 2], "weight_decay": WEIGHT_DECAY},
              {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}]
    return parameters, torch.optim.AdamW(groups, lr=rate, betas=BETAS)


def autocast(bf16):
    return torch.autocast("cpu", torch.bfloat16) if bf16 else contextlib.nullcontext()


def update(loss, parameters, optimizer):
    """One optimizer step from a loss: the gradient's norm before clipping."""
    loss.backward()
    norm = nn.utils.clip_grad_norm_(parameters, GRAD_CLIP)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return norm


class Trainer:
    def __init__(self, options):
        self.options = options
        self.train_tokens, self.val_tokens, vocab = read_text(options.data)
        model = GPT(vocab, options.block_size, options.n_layer, options.n_head, options.n_embd, options.bias)
        if options.init:
            load_weights(model, options.init, options.init_layout)
        self.parameters, self.optimizer = make_optimizer(model, options.learning_rate)
        self.model = torch.compile(model) if options.compile else model
        self.batches = np.load(options.batches, mmap_mode="r") if options.batches else None
        if self.batches is not None and len(self.batches) < options.iters:
            sys.exit(f"{options.batches} has {len(self.batches)} batches, {options.iters} are needed")

    def autocast(self):
        return autocast(self.options.bf16)

    def batch(self, step):
        if self.batches is None:
            return random_batch(self.train_tokens, self.options.batch_size, self.options.block_size)
        tokens, targets = torch.from_numpy(self.batches[step].copy())
        return tokens, targets

    def step(self, step):
        """One optimizer step: its loss and the gradient's norm before clipping."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(step, self.options)
        tokens, targets = self.batch(step)
        with self.autocast():
            loss = self.model(tokens, targets)
        norm = update(loss, self.parameters, self.optimizer)
        return loss.item(), norm.item()

    @torch.no_grad()
    def evaluate(self):
        """Mean losses of random batches of the training and of the validation text."""
        self.model.eval()
        means = []
        for tokens in self.train_tokens, self.val_tokens:
            losses = []
            for _ in range(self.options.eval_iters):
                with self.autocast():
                    batch = random_batch(tokens, self.options.batch_size, self.options.block_size)
                    losses.append(self.model(*batch).item())
            means.append(statistics.fmean(losses))
        self.model.train()
        return means

    @torch.no_grad()
    def whole_validation_loss(self):
        """Loss over all whole blocks of the validation text: the figure without the noise of random batches."""
        length, batch = self.options.block_size, self.options.batch_size
        blocks = (len(self.val_tokens) - 1) // length
        tokens = torch.from_numpy(self.val_tokens.astype(np.int64))
        inputs = tokens[:blocks * length].view(blocks, length)
        targets = tokens[1:blocks * length + 1].view(blocks, length)
        self.model.eval()
        total = 0.0
        for begin in range(0, blocks, batch):
            part = slice(begin, begin + batch)
            with self.autocast():
                total += self.model(inputs[part], targets[part]).item() * len(inputs[part])
        self.model.train()
        return total / blocks


def train(trainer, options):
    """Trains for options.iters steps and returns the figures of the run."""
    losses = open(options.losses, "w", encoding="utf-8") if options.losses else None
    seconds, evaluations = [], []
    begin = time.perf_counter()
    for step in range(options.iters + 1):
        if options.eval_iters and (step % options.eval_interval == 0 or step == options.iters):
            evaluations.append(trainer.evaluate())
            print(f"step {step}: train loss {evaluations[-1][0]:.4f}, val loss {evaluations[-1][1]:.4f}, "
                  f"{time.perf_counter() - begin:.2f} s", file=sys.stderr)
        if step == options.iters:
            break
        start = time.perf_counter()
        loss, norm = trainer.step(step)
        seconds.append(time.perf_counter() - start)
        if losses:
            losses.write(json.dumps({"step": step, "loss": loss, "grad_norm": norm}) + "\n")
    total = time.perf_counter() - begin
    if losses:
        losses.close()
    median = statistics.median(seconds)
    figures = {
        "peer": f"torch {torch.__version__} " + ("compile" if options.compile else "eager"),
        "dtype": "bf16" if options.bf16 else "f32",
        "threads": torch.get_num_threads(),
        "iters": options.iters,
        "parameters": sum(p.numel() for p in trainer.parameters),
        "seconds_per_step": median,
        "fastest_step": min(seconds),
        "seconds_total": total,
        "seconds_in_steps": sum(seconds),
        "tokens_per_second": options.batch_size * options.block_size / median,
    }
    if evaluations:
        figures |= {"train_loss": evaluations[-1][0], "val_loss": evaluations[-1][1],
                    "best_val_loss": min(val for _, val in evaluations),
                    "whole_val_loss": trainer.whole_validation_loss()}
    return figures


def profile(trainer, steps):
    """Prints the operations that take the most time of their own."""
    for step in range(10):
        trainer.step(step)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        for step in range(10, 10 + steps):
            trainer.step(step)
    print(profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=30, max_name_column_width=60))


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="a text file in UTF-8")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--iters", type=int, default=2000)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--min-lr", type=float, default=1e-4)
    parser.add_argument("--warmup-iters", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1337)
    parser.add_argument("--block-size", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=12)
    parser.add_argument("--n-layer", type=int, default=4)
    parser.add_argument("--n-head", type=int, default=4)
    parser.add_argument("--n-embd", type=int, default=128)
    parser.add_argument("--no-bias", dest="bias", action="store_false", help="no biases in linear layers and layer norms")
    parser.add_argument("--eval-interval", type=int, default=250)
    parser.add_argument("--eval-iters", type=int, default=20, help="0: no evaluation")
    parser.add_argument("--init", help="initial weights, a safetensors file")
    parser.add_argument("--init-layout", choices=["in-out", "out-in"], default="in-out",
                        help="linear weights in the file are (in, out) as ein's, or (out, in) as PyTorch's")
    parser.add_argument("--batches", help="an .npy of i64 (steps, 2, batch, length): tokens and targets of every step")
    parser.add_argument("--losses", help="a file for the loss of each step, JSON lines")
    parser.add_argument("--bf16", action="store_true", help="autocast to bf16")
    parser.add_argument("--compile", action="store_true", help="torch.compile")
    parser.add_argument("--profile", type=int, metavar="STEPS", help="profile this many steps instead of training")
    return parser.parse_args()


def main():
    options = parse_options()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    trainer = Trainer(options)
    if options.profile:
        profile(trainer, options.profile)
    else:
        print(json.dumps(train(trainer, options)))


if __name__ == "__main__":
    main()
