/*
 * Plain tasks: the ring's push and close (executor/pool/task_ring.h) together with the pool's wake
 * rule (pool/wake.c) and its end (pool.c).
 *
 * Modelled: two threads submit a task each; a push takes a position, then fills its cell, then
 * calls for help. Workers pop and run. Close sets the bit, waits for the cells that are being
 * filled, and stops the pool. QUIET: two workers; the task that is run first is slow, and returns
 * only when the other has run, which the other worker must see to; the pool is closed when all has
 * run, since a stop would help whoever was forgotten. CLOSE: one worker, closed at any time.
 *
 * Left out: a ring that goes round, or is full (ring.pml). What is seq_cst in the code interleaves
 * here; so does the ring's tail, which is one object (RING3).
 *
 * Holds:
 *   G8      a slow task keeps no other from running: else this would stand still
 *   POOL2      of several tasks that are being pushed a worker sees none beyond the first
 *              unfinished one; the pusher of that one sees the worker
 *   RING3, RING4  what was accepted is run before the pool has ended, and nothing is accepted
 *                 afterwards
 *
 *   run: QUIET   G8, by POOL2
 *   run: CLOSE   RING3 RING4, by POOL2
 *   mutant: QUIET WAITS_FOR_NONE     a worker that is about to run something never sees that the
 *                                    ring holds more
 *   mutant: QUIET HELP_TOO_EARLY     help is called for when the position is taken, before the cell
 *                                    is filled
 *   mutant: QUIET NO_SECOND_LOOK     one who has found no sleeper does not look again after he has
 *                                    lowered `searching`
 *   mutant: QUIET STALE_CALL         a worker that finds work after it was called goes on without
 *                                    waiting for the call
 *   mutant: CLOSE CLOSE_AT_ONCE      close does not wait for cells that are being filled
 *   mutant: CLOSE CLOSE_BEHIND       what close takes for the last position was read before the bit
 *                                    was set
 *   mutant: CLOSE STOP_SEEN_LATE     a worker that has found nothing ends if the pool is stopped by
 *                                    then
 */
#ifdef QUIET
#define WORKERS 2
#else
#define WORKERS 1
#endif
#define TASKS 2
#define NONE 9

byte tail, head;
bool closed;
bool filled[TASKS + 1];
byte ran, at_work = WORKERS;
bool slow_begun, ended;

#define FOUND (task != NONE)
#include "wake.inc"

/* tw__task_ring_pop: the moment of its CAS, or of the look that found nothing */
inline find_work()
{
	atomic {
		task = NONE;
		if
		:: filled[head] -> task = head; head++
		:: else
		fi
	}
}

inline work_on()
{
#ifndef WAITS_FOR_NONE
	if
	:: filled[head] -> call_for_help()
	:: else
	fi;
#endif
#ifdef QUIET
	if
	:: atomic { !slow_begun -> slow_begun = true }; ran == TASKS - 1
	:: slow_begun
	fi;
#endif
	atomic { assert(!ended); ran++; task = NONE }
}

active [WORKERS] proctype worker()
{
	byte me = _pid, task = NONE, who = NONE, before;
	bool stop_seen;
	do
	:: true ->
#ifndef STOP_SEEN_LATE
		stop_seen = stopping; /* first: what was there before the stop is found */
#endif
		find_work();
#ifdef STOP_SEEN_LATE
		stop_seen = stopping;
#endif
		if
		:: !FOUND && stop_seen -> break
		:: !FOUND && !stop_seen -> sleep_until_called()
		:: FOUND
		fi;
		stop_seen = false;
		if
		:: atomic { FOUND -> add_searching(-1) };
			do
			:: FOUND -> work_on(); find_work()
			:: else -> break
			od;
			atomic { add_searching(1) }
		:: else
		fi
	od;
	at_work--
}

/*
 * Each takes the next position, as the CAS of the tail has it: that it is not closed, and free, is
 * known by then.
 */
active [2] proctype submitter()
{
	byte at, who = NONE;
	if
	:: atomic { !closed -> at = tail; tail++ }; /* RING3 */
#ifdef HELP_TOO_EARLY
		call_for_help();
#endif
		filled[at] = true; /* RING1, RING4, POOL2 */
		at = 0;
#ifndef HELP_TOO_EARLY
		call_for_help()
#endif
	:: closed
	fi
}

active proctype closing()
{
	byte end, at;
#ifdef QUIET
	ran == TASKS;
#endif
#ifdef CLOSE_BEHIND
	end = tail;
	closed = true;
#else
	atomic { end = tail; closed = true }; /* RING3 */
#endif
#ifndef CLOSE_AT_ONCE
	at = head;
	do
	:: at < end -> filled[at]; at++ /* RING4 */
	:: else -> break
	od;
#endif
	stopping = true;
	atomic { wakes[0]++; wakes[1]++ }; /* tw__pool_wake_all */
	at_work == 0;
	ended = true;
	assert(ran == tail) /* RING3, RING4 */
}
