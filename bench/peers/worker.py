"""One peer library in a process of its own, which run.py asks as it asks ein's server: one JSON object a line.

    python worker.py torch 2        the library, the number of threads
"""

import json
import os
import sys
import time

import numpy as np

from patterns import NUMPY, Steps, einsum_letters


class Numpy:
    """`make` returns what is called, and a function from its result to a list of arrays."""

    def __init__(self, threads):
        self.version = {"numpy": np.__version__}

    def load(self, paths):
        return [np.load(path) for path in paths]

    def make(self, who, case, inputs):
        op, pattern = case["op"], case["pattern"]
        if op == "small":
            return {"reduce": lambda: inputs[0].sum((0, 2)), "add": lambda: inputs[0] + inputs[1],
                    "rearrange (a view)": lambda: inputs[0].transpose(2, 1, 0)}.get(case["name"]) or self.einsum(pattern, inputs)
        if op == "einsum":
            return self.einsum(pattern, inputs)
        if op == "elements":
            return self.elements(case, *inputs)
        (x,) = inputs
        steps = Steps(pattern, x.shape, case["sizes"])
        if op == "reduce":
            reduce = getattr(np, case["reduction"])
            return lambda: reduce(x.reshape(steps.split), axis=tuple(steps.reduced))
        if steps.repeats:
            return lambda: np.ascontiguousarray(np.broadcast_to(
                x.reshape(steps.split).transpose(steps.order).reshape(steps.unsqueezed), steps.spread)).reshape(steps.final)
        return lambda: np.ascontiguousarray(x.reshape(steps.split).transpose(steps.order)).reshape(steps.final)

    def elements(self, case, x, *more):
        name = case["name"]
        if name == "to":
            dtype = NUMPY[case["to"]]
            return lambda: x.astype(dtype)
        if name == "where":
            return lambda: np.where(more[1], x, more[0])
        if name in ("argmax", "cumsum"):
            return lambda: getattr(np, name)(x, -1)
        function = getattr(np, {"mul": "multiply"}.get(name, name))
        return lambda: function(x, *more)

    def einsum(self, pattern, inputs):
        text = einsum_letters(pattern)
        if len(inputs) == 1:  # maybe a view
            return lambda: np.array(np.einsum(text, *inputs, optimize=True), order="C", copy=None)
        return lambda: np.einsum(text, *inputs, optimize=True)

    def arrays(self, result):
        return [np.asarray(x) for x in (result if isinstance(result, (list, tuple)) else [result])]


class Torch:
    def __init__(self, threads):
        import torch
        import einops
        import opt_einsum
        self.torch, self.einops, self.opt_einsum = torch, einops, opt_einsum
        torch.set_num_threads(threads)
        self.version = {"torch": torch.__version__, "einops": einops.__version__, "opt_einsum": opt_einsum.__version__}

    def load(self, paths):
        self.torch.compiler.reset()  # else another case's shapes become sizes that may vary
        return [self.torch.from_numpy(np.load(path)) for path in paths]

    def make(self, who, case, inputs):
        op, pattern, name, torch = case["op"], case["pattern"], case["name"], self.torch
        if case.get("dtype") == "bf16" and op != "train":
            inputs = [x.to(torch.bfloat16) if x.is_floating_point() else x for x in inputs]
        if op == "small":
            if who == "einops":
                if name.startswith("einsum"):
                    return lambda: self.einops.einsum(*inputs, pattern)
                if name == "reduce":
                    return lambda: self.einops.reduce(inputs[0], pattern, "sum")
                return lambda: self.einops.rearrange(inputs[0], pattern)
            direct = {"reduce": lambda: inputs[0].sum((0, 2)), "add": lambda: inputs[0] + inputs[1],
                      "rearrange (a view)": lambda: inputs[0].permute(2, 1, 0)}.get(name)
            return direct or self.einsum(who, pattern, inputs)
        if op == "einsum":
            return self.einsum(who, pattern, inputs)
        if op == "elements":
            return self.elements(case, *inputs)
        if op == "windows":
            return self.windows(who, case, inputs)
        if op == "fused":
            return self.fused(who, case, inputs)
        if op == "adamw":
            return self.adamw(who, inputs)
        if op == "train":
            return self.train(who, case, inputs)
        if op == "decode":
            return self.decode(case, inputs)
        (x,) = inputs
        if who == "einops":
            if op == "reduce":
                return lambda: self.einops.reduce(x, pattern, case["reduction"])
            return lambda: getattr(self.einops, op)(x, pattern, **case["sizes"]).contiguous()
        steps = Steps(pattern, x.shape, case["sizes"])
        if op == "reduce":
            reduction = case["reduction"]
            reduce = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax, "any": torch.any, "all": torch.all}[reduction]
            dtype = {"dtype": torch.float32} if reduction == "mean" and not x.is_floating_point() else {}
            return lambda: reduce(x.view(steps.split), dim=steps.reduced, **dtype)
        if steps.repeats:
            return lambda: (x.view(steps.split).permute(steps.order).view(steps.unsqueezed).expand(steps.spread)
                            .contiguous().view(steps.final))
        return lambda: x.view(steps.split).permute(steps.order).contiguous().view(steps.final)

    def elements(self, case, x, *more):
        name, torch = case["name"], self.torch
        if name == "to":
            dtype = torch.bfloat16 if case["to"] == "bf16" else torch.from_numpy(np.empty(0, NUMPY[case["to"]])).dtype
            return lambda: x.to(dtype)
        if name == "where":
            return lambda: torch.where(more[1], x, more[0])
        if name in ("argmax", "cumsum"):
            return lambda: getattr(torch, name)(x, -1)
        return lambda: getattr(torch, name)(x, *more)

    def einsum(self, who, pattern, inputs):
        text = einsum_letters(pattern)
        if who == "opt_einsum":
            return lambda: self.opt_einsum.contract(text, *inputs)
        if who == "einops":
            return lambda: self.einops.einsum(*inputs, pattern)
        if len(inputs) == 1:  # maybe a view
            return lambda: self.torch.einsum(text, *inputs).contiguous()
        return lambda: self.torch.einsum(text, *inputs)

    def windows(self, who, case, inputs):
        """Operands are brought to PyTorch's order beforehand; results are views in ein's."""
        torch, F = self.torch, self.torch.nn.functional
        step, margin = case.get("step", 1), case.get("margin", 0)
        last = torch.channels_last
        conv2d = lambda x, w: F.conv2d(x, w, None, step, margin)
        single = lambda x, w: F.conv2d(x, w, None, 1, margin, 1, len(w))
        causal = lambda x, w: F.conv1d(F.pad(x, (len(w[0, 0]) - 1, 0)), w, groups=len(w))
        greatest = lambda x: F.max_pool2d(x, 3, 2, 1)
        mean = lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)
        same = lambda x: x
        nhwc = (lambda x: x.permute(0, 3, 1, 2), lambda x: x.permute(0, 2, 3, 1))
        # The function, then for images and for weights the ways to PyTorch's order and back.
        function, image, weights = {
            "nhwc": (conv2d, nhwc, (lambda w: w.permute(3, 2, 0, 1).contiguous(memory_format=last), lambda w: w.permute(2, 3, 1, 0))),
            "nchw": (conv2d, (same, same), (same, same)),
            "depthwise nhwc": (single, nhwc, (lambda w: w.permute(2, 0, 1)[:, None].contiguous(memory_format=last),
                                              lambda w: w[:, 0].permute(1, 2, 0))),
            "depthwise nchw": (single, (same, same), (lambda w: w[:, None], lambda w: w[:, 0])),
            "causal btc": (causal, (lambda x: x.mT, lambda x: x.mT), (lambda w: w.T.contiguous()[:, None], lambda w: w[:, 0].T)),
            "causal bct": (causal, (same, same), (lambda w: w[:, None], lambda w: w[:, 0])),
            "max nhwc": (greatest, nhwc, None), "max nchw": (greatest, (same, same), None),
            "mean nhwc": (mean, nhwc, None), "mean nchw": (mean, (same, same), None),
            "stencil": (conv2d, (lambda x: x[None, None], lambda x: x[0, 0]), (lambda w: w[None, None], lambda w: w[0, 0])),
            "line": (lambda x, w: F.conv1d(x, w, None, 1, margin), (lambda x: x[None, None], lambda x: x[0, 0]),
                     (lambda w: w[None, None], lambda w: w[0, 0])),
        }[case["as"]]
        ways = [image, weights][:2 if weights else 1]
        operands = [way[0](x) for way, x in zip(ways, inputs)]
        if who == "torch packed":  # oneDNN, on weights that are in its own order already
            x, w = operands
            packed = torch.ops.mkldnn._reorder_convolution_weight(w, [margin] * 2, [step] * 2, [1] * 2, 1, list(x.shape))
            return lambda: image[1](torch.ops.mkldnn._convolution_pointwise(
                x, packed, None, [margin] * 2, [step] * 2, [1] * 2, 1, "none", [], ""))
        if not case.get("backward"):
            def forward():
                with torch.no_grad():
                    return image[1](function(*operands))
            return forward
        operands = [x.detach().requires_grad_() for x in operands]
        cotangent = image[0](inputs[-1])

        def both():
            result = function(*operands)
            gradients = torch.autograd.grad(result, operands, cotangent)
            return [image[1](result), *(way[1](g) for way, g in zip(ways, gradients))]
        return both

    def fused(self, who, case, inputs):
        torch = self.torch
        F = torch.nn.functional
        functions = {
            "softmax": (1, lambda x: F.softmax(x, -1)),
            "layer_norm": (3, lambda x, w, b: F.layer_norm(x, w.shape, w, b)),
            "rms_norm": (2, lambda x, w: F.rms_norm(x, w.shape, w, 1e-6)),
            "gelu": (1, F.gelu),
            "bias_gelu": (2, lambda x, b: F.gelu(x + b)),
            "attention": (3, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)),
            "residual_norm": (4, lambda x, r, w, b: (x + r, F.layer_norm(x + r, w.shape, w, b)) if who == "torch.compile"
                              else (lambda s: (s, F.layer_norm(s, w.shape, w, b)))(x + r)),
            "cross_entropy": (1, lambda x, y: F.cross_entropy(x, y)),
            # Of all pairs of rows; the fastest of PyTorch's ways that give these values.
            "distances": (2, lambda x, y: torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist").square()),
            "max_plus": (2, lambda a, b: (a[:, None, :] + b.T[None]).amax(-1)),
            "logsumexp_plus": (2, lambda a, b: (a[:, None, :] + b.T[None]).logsumexp(-1)),
            "kernel_sums": (3, lambda x, y, v: torch.exp(-(x[:, None, :] - y[None]).square().sum(-1)) @ v),
        }
        count, function = functions[case["name"]]
        if who == "torch.compile":
            function = torch.compile(function, dynamic=False)
        if not case["backward"]:
            def forward():
                with torch.no_grad():
                    return function(*inputs)
            return forward
        operands = [x.requires_grad_() for x in inputs[:count]]
        extra = inputs[count:count + 1] if case["name"] == "cross_entropy" else []
        cotangents = inputs[count + len(extra):] or [None]

        def both():
            results = function(*operands, *extra)
            results = results if isinstance(results, tuple) else (results,)
            return results + torch.autograd.grad(results, operands, cotangents)
        return both

    def adamw(self, who, inputs):
        torch = self.torch
        count = len(inputs) // 2
        parameters = [x.clone().requires_grad_() for x in inputs[:count]]
        for parameter, gradient in zip(parameters, inputs[count:]):
            parameter.grad = gradient
        optimizer = torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.1, fused=True if who == "torch fused" else None)
        step = torch.compile(optimizer.step) if who == "torch.compile" else optimizer.step

        def run():
            step()
            return parameters
        return run

    def train(self, who, case, inputs):
        import train_gpt
        torch = self.torch
        tokens, targets = inputs
        model = self.model(case)
        parameters, optimizer = train_gpt.make_optimizer(model, 1e-3)
        model = torch.compile(model) if who == "torch.compile" else model

        def run():
            with train_gpt.autocast(case["dtype"] == "bf16"):
                loss = model(tokens, targets)
            train_gpt.update(loss, parameters, optimizer)
            return loss.detach()
        return run

    def model(self, case):
        import train_gpt
        model = train_gpt.GPT(case["vocabulary"], case["block_size"], case["n_layer"], case["n_head"], case["n_embd"], True)
        train_gpt.load_weights(model, case["weights"], "in-out")
        return model

    def decode(self, case, inputs):
        """All of a text, token by token; the logits after the last."""
        model, tokens = self.model(case), inputs[0].view(-1, 1, 1)

        def run():
            with self.torch.no_grad():
                caches = [[] for _ in model.transformer.h]
                for position, token in enumerate(tokens):
                    logits = model.next_logits(token, position, caches)
            return logits
        return run

    def arrays(self, result):
        results = [x.detach() for x in (result if isinstance(result, (list, tuple)) else [result])]
        return [(x.float() if x.dtype == self.torch.bfloat16 else x).numpy() for x in results]


class Jax:
    def __init__(self, threads):
        import jax
        # Each call is waited for, so that handing it to another thread would only take time.
        jax.config.update("jax_cpu_enable_async_dispatch", False)
        self.jax, self.version = jax, {"jax": jax.__version__}

    def load(self, paths):
        return [self.jax.numpy.asarray(np.load(path)) for path in paths]

    def make(self, who, case, inputs):
        function = self.jax.jit(self.function(case, inputs))
        if case["op"] == "adamw":
            parameters, gradients = inputs[:len(inputs) // 2], inputs[len(inputs) // 2:]
            moments = [self.jax.numpy.zeros_like(x) for x in parameters]
            return lambda: self.jax.block_until_ready(function(parameters, gradients, moments, moments))[0]
        return lambda: self.jax.block_until_ready(function(*inputs))

    def function(self, case, inputs):
        jax, op, pattern = self.jax, case["op"], case["pattern"]
        jnp = jax.numpy
        if op == "small" and not case["name"].startswith("einsum"):
            return {"reduce": lambda x: x.sum((0, 2)), "add": lambda x, y: x + y}[case["name"]]
        if op in ("einsum", "small"):
            text = einsum_letters(pattern)
            return lambda *x: jnp.einsum(text, *x)
        if op == "adamw":
            return self.adamw
        if op == "fused":
            return self.fused(case)
        steps = Steps(pattern, inputs[0].shape, case["sizes"])
        if op == "reduce":
            reduce = getattr(jnp, case["reduction"])
            return lambda x: reduce(x.reshape(steps.split), axis=tuple(steps.reduced))
        return lambda x: jnp.broadcast_to(x.reshape(steps.split).transpose(steps.order).reshape(steps.unsqueezed),
                                          steps.spread).reshape(steps.final)

    def fused(self, case):
        jax = self.jax
        jnp = jax.numpy

        def norm(x, w, b):
            centered = x - x.mean(-1, keepdims=True)
            return centered * jax.lax.rsqrt((centered * centered).mean(-1, keepdims=True) + 1e-5) * w + b

        def attention(q, k, v):
            scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5
            seen = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -jnp.inf)
            return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(seen, -1), v)

        functions = {
            "softmax": (1, lambda x: jax.nn.softmax(x, -1)),
            "layer_norm": (3, norm),
            "rms_norm": (2, lambda x, w: x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w),
            "gelu": (1, lambda x: jax.nn.gelu(x, approximate=False)),
            "bias_gelu": (2, lambda x, b: jax.nn.gelu(x + b, approximate=False)),
            "attention": (3, attention),
            "residual_norm": (4, lambda x, r, w, b: (x + r, norm(x + r, w, b))),
            "cross_entropy": (1, lambda x, y: (jax.nn.logsumexp(x, -1) - jnp.take_along_axis(x, y[:, None], 1)[:, 0]).mean()),
        }
        count, function = functions[case["name"]]
        if not case["backward"]:
            return function
        if case["name"] == "cross_entropy":
            return jax.value_and_grad(function)

        def both(*inputs):
            results, pull = jax.vjp(function, *inputs[:count])
            cotangents = inputs[count:]
            tuples = isinstance(results, tuple)
            return (results if tuples else (results,)) + pull(tuple(cotangents) if tuples else cotangents[0])
        return both

    def adamw(self, parameters, gradients, first, second):
        """A first step; all that an optimizer changes is a result."""
        first = [0.9 * m + 0.1 * g for m, g in zip(first, gradients)]
        second = [0.999 * v + 0.001 * g * g for v, g in zip(second, gradients)]
        updated = [p * (1 - 1e-3 * 0.1) - 1e-3 * (m / (1 - 0.9)) / (self.jax.numpy.sqrt(v / (1 - 0.999)) + 1e-8)
                   for p, m, v in zip(parameters, first, second)]
        return updated, first, second

    def arrays(self, result):
        return [np.asarray(x) for x in (result if isinstance(result, (list, tuple)) else [result])]


def sample(arrays, most, step):
    """The elements by which results are compared, in f64: all of a small one, else some from all over it."""
    picked = []
    for array in arrays:
        flat = np.ascontiguousarray(array).reshape(-1)
        if np.iscomplexobj(flat):  # the parts in turn
            flat = flat.view(flat.real.dtype)
        if flat.size > most:
            flat = flat[np.arange(most, dtype=np.uint64) * np.uint64(step) % np.uint64(flat.size)]
        picked.append(flat.astype(np.float64))
    return np.concatenate(picked)


class Worker:
    def __init__(self, peer):
        self.peer, self.inputs, self.made = peer, [], {}

    def answer(self, request):
        return getattr(self, request["do"])(request) or {}

    def describe(self, request):
        return {"versions": self.peer.version}

    def load(self, request):
        self.made.clear()
        self.inputs = self.peer.load(request["inputs"])

    def prepare(self, request):
        call = self.peer.make(request["who"], request["case"], self.inputs)
        self.made[request["who"]] = call
        begin = time.perf_counter()
        result = call()
        first = time.perf_counter() - begin
        arrays = self.peer.arrays(result)
        np.save(request["save"], sample(arrays, request["most"], request["step"]))
        shapes = [list(array.shape) for array in arrays]
        del arrays, result
        if first > request["long"]:  # warm enough: what comes first is done in the rounds, too
            return {"shapes": shapes, "calls": 1, "seconds": first}
        calls, wanted = 1, request["seconds"]
        seconds = min(self.run(call, calls))  # the clock's, unless something else had the processor meanwhile
        while seconds < wanted and calls < 1 << 24:
            calls = max(calls + 1, min(8 * calls, int(1.2 * wanted / max(seconds, 1e-9) * calls)))
            seconds = min(self.run(call, calls))
        return {"shapes": shapes, "calls": calls, "seconds": seconds / calls}

    def time(self, request):
        wall, processor = self.run(self.made[request["who"]], request["calls"])
        return {"wall": wall, "processor": processor}

    @staticmethod
    def run(call, calls):
        wall, processor = time.perf_counter(), time.process_time()
        for _ in range(calls):
            call()
        return time.perf_counter() - wall, time.process_time() - processor


def main():
    library, threads = sys.argv[1], int(sys.argv[2])
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a library prints is no reply
    try:
        worker = Worker({"numpy": Numpy, "torch": Torch, "jax": Jax}[library](threads))
        failure = None
    except Exception as error:  # a library that is not installed
        failure = f"{type(error).__name__}: {error}"
    for line in sys.stdin:
        try:
            reply = {"error": failure} if failure else worker.answer(json.loads(line))
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:300]}
        replies.write(json.dumps(reply) + "\n")


if __name__ == "__main__":
    main()
