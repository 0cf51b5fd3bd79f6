"""Times of PyTorch on a GPU for the cases of scripts/gpu-check, and the bandwidth of a copy, on random data.

    python bench/peers/gpu_figures.py
"""

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


def main():
    print(torch.__version__, torch.cuda.get_device_name())
    for n in (1024, 4096, 8192):
        a, b = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        show(f"einsum bf16 {n}", seconds_of(lambda: a @ b), 2 * n**3, 3 * 2 * n * n)
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
    x = torch.randn(1 << 28, device="cuda")
    y = torch.empty_like(x)
    show("copy f32", seconds_of(lambda: y.copy_(x)), 0, 8 * x.numel())


if __name__ == "__main__":
    main()
