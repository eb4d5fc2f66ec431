"""What is to be run, in which order: the groups of a run of the bench."""
import os
import subprocess
import sys
from dataclasses import dataclass, field

from workloads import WORKLOADS

MANY, MOST = 1000000, 4000000  # from these sizes on groups are slow, and very slow
BYTES_PER_TIMER = 250  # more than any candidate needs
CORES = len(os.sched_getaffinity(0))


@dataclass
class Candidate:
    name: str
    kind: str  # "safe", "bare" (one thread, no lock) or "floor"
    peer: bool  # runs in few cells unless it is named
    what: str
    takes: dict  # workload: True, or False where another candidate tells as much


@dataclass
class Group:
    """One workload with one n and one number of threads: its candidates take turns, A B C A B C,
    so that a machine that drifts drifts for all."""
    workload: str
    n: int
    threads: int
    candidates: list
    reps: dict = field(default_factory=dict)  # by candidate
    run_s: float = 0


def say(text):
    print(f"bench: {text}", file=sys.stderr)


def read_candidates(program):
    candidates = []
    for line in subprocess.check_output([program, "list"], text=True).splitlines():
        what, *words = line.split(" ", 5)
        if what == "candidate":
            name, kind, peer, workloads, title = words
            takes = {w.lstrip("-"): not w.startswith("-") for w in workloads.split(",") if w}
            kind = "floor" if name == "limit" else kind
            candidates.append(Candidate(name, kind, peer == "peer", title, takes))
    return candidates


def memory_fits(n):
    with open("/proc/meminfo", encoding="utf-8") as file:
        free = [int(line.split()[1]) for line in file if line.startswith("MemAvailable:")]
    return not free or n * BYTES_PER_TIMER < free[0] * 1024


def grids(workload, options):
    """Pairs of n and threads."""
    w = WORKLOADS[workload]
    pairs = []
    if not options.growth:
        sizes = w.quick if options.quick else w.sizes
        if options.n and not w.fixed_sizes:
            sizes = options.n
        threads = options.threads or ([1, 2] if options.quick else [1, 2, 4])
        pairs += [(n, t) for n in sizes for t in (threads if w.many_threads else [1])]
    if (options.growth or options.full) and w.curve_n:
        pairs += [(1 << bits, t) for bits in range(10, 25)
                  for t in ([1, CORES] if w.many_threads else [1])]
        if w.many_threads:
            pairs += [(w.curve_n, t) for t in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
                      if t <= max(4, 2 * CORES)]
    return list(dict.fromkeys(pairs))


def usual(candidate, workload, n, threads, options):
    """Whether the candidate takes part. Those that are named, and all with --full, always do."""
    if workload not in candidate.takes or (candidate.kind == "bare" and threads > 1):
        return False
    if options.candidate:
        return candidate.name in options.candidate
    if options.full or options.growth:
        return True
    if not candidate.takes[workload]:
        return False
    if not candidate.peer or options.n or options.threads:
        return True
    w = WORKLOADS[workload]
    sizes = w.quick_peer if options.quick else w.peer
    return n in sizes and threads <= (1 if options.quick else 2)


def repetitions(candidate, workload, n, threads, options):
    """The slowest groups, and those that share cores among threads, get fewer, so that the whole
    stays below 15 minutes."""
    w = WORKLOADS[workload]
    if options.reps:
        return options.reps
    reps = w.quick_reps if options.quick else w.reps
    if options.full:
        return reps
    if threads > CORES:
        reps = min(reps, 3)
    if n >= MANY:
        reps = min(reps, 2)
    if n >= MOST:
        reps = min(reps, 2 if w.many_threads else 1)
    if candidate.peer:
        reps = min(reps, 1 if workload == "W4" or n >= MANY else 2)
    return reps


def make_plan(candidates, options):
    plan, skipped = [], 0
    for workload in options.only or [w for w in WORKLOADS if w != "trial"]:
        for n, threads in grids(workload, options):
            w = WORKLOADS[workload]
            if CORES == 1 and threads > 1:  # they would measure its scheduler
                skipped += 1
                continue
            if n >= MOST and threads > CORES and not (options.full or options.growth or
                                                      options.threads):
                continue
            if not w.labels and not memory_fits(n):
                say(f"{workload} with n = {n} is skipped: it does not fit into the free memory")
                continue
            group = Group(workload, n, threads, [
                c for c in candidates if usual(c, workload, n, threads, options)])
            group.reps = {c.name: repetitions(c, workload, n, threads, options)
                          for c in group.candidates}
            group.run_s = ((w.quick_seconds if options.quick else w.seconds) +
                           w.seconds_per_timer * n)
            if group.candidates:
                plan.append(group)
    if skipped:
        say(f"one core: {skipped} groups of cells with more threads are skipped")
    return plan
