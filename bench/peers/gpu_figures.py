"""Times of PyTorch on a GPU for the cases of scripts/gpu-check, and the bandwidth of a copy, on random data.

    python bench/peers/gpu_figures.py [--steps]

With --steps instead those of whole training steps by torch.compile: AdamW (fused), bf16 autocast, gradient clipping.
"""

import sys

import torch


def seconds_of(work, rounds=20, calls=10):
    """The median over rounds of the time of one call, by events."""
    for _ in range(3):
        work()
    times = []
    for _ in range(rounds):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(calls):
            work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1e3 / calls)
    return sorted(times)[len(times) // 2]


def show(name, seconds, flops=0, moved=0):
    print(f"{name:28} {seconds * 1e6:12.1f} us {flops / seconds / 1e12:9.1f} TFLOP/s {moved / seconds / 1e9:9.1f} GB/s", flush=True)


def attention(shape, dtype):
    """Causal; arithmetic is counted as bench/gpu/attention.cpp does."""
    name = str(dtype).removeprefix("torch.")
    q, k, v, dout = (torch.randn(shape, device="cuda", dtype=dtype) for _ in range(4))
    flops = 2 * shape[0] * shape[1] * shape[2] ** 2 * shape[3]
    attend = torch.nn.functional.scaled_dot_product_attention
    show(f"attention {name} {shape}", seconds_of(lambda: attend(q, k, v, is_causal=True)), flops)
    for x in (q, k, v):
        x.requires_grad_()

    def both():
        torch.autograd.grad(attend(q, k, v, is_causal=True), (q, k, v), dout)

    show("  with gradients", seconds_of(both), 3.5 * flops)


def main():
    print(torch.__version__, torch.cuda.get_device_name())
    for n in (1024, 4096, 8192):
        a, b = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        show(f"einsum bf16 {n}", seconds_of(lambda: a @ b), 2 * n**3, 3 * 2 * n * n)
    a, b = (torch.randn(4096, 4096, device="cuda") for _ in range(2))
    for tf32 in (False, True):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        show(f"einsum {'tf32' if tf32 else 'f32'} 4096", seconds_of(lambda: a @ b), 2 * 4096**3, 3 * 4 * 4096 * 4096)
    q, k = (torch.randn(16, 12, 1024, 64, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    show("attention scores bf16", seconds_of(lambda: q @ k.transpose(2, 3)), 2 * 16 * 12 * 1024 * 1024 * 64,
         2 * (2 * q.numel() + 16 * 12 * 1024 * 1024))
    x = torch.randn(16384, 4096, device="cuda")
    show("reduce rows f32", seconds_of(lambda: x.sum(1)), x.numel(), 4 * x.numel())
    show("reduce columns f32", seconds_of(lambda: x.sum(0)), x.numel(), 4 * x.numel())
    show("logsumexp f32", seconds_of(lambda: x.logsumexp(1)), 3 * x.numel(), 4 * x.numel())
    x = torch.randn(8192, 8192, device="cuda")
    show("transpose f32", seconds_of(lambda: x.t().contiguous()), 0, 8 * x.numel())
    h = torch.randn(16, 1024, 768, device="cuda", dtype=torch.bfloat16)
    show("heads bf16", seconds_of(lambda: h.view(16, 1024, 12, 64).transpose(1, 2).contiguous()), 0, 4 * h.numel())
    for shape in ((16, 12, 1024, 64), (4, 16, 4096, 64), (4, 16, 4096, 128)):
        attention(shape, torch.bfloat16)
    attention((4, 12, 1024, 64), torch.float32)
    x = torch.randn(1 << 28, device="cuda")
    y = torch.empty_like(x)
    show("copy f32", seconds_of(lambda: y.copy_(x)), 0, 8 * x.numel())


def step_figures():
    from train_gpt import GPT

    torch.set_default_device("cuda")
    print(torch.__version__, torch.cuda.get_device_name())
    sizes = {
        "small GPT bf16": dict(vocab=65, block_size=256, layers=6, heads=6, width=384, batch=64),
        "GPT-2 124M bf16": dict(vocab=50257, block_size=1024, layers=12, heads=12, width=768, batch=16),
    }
    for name, size in sizes.items():
        batch, length, vocab = size.pop("batch"), size["block_size"], size["vocab"]
        model = GPT(**size, bias=True)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1, fused=True)
        compiled = torch.compile(model)
        x, y = (torch.randint(vocab, (batch, length)) for _ in range(2))

        def step():
            with torch.autocast("cuda", torch.bfloat16):
                loss = compiled(x, y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

        seconds = seconds_of(step, rounds=5, calls=5)
        print(f"{name:28} {seconds * 1e3:12.2f} ms {batch * length / seconds:12.0f} tokens/s", flush=True)


if __name__ == "__main__":
    step_figures() if "--steps" in sys.argv else main()
