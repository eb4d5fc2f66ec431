#!/usr/bin/env python3
"""The bench: timers made with this library against those that one would use instead, measured side
by side. Each run is a process of its own (main.c), and is checked: a candidate that loses a timer,
runs one early or runs a cancelled one fails the bench."""
import argparse
import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # the tree stays as it is
import report
from plan import CORES, Group, make_plan, read_candidates, say
from workloads import WITH_BASELINE, WORKLOADS


class Interrupted(Exception):
    pass


# ---- what there is


def look_at_machine(program):
    def told(command):
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        return found.stdout.strip() if found.returncode == 0 else None

    machine = {"cores": CORES, "cpu": "unknown", "commit": "unknown"}
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    machine["cpu"] = (names or ["unknown"])[0]
    commit = shutil.which("git") and told(["git", "rev-parse", "HEAD"])
    if commit:
        machine["commit"] = commit + ("-dirty" if told(["git", "diff", "--quiet", "HEAD"]) is None
                                      else "")
    for line in subprocess.check_output([program, "machine"], text=True).splitlines():
        key, value = line.split(" ", 1)
        machine[key] = float(value) if key.endswith("_ns") else value
    return machine


# ---- running


class Progress:
    """A line with what runs and the time left on a terminal, plain lines otherwise."""

    def __init__(self, plan):
        self.terminal = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self.start, self.done = time.monotonic(), 0
        self.all = sum(g.run_s * sum(g.reps.values()) for g in plan)

    def left(self):
        elapsed = time.monotonic() - self.start
        left = (self.all - self.done) * (elapsed / self.done if self.done > 5 else 1)
        return f"about {int(max(left, 0)) // 60}:{int(max(left, 0)) % 60:02d} left"

    def group(self, group):
        if not self.terminal:
            print(f"{group.workload} n={group.n} threads={group.threads}: "
                  f"{len(group.candidates)} candidates; {self.left()}", file=sys.stderr, flush=True)

    def run(self, group, candidate, rep):
        if self.terminal:
            line = (f"{100 * self.done / self.all:3.0f} %, {self.left()}: {group.workload} "
                    f"n={group.n} threads={group.threads} {candidate.name}, run {rep + 1} of "
                    f"{group.reps[candidate.name]}")
            width = shutil.get_terminal_size().columns - 1
            print(f"\r\033[K{line[:width]}", end="", file=sys.stderr, flush=True)

    def ran(self, group):
        self.done += group.run_s

    def clear(self):
        if self.terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def cpu_use():
    """Milliseconds since boot, all processors: worked; given to other guests. And our own."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(x) for x in file.readline().split()[1:9]]
    unit = 1000 / os.sysconf("SC_CLK_TCK")
    ours = sum(u.ru_utime + u.ru_stime for u in map(
        resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
    return sum(ticks[i] for i in (0, 1, 2, 5, 6)) * unit, ticks[7] * unit, 1000 * ours


def disturbance(start):
    """CPU time that others had meanwhile: other processes here, other guests of the hypervisor."""
    busy, stolen, ours = (now - then for now, then in zip(cpu_use(), start))
    return max(busy - ours, 0), stolen


def round_trip(program):
    """Of a cache line between the first two processors, in ns. NaN: there is one, or it is busy.
    In a process of its own, so that the run does not begin with its time slice used up."""
    return float(subprocess.check_output([program, "round-trip"], text=True))


def run_once(program, group, candidate, ops, quick):
    """The figures of one run, the trouble it met or None, the work that fits, or why it is left
    out."""
    limit = 180 + 20 * group.run_s
    before = round_trip(program)
    start = cpu_use()
    command = [program, "run", group.workload, candidate.name, str(group.n), str(group.threads),
               str(ops), "quick" if quick else "usual"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as process:
        try:
            said, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.kill()
            return {}, f"hangs: no result after {limit:.0f} s", 0, None
        except BaseException:
            process.kill()
            raise
    figures, trouble, skipped, ended = {}, None, None, False
    for line in said.splitlines():
        word, _, rest = line.partition(" ")
        if word == "figure":
            figures[rest.split()[0]] = float(rest.split()[1])
        elif word == "ops":
            ops = int(rest)
        elif word == "trouble":
            trouble = rest
        elif word == "skipped":
            skipped = rest
        ended = word == "end"
    if process.returncode < 0:
        trouble = trouble or f"crashed: {signal.strsignal(-process.returncode)}"
    elif process.returncode or not ended:
        trouble = trouble or f"ended without a result, exit status {process.returncode}"
    if figures:
        figures["others_cpu_ms"], figures["stolen_ms"] = disturbance(start)
        both = [r for r in (before, round_trip(program)) if math.isfinite(r)]
        figures.update({"rtt_ns": max(both)} if both else {})
    return figures, trouble, ops, skipped


def new_cell(group, candidate, kind):
    return {"workload": group.workload, "candidate": candidate, "kind": kind, "n": group.n,
            "threads": group.threads}


def add_run(cell, figures, trouble):
    for name, value in figures.items():
        cell.setdefault(name, {"runs": []})["runs"].append(value)
    if trouble:
        cell.setdefault("failure", trouble)


def run_group(bench, group):
    """Adds the group's cells to the results."""
    cells = {c.name: new_cell(group, c.name, c.kind) for c in group.candidates}
    baseline = new_cell(group, "baseline", "baseline")
    ops, left_out = {}, set()
    bench.progress.group(group)
    for rep in range(max(group.reps.values())):
        for c in group.candidates:
            if rep >= group.reps[c.name] or c.name in left_out:
                continue
            bench.progress.run(group, c, rep)
            figures, trouble, ops[c.name], skipped = run_once(
                bench.program, group, c, ops.get(c.name, 0), bench.options.quick)
            bench.progress.ran(group)
            if skipped or trouble:
                bench.progress.clear()
                say(f"{group.workload} {c.name} n={group.n} threads={group.threads}: "
                    f"{trouble or 'left out: ' + skipped}")
                left_out.add(c.name)
            if skipped:
                del cells[c.name]
                continue
            own = {k: v for k, v in figures.items() if not k.startswith("baseline_")}
            add_run(cells[c.name], own, trouble)
            add_run(baseline, {k.replace("baseline_", "lateness_", 1): v for k, v in
                               figures.items() if k.startswith("baseline_")}, None)
    bench.results["cells"] += cells.values()
    if group.workload in WITH_BASELINE and len(baseline) > 5:
        bench.results["cells"].append(baseline)


class Bench:
    def __init__(self, program, options, plan):
        self.program, self.options, self.plan = program, options, plan
        self.progress = Progress(plan)
        self.start, self.used = time.monotonic(), cpu_use()
        mode = " ".join(w for w in ("quick", "full", "growth") if getattr(options, w))
        self.results = {
            "machine": look_at_machine(program),
            "occasion": {"mode": mode or "default", "complete": False,
                         "when": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())},
            "cells": []}

    def save(self, complete):
        """After each group: a bench that is killed leaves what it has."""
        others, stolen = disturbance(self.used)
        self.results["occasion"].update(
            complete=complete, took_s=time.monotonic() - self.start,
            others_cpu_s=others / 1000, stolen_s=stolen / 1000)
        report.add_summaries(self.results)
        if self.options.out:
            report.write_file(self.options.out, json.dumps(self.results, indent=1))

    def trials(self, candidates):
        """Before anything is measured, each candidate must pass its trial. A failed one shows."""
        passed = []
        for c in candidates:
            group = Group("trial", 0, 1, [c], {c.name: 1}, 0.5)
            figures, trouble, _, _ = run_once(self.program, group, c, 0, self.options.quick)
            if trouble:
                say(f"trial of {c.name}: {trouble}")
                cell = new_cell(group, c.name, c.kind)
                add_run(cell, figures, trouble)
                self.results["cells"].append(cell)
            else:
                passed.append(c.name)
        if passed:
            print("each timer ran once and not early, or was cancelled and did not run, in the "
                  "trials of:\n  " + ", ".join(passed), flush=True)

    def run(self):
        tried = {c.name: c for g in self.plan for c in g.candidates if "trial" in c.takes}
        self.trials(tried.values())
        for i, group in enumerate(self.plan):
            run_group(self, group)
            self.save(i + 1 == len(self.plan))
            if i + 1 == len(self.plan) or self.plan[i + 1].workload != group.workload:
                self.progress.clear()
                report.print_workload(self.results, group.workload)


# ---- the command line


def listed(known, what):
    def parse(text):
        names = [name for name in text.split(",") if name]
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"no such {what}: '{name}'")
        if not names:
            raise argparse.ArgumentTypeError("empty list")
        return names
    return parse


def numbers(text):
    parts = [part for part in text.split(",") if part]
    if not parts or not all(p.isascii() and p.isdigit() and 0 < int(p) < 1 << 32 for p in parts):
        raise argparse.ArgumentTypeError(f"not a number in range: '{text}'")
    return [int(part) for part in parts]


def parse(arguments, candidates):
    names = "\n".join(["workloads:"] + [f"  {k:<21} {w.title}" for k, w in WORKLOADS.items()] +
                      ["", "candidates:"] + [f"  {c.name:<21} {c.what}" for c in candidates])
    parser = argparse.ArgumentParser(
        prog="bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=names + "\n\nStatus: 0; 1: a candidate broke a promise, crashed or hung, or a file "
        "could not be written;\n2: bad usage, or results that cannot be read; 130: interrupted.")
    add = parser.add_argument
    add("--out", metavar="FILE", help="write results as JSON, also when interrupted; and the page, "
        "report.html in its folder")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--quick", action="store_true", help="a first look, about two minutes")
    length.add_argument("--full", action="store_true", help="all repetitions and curves")
    add("--growth", action="store_true", help="only the curves over n and threads: W1, W3, W4")
    add("--only", type=listed(WORKLOADS, "workload"), metavar="W1,W2", help="these workloads")
    add("--candidate", type=listed({c.name for c in candidates}, "candidate"), metavar="NAME,...",
        help="these candidates")
    add("--n", type=numbers, metavar="N,...", help="these numbers of timers, where there is a "
        "choice")
    add("--threads", type=numbers, metavar="T,...", help="these numbers of threads, where there is "
        "a choice")
    add("--reps", type=lambda text: numbers(text)[0], metavar="R", help="repetitions of each cell")
    add("--compare", nargs="+", metavar="FILE", help="OLD: then print what differs from these "
        "results by more than the noise. OLD NEW: without a run")
    add("--report", metavar="RESULTS", help="only make the page of these results")
    options = parser.parse_args(arguments)
    if options.compare and len(options.compare) > 2:
        parser.error("--compare takes one file or two")
    return options


def interrupt(number, frame):
    raise Interrupted(number, frame)


def measure(program, candidates, options):
    plan = make_plan(candidates, options)
    if not plan:
        say("nothing to run: none of these candidates does any of these workloads")
        return 2
    old = report.read(options.compare[0]) if options.compare else None
    if options.out:
        report.try_file(options.out)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    status = 0
    bench = Bench(program, options, plan)
    report.print_machine(bench.results["machine"])
    try:
        bench.run()
    except Interrupted:
        status = 130
        bench.progress.clear()
        bench.save(False)
    report.print_notes(bench.results)
    if old:
        report.compare(old, bench.results)
    if options.out:
        report.make_page(options.out, bench.results)
    failed = any("failure" in cell for cell in bench.results["cells"])
    return status or (1 if failed else 0)


def main(arguments):
    if not arguments:
        sys.exit("usage: bench.py PROGRAM [OPTION...]; see make bench")
    program = arguments[0]
    candidates = read_candidates(program)
    options = parse(arguments[1:], candidates)
    try:
        if options.report:
            report.make_page(options.report, report.read(options.report))
            status = 0
        elif options.compare and len(options.compare) == 2:
            report.compare(*map(report.read, options.compare))
            status = 0
        else:
            status = measure(program, candidates, options)
        sys.stdout.flush()
    except report.BadResults as error:
        say(error)
        return 2
    except OSError as error:
        say(f"{error.filename or 'standard output'} could not be written: {error.strerror}")
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
