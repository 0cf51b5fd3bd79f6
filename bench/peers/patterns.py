"""ein's patterns in the terms of other libraries: letters for their einsum, reshapes and permutations for the rest."""

import math
import string

import numpy as np

# NumPy's dtypes by ein's names; it has no bf16.
NUMPY = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "i64": np.int64, "i32": np.int32, "i16": np.int16,
         "i8": np.int8, "u8": np.uint8, "bool": np.bool_}


def einsum_letters(pattern):
    """"b s1 h, b s2 h -> b s1 s2" as "abc,adc->abd"."""
    letters = {}

    def side(text):
        return "".join(letters.setdefault(axis, string.ascii_letters[len(letters)]) for axis in text.split())

    inputs, output = pattern.split("->")
    return ",".join(side(part) for part in inputs.split(",")) + "->" + side(output)


def groups(side):
    """"b (h d)" as [["b"], ["h", "d"]]."""
    found, inside = [], None
    for word in side.replace("(", " ( ").replace(")", " ) ").split():
        if word == "(":
            inside = []
        elif word == ")":
            found.append(inside)
            inside = None
        else:
            (found.append([word]) if inside is None else inside.append(word))
    return found


class Steps:
    """A rearrange, repeat or reduce pattern as: reshape to `split`, sum or so over `reduced`, permute by `order`, put new
    axes so that the shape is `spread` (`unsqueezed` has 1 in their place), reshape to `final`."""

    def __init__(self, pattern, shape, sizes):
        left, right = (groups(side) for side in pattern.split("->"))
        names = [[f"{name}@{g}" if name.isdigit() else name for name in group] for g, group in enumerate(left)]
        known = dict(sizes)
        for group, original, size in zip(names, left, shape):
            known |= {name: int(word) for name, word in zip(group, original) if word.isdigit()}
            missing = [name for name in group if name not in known]
            rest = math.prod(known[name] for name in group if name in known)
            if missing:
                known[missing[0]] = size // rest
        flat = [name for group in names for name in group]
        self.split = [known[name] for name in flat]
        out = []
        for g, group in enumerate(right):
            for name in group:
                if name.isdigit():
                    known[f"{name}@new{g}"] = int(name)
                    name = f"{name}@new{g}"
                out.append(name)
        lengths = iter(out)
        self.final = [math.prod(known[next(lengths)] for _ in group) for group in right]
        self.reduced = [i for i, name in enumerate(flat) if name not in out]
        kept = [name for name in flat if name in out]
        self.order = [kept.index(name) for name in out if name in kept]
        self.spread = [known[name] for name in out]
        self.unsqueezed = [known[name] if name in kept else 1 for name in out]
        self.repeats = self.spread != self.unsqueezed
