"""What run.py measured as Markdown and JSON.   python table.py peers.json   writes the Markdown again."""

import json
import math
import pathlib
import sys

CONTRACTIONS = ("TCCG", "GEMM", "GEMM, tall and wide", "GEMM, batched", "attention", "other contractions", "chains")
FAMILIES = CONTRACTIONS + ("rearrangements", "small rearrangements", "repeats", "reductions", "reductions of 8 bytes", "convolutions", "convolutions, backward", "windows", "windows, backward", "stencils", "dtypes", "few rows", "fused chains", "fused chains of f64", "fused chains of bf16", "training step", "decoding", "call overhead")
LIBRARIES = ("Eigen", "OpenBLAS", "oneDNN")
ORDER = ("torch", "torch.compile", "torch fused", "torch packed", "numpy", "jax", "opt_einsum", "einops", "ein eager", "ein before", *LIBRARIES, "Eigen, fixed size", "memcpy", "processor")


MOST = 20  # what a ratio above counts for in a mean: no single case should carry it


def most_for(rows):
    """Of calls that are nothing but overhead, all count in full."""
    return math.inf if all(row["family"] == "call overhead" for row in rows) else MOST


def geometric_mean(values, most=MOST):
    values = [min(value, most) for value in values]
    return math.exp(sum(math.log(value) for value in values) / len(values)) if values else math.nan


def time_text(seconds):
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def speed(row, seconds):
    if row["flops"] > 4 * row["bytes"]:
        return f"{row['flops'] / seconds * 1e-9:.3g} GFLOP/s"
    return f"{row['bytes'] / seconds * 1e-9:.3g} GB/s" if row["bytes"] > 1 << 16 else ""


def library_ratio(row):
    """To the fastest of the libraries."""
    found = [row["ratios"][who] for who in LIBRARIES if who in row["ratios"]]
    return min(found) if found else None


def ratio_to(row, who):
    return library_ratio(row) if who == "library" else row["ratios"].get(who)


def line(row):
    if "ein" not in row["times"]:
        return f"{row['name']}: ein failed: {row['failures'].get('ein')}"
    ours = row["times"]["ein"]
    text = f"{row['family']}: {row['name']}: {time_text(ours)} {speed(row, ours)}"
    text += "".join(f"  {who} {row['ratios'][who]:.2f}" for who in ORDER if who in row["ratios"])
    text += "".join(f"  {who}: {why}" for who, why in row["failures"].items())
    text += f"  waited {row['waited']:.2f}" * (row.get("waited", 0) > 0.1)
    return text + (f"  WRONG: {', '.join(row['wrong'])}" if row["wrong"] else "")


class Asked:
    """One of the ratios that are asked for, over some rows."""

    def __init__(self, text, rows, who, mean=None, least=None):
        found = [(ratio_to(row, who), row) for row in rows]
        self.text, self.mean, self.least = text, mean, least
        self.found = [(ratio, row) for ratio, row in found if ratio is not None]
        self.value = geometric_mean((ratio for ratio, _ in self.found), most_for(rows))
        self.below = [row for ratio, row in self.found if least is not None and ratio < least]

    def line(self):
        if not self.found:
            return line_of([self.text, "not measured", "", "", "", ""])
        lowest, row = min(self.found, key=lambda pair: pair[0])
        met = (self.mean is None or self.value >= self.mean) and not self.below
        asked = ", ".join(([f"mean ≥ {self.mean}"] if self.mean else []) + ([f"each ≥ {self.least}"] if self.least else []))
        count = f"{len(self.found) - len(self.below)} of {len(self.found)}" if self.least else f"{len(self.found)}"
        where = f"{lowest:.2f} ({row['name']}; {row['threads']} thread{'s' * (row['threads'] > 1)})"
        return line_of([self.text, asked, f"{self.value:.2f}", where, count, "met" if met else "missed"])


def asked(rows):
    contractions = [row for row in rows if row["family"] in CONTRACTIONS]
    tccg = [row for row in rows if row["family"] == "TCCG"]
    gemm = [row for row in rows if "library" in row["least"]]
    moves = [row for row in rows if row["family"] == "rearrangements"]
    stays = [row for row in moves if row["least"].get("memcpy") == 0.8]
    turns = [row for row in moves if row["least"].get("memcpy") == 0.6]
    few = [row for row in rows if row["family"] == "few rows"]
    tiny = [row for row in rows if "Eigen, fixed size" in row["least"]]
    windows = [row for row in rows if row["family"] in ("convolutions", "windows", "stencils")]
    gradients = [row for row in rows if row["family"] in ("convolutions, backward", "windows, backward")]
    chains = [row for row in rows if row["family"] == "fused chains"]
    others = [row for row in rows if row["family"].startswith("fused chains of")]
    small = [row for row in rows if row["family"] == "call overhead" and "torch" in row["least"]]
    step = [row for row in rows if row["family"] == "training step"]
    lines = [
        Asked("Contractions beside torch.einsum", contractions, "torch", 1.5, 0.9),
        Asked("Contractions beside numpy.einsum(optimize=True)", contractions, "numpy", 1.5),
        Asked("Contractions beside jitted jax.numpy.einsum", contractions, "jax", 1.2),
        Asked("GEMM of 512 and more beside the fastest of Eigen, OpenBLAS, oneDNN", gemm, "library", None, 0.95),
        Asked("TCCG, the compute-bound third, beside the fastest library's GEMM of the same sizes", tccg, "library", 0.8),
        Asked("TCCG beside torch.einsum", tccg, "torch", None, 1.0),
        Asked("Rearrangements whose innermost axis stays, beside memcpy", stays, "memcpy", None, 0.8),
        Asked("Rearrangements whose innermost axis moves, beside memcpy", turns, "memcpy", None, 0.6),
        Asked("Rearrangements beside permute().contiguous()", moves, "torch", None, 1.0),
        Asked("Products of few rows beside torch.einsum", few, "torch", None, 1.0),
        Asked("Products of few rows beside the longer of reading and multiplying", few, "processor", None, 0.85),
        Asked("Batches of 3 x 3 and 4 x 4 beside Eigen's loop of fixed size", tiny, "Eigen, fixed size", None, 1.0),
        Asked("Convolutions and other windows, forward, beside PyTorch", windows, "torch", None, 1.0),
        Asked("Their results and gradients beside PyTorch", gradients, "torch", None, 1.0),
        Asked("Fused chains beside PyTorch eager", chains, "torch", None, 1.5),
        Asked("Fused chains beside torch.compile", chains, "torch.compile", None, 1.0),
        Asked("Fused chains of f64 and bf16 beside PyTorch eager", others, "torch", None, 1.5),
        Asked("einsum of 4 x 4 beside torch.einsum", small, "torch", None, 20),
        Asked("einsum of 4 x 4 beside einops.einsum", small, "einops", None, 20),
        Asked("Training step beside PyTorch eager", step, "torch", None, 2.0),
        Asked("Training step beside torch.compile", step, "torch.compile", None, 1.2),
    ]
    text = [line.line() for line in lines]
    slow = [row for row in small if "ein" in row["times"]]
    if slow:
        most, count = max(row["times"]["ein"] for row in slow), sum(row["times"]["ein"] <= 200e-9 for row in slow)
        text.append(line_of(["einsum of 4 x 4, time", "each ≤ 200 ns", "", time_text(most), f"{count} of {len(slow)}",
                             "met" if count == len(slow) else "missed"]))
    return text


def misses(rows):
    """Ratios below what is asked of the single case, the furthest first."""
    found = []
    for row in rows:
        for who, least in row["least"].items():
            ratio = ratio_to(row, who)
            if ratio is not None and ratio < least:
                found.append((ratio / least, row, who, ratio, least))
    return sorted(found, key=lambda one: one[0])


def mfu(row, machine):
    dtype = "bf16" if "bf16" in row["name"] else "f32"
    peak = machine["limits"].get(str(row["threads"]), {}).get(dtype)
    return row["flops"] / row["times"]["ein"] / peak if peak else math.nan


def head(*titles):
    """A table's first two lines; columns whose title begins with > are numbers."""
    return ["", line_of(title.lstrip(">") for title in titles), line_of("---:" if title.startswith(">") else "---" for title in titles)]


def line_of(cells):
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def peers_of(rows):
    return [who for who in ORDER if any(who in row["ratios"] for row in rows)]


def ratio_text(row, who):
    return f"{row['ratios'][who]:.2f}" if who in row["ratios"] else ""


def preface(report):
    machine, arguments = report["machine"], " ".join(report["arguments"])
    command = "make bench-peers" + (f' PEERS_ARGS="{arguments}"' if arguments else "")
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    out = [f"# Beside peers, {report['date']}", "",
           "Ratios are the other's time over ein's, above 1 where ein is faster: medians over the rounds of one run. "
           "~ marks where others had the processors for more than a tenth of the time of someone's samples. "
           f"In a mean none counts for more than {MOST}, except of calls that are nothing but overhead.", "",
           f"`{command}`, {report.get('seconds', 0) / 60:.0f} minutes. {machine['model']}, {machine['cores']} cores, "
           f"{machine['system']}; {versions}.",
           *head(">threads", ">f32 FMA, GFLOP/s", ">f64 FMA, GFLOP/s", ">bf16 pairs, GFLOP/s", ">read, GB/s", ">copy, GB/s")]
    for count, limits in sorted(machine["limits"].items(), key=lambda item: int(item[0])):
        rates = (f"{limits[key] * 1e-9:.{digits}f}" for key, digits in (("f32", 0), ("f64", 0), ("bf16", 0), ("read", 1), ("copy", 1)))
        out.append(line_of([count, *rates]))
    return out


def means(rows):
    everyone, out = peers_of(rows), []
    families = dict.fromkeys(row["family"] for row in rows)
    for family, members in [("all contractions", CONTRACTIONS)] + [(family, (family,)) for family in families]:
        for count in sorted({row["threads"] for row in rows}):
            own = [row for row in rows if row["threads"] == count and row["family"] in members]
            found = [[row["ratios"][who] for row in own if who in row["ratios"]] for who in everyone]
            if own:
                out.append(line_of([family, count, len(own), *(f"{geometric_mean(ratios, most_for(own)):.2f}" if ratios else "" for ratios in found)]))
    return ["", "## Geometric means", *head("family", ">threads", ">cases", *(">" + who for who in everyone)), *out]


def below(rows):
    out = []
    for _, row, who, ratio, least in misses(rows):
        other = min((name for name in LIBRARIES if name in row["ratios"]), key=row["ratios"].get) if who == "library" else who
        out.append(line_of([f"{row['family']}: {row['name']}", row["threads"], other, f"{ratio:.2f}", least]))
    return ["", "## Below what is asked, the furthest first", *head("case", ">threads", "beside", ">ratio", ">asked"), *out]


def failures(rows):
    out = []
    for row in rows:
        for who, why in [*row["failures"].items(), *((who, "its result differs") for who in row["wrong"])]:
            out.append(line_of([f"{row['family']}: {row['name']}", row["threads"], who, why.replace("|", "/")]))
    return ["", "## What failed", *head("case", ">threads", "who", "why"), *out] if out else []


def each_case(rows, machine):
    out = []
    for family in dict.fromkeys(row["family"] for row in rows):
        own = [row for row in rows if row["family"] == family]
        everyone = peers_of(own)
        out += ["", f"## {family}", *head("case", ">threads", ">ein", ">", *(">" + who for who in everyone))]
        for row in own:
            ours = row["times"]["ein"]
            note = speed(row, ours)
            if family == "training step":
                note = f"{math.prod(row['shapes'][0]) / ours:.0f} tokens/s, MFU {mfu(row, machine):.2f}"
            if family == "decoding":
                note = f"{ours / math.prod(row['shapes'][0]) * 1e6:.0f} µs a token"
            if family in ("convolutions", "windows", "stencils"):  # what a call takes beside its operands and its result
                note += f", {row['memory'] / 2**20:.2f} MiB"
            name = row["name"] + " ~" * (row.get("waited", 0) > 0.1)
            out.append(line_of([name, row["threads"], time_text(ours), note, *(ratio_text(row, who) for who in everyone)]))
    return out


def markdown(report):
    place = {family: i for i, family in enumerate(FAMILIES)}
    rows = sorted((row for row in report["rows"] if "ein" in row["times"]), key=lambda row: place.get(row["family"], len(place)))
    wanted = ["", "## What is asked", *head("", "asked", ">geometric mean", "lowest", ">reached", ""), *asked(rows)]
    parts = [preface(report), wanted, means(rows), below(rows), failures(report["rows"]), each_case(rows, report["machine"])]
    return "\n".join(line for part in parts for line in part) + "\n"


def read_into(report, folder):
    """Takes over what the report in `folder` has."""
    before = json.loads((folder / "peers.json").read_text(encoding="utf-8"))
    report["rows"] = before["rows"]
    for key in "versions", "limits":
        report["machine"][key] = before["machine"][key] | report["machine"][key]


def put(report, row):
    """A row in the place of one of the same case, or at the end."""
    same = [i for i, other in enumerate(report["rows"]) if all(other[key] == row[key] for key in ("family", "name", "threads"))]
    if same:
        report["rows"][same[0]] = row
    else:
        report["rows"].append(row)


def replace(path, text):
    """Writes a file that is whole at any moment."""
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def write(report, folder):
    """The JSON has a line for each case."""
    heading = json.dumps({key: value for key, value in report.items() if key != "rows"}, indent=1)
    rows = ",\n  ".join(json.dumps(row) for row in report["rows"])
    replace(folder / "peers.json", heading[:-2] + ',\n "rows": [\n  ' + rows + "\n ]\n}\n")
    replace(folder / "peers.md", markdown(report))


if __name__ == "__main__":
    path = pathlib.Path(sys.argv[1])
    path.with_suffix(".md").write_text(markdown(json.loads(path.read_text(encoding="utf-8"))), encoding="utf-8")
