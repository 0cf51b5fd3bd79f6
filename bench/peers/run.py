"""ein beside its peers: each case in ours and in each peer by turns, on the same data and as many threads.

    make bench-peers                                all of it, into build/peers
    make bench-peers PEERS_ARGS="--quick"           smaller sizes and fewer rounds
    make bench-peers PEERS_ARGS="--only softmax"    cases whose family or name has the text

Every library has a process of its own, which is stopped while another is measured, so that no idle pool of threads spins
beside it. A round measures each once, in an order that changes; a ratio is the peer's time over ein's in the same round, and
the figure is the median over the rounds. On one thread a time is the processor's where that is less than the clock's, so that
other work on the machine does not count; on several, the clock's, of samples during which others hardly had the processors
where there are such. Every result is compared with PyTorch's, or with that of the first library that has one.
"""

import argparse
import ctypes
import datetime
import json
import math
import os
import pathlib
import platform
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import cases as all_of
import table
from patterns import NUMPY

HERE = pathlib.Path(__file__).parent
SAMPLE = {"most": 1 << 18, "step": 2654435761}  # elements compared of each result, and the stride that picks them
LONG = 0.5  # seconds of a call from which on it is not tried out before the rounds
BEFORE = "ein before"  # another build of ein's side
# In whose process each contender runs; the order in which results are trusted.
PLACES = {"ein": "ein", "torch": "torch", "numpy": "numpy", "jax": "jax", "torch.compile": "torch", "torch fused": "torch",
          "torch packed": "torch",
          "opt_einsum": "torch", "einops": "torch", "ein eager": "ein", "Eigen": "limits", "OpenBLAS": "limits",
          "oneDNN": "limits", "memcpy": "limits", "processor": "limits", "Eigen, fixed size": "limits", BEFORE: "before"}
NO_RESULT = ("memcpy", "processor")  # limits that compute something else


# How each library is held to the instructions of a level of x86-64.
LEVELS = {"v2": {"EIN_ISA": "v2", "ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
                 "OPENBLAS_CORETYPE": "Nehalem", "XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2"},
          "v3": {"EIN_ISA": "v3", "ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2",
                 "OPENBLAS_CORETYPE": "Haswell", "XLA_FLAGS": "--xla_cpu_max_isa=AVX2"}}


class Failure(Exception):
    pass


def die_with_parent():
    """Lets no stopped child stay when this process is killed."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


# Settings that someone may have left in the environment for one library, and that would make the comparison another one.
FOREIGN = ("OPENBLAS_", "MKL_", "ATEN_", "DNNL_", "ONEDNN_", "OMP_", "GOMP_", "KMP_", "XLA_", "JAX_", "NPY_", "NUMEXPR_", "TORCH")


class Process:
    """A library's process, started when it is first asked, stopped whenever it is not being asked."""

    def __init__(self, place, threads, options):
        self.place, self.threads, self.options, self.child = place, threads, options, None

    def start(self):
        count = str(self.threads)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        environment |= {"OMP_NUM_THREADS": count, "OPENBLAS_NUM_THREADS": count, "MKL_NUM_THREADS": count,
                        "NPROC": count, "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""}
        environment["TORCHINDUCTOR_CACHE_DIR"] = str(self.options.out / "inductor")
        environment |= LEVELS.get(self.options.isa, {})
        if self.threads == 1:
            environment["XLA_FLAGS"] = environment.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false"
        openblas = sorted((pathlib.Path(np.__file__).parent.parent / "numpy.libs").glob("libscipy_openblas*"))
        if openblas:  # the same library that NumPy calls
            environment.setdefault("EIN_OPENBLAS", str(openblas[0]))
        ours = {"ein": self.options.server, "limits": self.limits(), "before": self.options.before}.get(self.place)
        words = [ours] if ours else [sys.executable, str(HERE / "worker.py"), self.place, count]
        self.log = open(self.options.out / f"{self.place}.log", "ab")
        self.child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
                                      env=environment, bufsize=0, preexec_fn=die_with_parent)
        self.rest = b""
        if ours:
            self.ask({"do": "threads", "n": self.threads}, 60)

    def limits(self):
        """The server whose Eigen was compiled for the level that all are held to."""
        return self.options.server + ("_" + self.options.isa if self.options.isa else "")

    def ask(self, request, seconds):
        if self.child is None:
            self.start()
        self.child.send_signal(signal.SIGCONT)
        try:
            if self.place == "before" and "who" in request:
                request = request | {"who": "ein"}
            self.child.stdin.write(json.dumps(request).encode() + b"\n")
            answer = json.loads(self.line(time.monotonic() + seconds))
        except (BrokenPipeError, EOFError):
            code = self.end()
            raise Failure(f"the process ended with {code}") from None
        except TimeoutError:
            self.end()
            raise Failure(f"took more than {seconds:.0f} s") from None
        self.child.send_signal(signal.SIGSTOP)
        if "error" in answer:
            raise Failure(answer["error"])
        return answer

    def scheduled(self):
        """By thread: nanoseconds that it ran, and that it was ready to run and had no processor."""
        found = {}
        for path in pathlib.Path(f"/proc/{self.child.pid}/task").glob("*/schedstat"):
            try:
                ran, waited, _ = map(int, path.read_text().split())
                found[int(path.parent.name)] = (ran, waited)
            except (OSError, ValueError):  # a thread that has just ended, or a system that does not say
                pass
        return found

    @staticmethod
    def seat(threads, spread):
        """Puts threads on different processors in turn, or leaves them free again. Where all processors are busy, the system
        may leave two threads that wait for each other on one of them."""
        processors = sorted(os.sched_getaffinity(0))
        for i, thread in enumerate(threads):
            try:
                os.sched_setaffinity(thread, {processors[i % len(processors)]} if spread else processors)
            except OSError:  # a thread that has just ended
                pass

    def time(self, who, calls, threads, options):
        """Seconds of a call, and for which share of them a thread waited, on average. On several threads another program that
        wants the processors shows in full, so a sample in which threads had to wait is taken again, a few times, and the
        least disturbed counts."""
        best, least = None, math.inf
        for _ in range(options.tries if threads > 1 else 1):
            before = self.scheduled()
            clocks = self.ask({"do": "time", "who": who, "calls": calls}, options.limit)
            after = self.scheduled()
            changes = {thread: [new - old for new, old in zip(after[thread], before.get(thread, (0, 0)))] for thread in after}
            disturbed = sum(waited for _, waited in changes.values()) * 1e-9 / clocks["wall"] / threads
            if disturbed < least:
                best, least = clocks, disturbed
            if least < 0.02 or clocks["wall"] > 1:
                break
            self.seat(sorted(changes, key=lambda thread: changes[thread][0], reverse=True), True)
        self.seat(changes, False)
        return (min(best.values()) if threads == 1 else best["wall"]) / calls, least

    def line(self, end):
        while b"\n" not in self.rest:
            if not select.select([self.child.stdout], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError
            part = os.read(self.child.stdout.fileno(), 1 << 16)
            if not part:
                raise EOFError
            self.rest += part
        line, self.rest = self.rest.split(b"\n", 1)
        return line

    def end(self):
        if self.child is None:
            return None
        self.child.kill()
        code = self.child.wait()
        self.child.stdin.close()
        self.child.stdout.close()
        self.log.close()
        self.child = None
        return code


class Runner:
    def __init__(self, options, scratch):
        self.options, self.scratch, self.processes = options, scratch, {}

    def process(self, place, threads):
        return self.processes.setdefault((place, threads), Process(place, threads, self.options))

    def end(self, threads):
        for (_, count), process in self.processes.items():
            if count == threads:
                process.end()

    def write_inputs(self, case):
        random = np.random.default_rng(len(case.name))
        paths = []
        for i, shape in enumerate(case.shapes):
            kind, *most = case.data.get(i, ("normal",))
            if kind == "below":
                array = random.integers(0, most[0], shape, NUMPY.get(most[1]) if len(most) > 1 else np.int64)
            elif kind in ("c64", "c128"):
                parts = random.standard_normal((*shape, 2), np.float32 if kind == "c64" else np.float64)
                array = parts.view(np.complex64 if kind == "c64" else np.complex128)[..., 0]
            else:
                array = random.standard_normal(shape, np.float64 if kind == "f64" else np.float32)
            if kind == "positive":
                array = np.abs(array)
            elif kind == "f16":
                array = (np.abs(array) / 256).astype(np.float16)  # 8 million of them can be summed
            paths.append(str(self.scratch / f"{i}.npy"))
            np.save(paths[-1], array)
        return paths

    def measure(self, case, threads):
        """One row of the table."""
        begin = time.monotonic()
        options = self.options
        contenders = {}
        for who in ("ein", *([BEFORE] if options.before else []), *case.peers, *case.limits):
            if who in PLACES and (not options.peers or who in options.peers or who in ("ein", BEFORE) or who in case.limits):
                contenders[who] = self.process(PLACES[who], threads)
        row = {"family": case.family, "name": case.name, "pattern": case.pattern, "shapes": case.shapes, "threads": threads,
               "flops": case.flops, "bytes": case.bytes, "least": case.least, "times": {}, "ratios": {}, "failures": {}, "wrong": []}
        request = case.request()
        if case.op in ("train", "decode"):
            weights = str(self.scratch / "weights.safetensors")
            request |= {"write_weights": weights, "weights": weights}
        paths = self.write_inputs(case)
        loaded, calls, shapes, samples = set(), {}, {}, {}
        for who, process in list(contenders.items()):
            try:
                if process not in loaded:
                    process.ask({"do": "load", "inputs": paths}, options.limit)
                    loaded.add(process)
                path = self.scratch / "result.npy"
                answer = process.ask({"do": "prepare", "who": who, "case": request, "save": str(path),
                                      "seconds": options.sample, "long": LONG} | SAMPLE, options.limit)
                shapes[who], calls[who], samples[who] = answer["shapes"], answer["calls"], np.load(path)
                row["flops"] = answer.get("flops") or row["flops"]
                row["times"][who] = answer["seconds"]
                if who == "ein":
                    row["memory"] = answer["memory"]
            except Failure as failure:
                row["failures"][who] = str(failure)
                for other in [name for name in contenders if contenders[name] is process and process.child is None]:
                    if other in calls:
                        row["failures"][other] = "lost with the process"
                        del calls[other], row["times"][other]
                    loaded.discard(process)
        self.compare(case, row, shapes, samples)
        self.race(row, contenders, calls, begin)
        row["seconds"] = time.monotonic() - begin
        return row

    def compare(self, case, row, shapes, samples):
        known = [who for who in PLACES if who in samples and who not in ("ein", "ein eager", BEFORE)]
        own_data = case.limits if case.more.get("gemm", {}).get("own_data") else ()
        known = [who for who in known if who not in own_data and who not in NO_RESULT]
        if not known:
            return
        reference = known[0]
        for who in samples:
            if who in own_data or who in NO_RESULT:
                continue
            same = samples[who].shape == samples[reference].shape and shapes[who] == shapes[reference]
            if same:
                largest = np.max(np.abs(samples[reference]), initial=0)
                difference = np.max(np.abs(samples[who] - samples[reference]), initial=0)
                same = bool(difference <= case.tolerance * largest)
            if not same:
                row["wrong"].append(who)

    def race(self, row, contenders, calls, begin):
        if "ein" not in calls:
            return
        options = self.options
        one_round = sum(row["times"][who] * count * (2 if self.is_short(row, who) else 1) for who, count in calls.items())
        rounds = max(options.least_rounds, min(options.rounds, int(options.budget / max(one_round, 1e-9))))
        if one_round > 8:
            rounds = 2
        samples, waits = {who: [] for who in calls}, {who: [] for who in calls}
        for number in range(rounds):
            names = list(samples)
            shift = number % len(names)
            for who in (names[shift:] + names[:shift])[::1 if number % 2 else -1]:
                try:
                    if self.is_short(row, who):  # what others have put out of the caches comes back
                        contenders[who].ask({"do": "time", "who": who, "calls": max(1, calls[who] // 8)}, options.limit)
                    seconds, waited = contenders[who].time(who, calls[who], row["threads"], options)
                except Failure as failure:
                    row["failures"][who] = str(failure)
                    del samples[who], row["times"][who]
                    continue
                samples[who].append(seconds)
                waits[who].append(waited)
        row["rounds"] = {who: [float(f"{one:.4g}") for one in seconds] for who, seconds in samples.items()}
        row["waited"] = max(statistics.median(waits[who]) for who in samples) if row["threads"] > 1 and samples else 0
        for who, seconds in samples.items():
            row["times"][who] = statistics.median(seconds)
            if who != "ein" and "ein" in samples:
                row["ratios"][who] = statistics.median(a / b for a, b in zip(seconds, samples["ein"]))

    @staticmethod
    def is_short(row, who):
        return row["times"][who] < 0.1


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="Results: OUT/peers.md and OUT/peers.json.")
    parser.add_argument("--server", default="build/bench/ein_peer_server", help="ein's side")
    parser.add_argument("--before", help="ein's side of another build, as one more contender: what a change gained or cost")
    parser.add_argument("--isa", choices=sorted(LEVELS), help="hold ein and its peers to the instructions of a level of x86-64")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/peers"))
    parser.add_argument("--quick", action="store_true", help="smaller sizes, fewer rounds, all threads only, no torch.compile")
    parser.add_argument("--only", action="append", default=[], help="cases whose family or name contains this; may be repeated")
    parser.add_argument("--skip", action="append", default=[], help="no cases whose family or name contains this; may be repeated")
    parser.add_argument("--peers", type=lambda text: text.split(","), help="only these, such as torch,numpy")
    parser.add_argument("--threads", type=lambda text: [int(n) for n in text.split(",")], help="such as 1,2 (1 and all)")
    parser.add_argument("--flops", type=float, help="most FLOPs of a call; larger TCCG cases shrink (1e11; with --quick 4e9)")
    parser.add_argument("--rounds", type=int, help="most rounds (15; with --quick 5)")
    parser.add_argument("--tries", type=int, default=8, help="most times that a sample disturbed by other programs is taken (8)")
    parser.add_argument("--budget", type=float, help="seconds of rounds that a case should take (1; with --quick 0.3)")
    parser.add_argument("--limit", type=float, default=60, help="seconds after which a library is given up in a case")
    parser.add_argument("--update", action="store_true", help="keep the rows of OUT/peers.json, but those measured now")
    parser.add_argument("--list", action="store_true", help="print the cases only")
    options = parser.parse_args()
    quick = options.quick
    options.rounds = options.rounds or (5 if quick else 15)
    options.least_rounds = min(3, options.rounds)
    options.budget = options.budget or (0.3 if quick else 1.0)
    options.flops = options.flops or (4e9 if quick else 1e11)
    options.sample = 0.002 if quick else 0.006
    cores = len(os.sched_getaffinity(0))
    options.threads = options.threads or ([cores] if quick else sorted({1, cores}))
    options.peers = options.peers or ([who for who in PLACES if who != "torch.compile"] if quick else None)
    options.server = str(pathlib.Path(options.server).resolve())
    options.out = options.out.resolve()
    return options


def wanted(case, options):
    title = f"{case.family}: {case.name}".lower()
    if not options.only:
        asked = case.family not in all_of.LONG_FAMILIES
    else:
        asked = any(text.lower() in title for text in options.only)
    return asked and not any(text.lower() in title for text in options.skip)


def require_level(eigen, isa):
    """Eigen alone is held to a level by how its program was compiled; it names the instructions that it uses."""
    beyond = {"v2": "AVX", "v3": "AVX512"}.get(isa)
    wanted = {"v2": "SSE4.2", "v3": "AVX"}.get(isa, "")
    if wanted not in eigen or (beyond and beyond in eigen):
        sys.exit(f"Eigen uses other instructions than those of {isa}: {eigen}")


def describe(runner, options):
    machine = {"system": platform.platform(), "cores": len(os.sched_getaffinity(0)), "limits": {}, "versions": {}}
    for threads in options.threads:
        answer = runner.process("limits", threads).ask({"do": "describe"}, 60)
        machine["versions"] |= answer.pop("libraries")
        require_level(machine["versions"]["Eigen"], options.isa)
        machine["model"] = answer.pop("model")
        machine["limits"][str(threads)] = answer
    return machine


def stop(number, frame):
    """Ends with the table written, however often it is asked for."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def main():
    signal.signal(signal.SIGTERM, stop)
    options = parse_options()
    chosen = [case for case in all_of.all_cases(options.quick, options.flops) if wanted(case, options)]
    if options.list:
        print("\n".join(f"{case.family}: {case.name}" for case in chosen))
        return
    options.out.mkdir(parents=True, exist_ok=True)
    shared = pathlib.Path("/dev/shm")
    roomy = shared.is_dir() and shutil.disk_usage(shared).free > 4 << 30
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ein-peers-", dir=shared if roomy else None) as scratch:
        runner = Runner(options, pathlib.Path(scratch))
        report = {"date": datetime.date.today().isoformat(), "arguments": sys.argv[1:],
                  "machine": describe(runner, options), "rows": []}
        if options.update:
            table.read_into(report, options.out)
        try:
            for threads in options.threads:
                for place in sorted({PLACES[who] for case in chosen for who in case.peers if who in PLACES}):
                    try:
                        answer = runner.process(place, threads).ask({"do": "describe"}, options.limit)
                        report["machine"]["versions"] |= answer.get("versions", {})
                    except Failure as failure:
                        print(f"{place}: {failure}", file=sys.stderr)
                for number, case in enumerate(chosen):
                    row = runner.measure(case, threads)
                    table.put(report, row)
                    print(f"{number + 1}/{len(chosen)} {threads} {table.line(row)}", flush=True)
                    if number % 8 == 7:
                        table.write(report, options.out)
                runner.end(threads)
        finally:
            report["seconds"] = time.monotonic() - begin
            table.write(report, options.out)
            for threads in options.threads:
                runner.end(threads)
    print(f"{options.out}/peers.md and peers.json, {report['seconds']:.0f} s")


if __name__ == "__main__":
    main()
