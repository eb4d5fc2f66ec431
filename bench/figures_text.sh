# The text of docs/figures.md. Read by figures.sh, which sets the variables and has the tables.
# shellcheck shell=sh disable=SC2154

cat <<END
# Figures

This page is made by \`make figures\` from one run of \`make bench\`. Do not edit it: edit
\`bench/figures_text.sh\`.

Machine: $machine.
Run: $occasion.
Commit: $commit. Of the runs, $near were near (see [Method](#method)).

All figures are medians. Compare within a row: the machine is shared, and its speed drifts. None of
tickwheel's timers was early in any run; the bench fails if one is.

## Schedule, cancel, move

Wall nanoseconds per operation for each thread. "floor" is a program that takes a handle, does one
compare-and-swap, writes one record and appends 8 bytes, and is no timer at all. "bare" structures
have no lock, belong to one thread, and use a cached time.

END
calls_table
if [ -n "$(value W1 1000 1 tickwheel-persistent ns_per_op)" ]; then
	cat <<'END'

**Persistent timers** belong to a connection for its life, and are armed and disarmed. Cached time.

END
	persistent_table
fi
cat <<'END'

## Rivals from other ecosystems

Wall nanoseconds per operation for each thread; in brackets: times ours. Several threads may use
each of them. tickwheel reads the exact clock here, as they do.

END
rivals_table
cat <<'END'

What is not comparable:

- **Java** (STPE and Netty): each schedule allocates an object, and collections stop all threads.
  Both are part of the figures. The heap has 512 MB and 500 bytes for each timer. The collector is
  ParallelGC, the best of three that were tried. A second of warm-up comes first.
- **STPE** removes cancelled tasks immediately (`setRemoveOnCancelPolicy`). Without that, cancelled
  timeouts stay in the heap until their deadline.
- **Netty** has a tick of 1 ms and 65536 buckets, instead of 100 ms and 512.
- **Go**: one timer for each slot, moved by `Stop` and `Reset`, so that nothing is allocated. Each
  callback starts a goroutine with a stack of its own; that is part of W4 only.
- **asio**: its io_context runs in a thread, and calls the handler of each cancelled wait there.
- **glib**: each turn of its loop looks at all sources, so it takes part up to 10k timers.
- **DPDK**: each thread has a list of its own, which nobody else uses here, and looks at it in each
  turn. Without huge pages its timers miss the address cache more often.
- **h2o**: Debian's libh2o-evloop-dev is version 2.2, which has no timer wheel yet. It is skipped.

[lars.md](lars.md) shows how STPE, Netty's wheel, a heap and tickwheel grow from 1k to 10M timers.

## Many producers

Wall nanoseconds per operation, by the number of threads that schedule. These figures are from a run
of their own at commit d6f48b3, on a machine with 16 processors (Intel Xeon, far apart, see Method):
`bench --quick --only W1,W2,W3 --threads 1,2,4,8,16 --reps 3`.

| work | | 1 | 2 | 4 | 8 | 16 |
|---|---|---|---|---|---|---|
| request (W2) | **tickwheel** | 33 | 30 | 45 | 47 | 54 |
| | floor | 14 | 23 | 26 | 27 | 31 |
| | Go | 115 | 121 | 132 | 323 | 652 |
| | heap behind a lock | 96 | 868 | 3,670 | 10,792 | 22,059 |
| | libevent behind its lock | 104 | 407 | 2,841 | 11,516 | 24,208 |
| churn (W1), 100k | **tickwheel** | 74 | 71 | 72 | 86 | 113 |
| | floor | 34 | 60 | 22 | 25 | 29 |
| | Go | 424 | 323 | 348 | 290 | 342 |
| | heap behind a lock | 207 | 1,450 | 4,066 | 10,630 | 21,481 |
| | libevent behind its lock | 455 | 2,068 | 6,693 | 18,158 | 36,313 |
| touch (W3), 10k, cached time | **tickwheel** | 17 | 19 | 20 | 19 | 19 |
| | floor | 15 | 15 | 18 | 18 | 19 |
| | heap behind a lock | 100 | 752 | 1,975 | 4,928 | 10,111 |

One tick thread drains the lanes of all producers. It has the most to do in W1, where it files each
timer and later sweeps it.

## Fire

CPU nanoseconds of the whole process for each timer.

END
fire_table
cat <<'END'

Microseconds from the deadline to the start of the callback, 1M timers in two seconds:

END
late_table 1000000
cat <<'END'

That is what a wheel's resolution costs against a heap: a tick for a deadline, two for a delay.

## The service

END
service_table
cat <<'END'

W9 is a server with 100k requests a second, of which 1 % time out. A heap that is bare has no other
threads; nor has the bare wheel.

## The pool, and the layers above the service

Nanoseconds from handing over to having run: one producer, one worker (W11, W12).

END
layers_table
cat <<'END'

Beyond the pool most of it is the transport of cache lines between two processors that both write
them.

## Where we are slower, and why

- **Against the bare structures.** They pay no atomic operation and share nothing. tickwheel pays
  one compare-and-swap for each cancel, and its tick thread reads what each call wrote.
- **Two threads.** Three threads (two producers and the tick thread) share two processors here. The
  tick thread takes about 5 ns of CPU time for each request whose timer is dead by the next tick,
  and 25 to 30 for a timer that it files and later sweeps.
- **W1 at 100k on one thread.** Handles, words and records of 100k timers are 4 MB, more than a
  core's second cache holds, for "floor" as well.
- **W3 with the exact clock.** The counter register is read instead of the clock. Like the clock, it
  keeps cache misses of successive operations from overlapping. A loop that has its time should use
  `tw_reset_at`.
- **W4 with 100k timers.** 50 timers are due in each tick. The tick thread hands them to a worker,
  and waking it costs more than the timers.
- **W9.** At 100k requests a second the tick thread ticks, which costs system calls in each tick,
  and each timeout that fires may wake a worker. A single-threaded library has neither.
- **Lateness.** A heap knows each deadline to the nanosecond; a wheel knows its tick.

## How peers were used

The head of each `bench/candidate_*.c` (and of each file in `bench/rivals/`) says which use was
chosen and why it is that library's best: libevent with common timeouts and its coarse clock (padded
by what that clock lags, so that none is early), libev with `ev_timer_again` and in a loop thread
with its release and acquire callbacks, libuv through its backend descriptor, timerfd with epoll,
POSIX timers by SIGEV_THREAD_ID and signalfd.

## Tried and left

- **Owner-biased words**: plain stores by the thread that owns a timer, revoked by a barrier of the
  kernel. Built twice. A cancel gains 0 to 3 ns of 15; the first cancel by another thread then costs
  20 µs.
- **Word and record side by side** (32 bytes): nothing for W1 and W2, slower W3 at 1M, 23 % less CPU
  in W4.
- **The user's object beside the word** (a prototype with slots of 64 bytes, for persistent timers):
  at 1M W1 takes 0.67 and W3 0.72 of what persistent timers take, medians of eight pairs. That is
  1.7 and 1.25 times the bare wheel; "floor" takes 1.6 and 1.2 times. All code that reads a word
  would need its address from a function, and each plain timer of such a service 64 bytes.
- **Filing the entry of a timer that was moved without a look at its word**, or **its location on a
  huge page**: no gain once locations are prefetched.
- **One current entry for each timer**, by a sequence number in word and entry, in place of the
  driver's locations. A model of clocks that leap refuted three rules in a row. The rule that held
  asked each schedule to look at the cursor twice.

## Method

`bench/` is one program with one table of functions for each candidate. Each cell runs in a process
of its own, memory touched beforehand, repetitions interleaved, CPU time of the whole process beside
wall time. Before anything is measured, each candidate must pass a trial in which every timer is
looked after one by one. Before and after each run the round trip of a cache line between the first
two processors is measured (`rtt_ns`). Runs below 120 ns are near, the others far, because a
hypervisor may move its virtual processors within one run, and all that uses a lane then takes up to
twice as long. Figures here are of near runs where there are any. `build/bench/results.json` holds
every repetition; `build/bench/report.html` draws it.
END
