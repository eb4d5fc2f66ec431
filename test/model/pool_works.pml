/*
 * Work of the layers above in the pool (executor/pool/work_queue.h), and the end of a pool whose
 * work has run while its bringer still looks for somebody to wake (POOLEND1, POOLEND2 in close.c).
 *
 * Modelled: two bringers with a piece of work each, two workers. The first piece that is run is
 * slow: it returns only when the other has run. Each piece lets go of the pool when it is run; then
 * the pool is closed and freed.
 *
 * Left out: the links of the stack, which is a count here, and the order. A bringer that is a
 * worker is joined by close, and not counted. Here bringers are counted (POOLEND1). In POOLEND2
 * each shows itself in its own record: the same stores in the same order. What is seq_cst in the
 * code interleaves here.
 *
 * Holds:
 *   POOL2 QUEUED2  no work is left while a worker sleeps, and
 *   G8        a slow piece keeps no other from running while a worker is free: else this would
 *             stand still
 *   POOL3        `searching` never falls below zero, before the stop
 *   POOLEND1        nobody looks at a pool that has been freed
 *
 *   run: WORKS   POOL2 POOLEND1 QUEUED2, for G8
 *   mutant: NO_HELP            a worker that leaves work behind calls nobody
 *   mutant: NOT_COUNTED        close does not know of bringers
 *   mutant: COUNTED_LATE       a bringer counts itself when it has pushed
 *   mutant: UNCOUNTED_EARLY    a bringer is out of the count before it looks for somebody to
 *                              wake
 *   mutant: CLOSE_TOO_EARLY    close looks at the bringers before all have let go
 */
#define WORKERS 2
#define PIECES 2
#define NONE 9

/* the queue for all: what was pushed, and what a consumer has turned round */
byte stack, first;
bool locked;
byte ran, holders = PIECES, bringing, at_work = WORKERS;
bool slow_begun;

#define NOTHING 0
#define PIECE 1
#define FOUND (found != NOTHING)
#include "wake.inc"

/* tw__work_queue_pop */
inline find_work()
{
	found = NOTHING;
	if
	:: first > 0 || stack > 0 ->
		atomic { !locked -> locked = true };
		if
		:: atomic { first > 0 -> first--; found = PIECE }
		:: atomic { first == 0 && stack > 0 -> n = stack; stack = 0 }; /* QUEUED1 */
			atomic { first = n - 1; n = 0; found = PIECE } /* QUEUED2 */
		:: first == 0 && stack == 0
		fi;
		locked = false
	:: atomic { else }
	fi
}

inline work_on()
{
#ifndef NO_HELP
	if
	:: first > 0 || stack > 0 -> call_for_help()
	:: else
	fi;
#endif
	if
	:: atomic { !slow_begun -> slow_begun = true }; ran == PIECES - 1
	:: atomic { slow_begun }
	fi;
	atomic { assert(!freed); ran++; found = NOTHING; holders-- }
}

active [WORKERS] proctype worker()
{
	byte me = _pid, found, who = NONE, before, n;
	bool stop_seen;
	do
	:: true ->
		stop_seen = stopping;
		find_work();
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

inline begin_bringing()
{
	atomic { assert(!freed); bringing++ } /* POOLEND1 */
}

inline end_bringing()
{
	atomic { assert(!freed); bringing-- } /* POOLEND1 */
}

active [2] proctype bringer()
{
	byte who = NONE;
#if !defined(NOT_COUNTED) && !defined(COUNTED_LATE)
	begin_bringing();
#endif
	stack++; /* POOL2, QUEUED2 */
#ifdef COUNTED_LATE
	begin_bringing();
#endif
#ifdef UNCOUNTED_EARLY
	end_bringing();
#endif
	call_for_help();
#if !defined(NOT_COUNTED) && !defined(UNCOUNTED_EARLY)
	end_bringing()
#endif
}

active proctype closing()
{
#ifdef CLOSE_TOO_EARLY
	bringing == 0; /* POOLEND1 */
	holders == 0;
#else
	holders == 0;
	bringing == 0; /* POOLEND1 */
#endif
	stopping = true;
	atomic { wakes[0]++; wakes[1]++ };
	at_work == 0;
	freed = true
}
