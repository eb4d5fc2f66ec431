/*
 * Work of the layers above in the pool: what any worker may run (executor/base/work_queue.h), what
 * one alone may run (POOL6 in pool/wake.c), and the end of a pool whose work has run while its
 * bringer still looks for somebody to wake (POOLEND1, POOLEND2 in pool.c).
 *
 * Modelled: two bringers, two workers. PINNED: one piece is for worker 0 alone, and slow: it
 * returns only when the other, which anybody may run, has run. SHARED: anybody may run either; the
 * first that is run is slow. Each piece lets go of the pool when it is run; then the pool is closed
 * and freed.
 *
 * Left out: the links of the stack, which is a count here, and the order. A bringer that is a
 * worker is joined by close, and not counted. Here bringers are counted (POOLEND1). In POOLEND2
 * each shows itself in its own record: the same stores in the same order. What is seq_cst in the
 * code interleaves here.
 *
 * Holds:
 *   POOL2 POOL6 QUEUED2  no work is left while a worker that may run it sleeps, and
 *   G8        a slow piece keeps no other from running while a worker is free: else this would
 *             stand still
 *   POOL3        `searching` never falls below zero, before the stop
 *   POOLEND1        nobody looks at a pool that has been freed
 *
 *   run: PINNED   POOL6 POOLEND1 QUEUED2, for G8
 *   run: SHARED   POOL2 POOLEND1 QUEUED2, for G8
 *   mutant: PINNED LOOK_BEFORE_PUSH   the idle bit is looked at before the push
 *   mutant: PINNED LOOK_BEFORE_IDLE   a worker looks at its own queue before it shows itself as
 *                                     asleep
 *   mutant: PINNED UNCOUNTED_CALL     a worker is called without raising `searching` in its name
 *   mutant: PINNED FORGET_OTHERS      a call that came too late does not look after those who
 *                                     trusted in the raised `searching`
 *   mutant: PINNED NO_HELP            a worker that leaves work behind calls nobody
 *   mutant: SHARED NO_HELP            the same: it had the whole stack in hand when others looked
 *   mutant: SHARED NOT_COUNTED        close does not know of bringers
 *   mutant: SHARED COUNTED_LATE       a bringer counts itself when it has pushed
 *   mutant: SHARED UNCOUNTED_EARLY    a bringer is out of the count before it looks for somebody to
 *                                     wake
 *   mutant: SHARED CLOSE_TOO_EARLY    close looks at the bringers before all have let go
 */
#define WORKERS 2
#define PIECES 2
#define NONE 9

byte own;              /* worker 0's queue */
/* the queue for all: what was pushed, and what a consumer has turned round */
byte stack, first;
bool locked;
byte ran, holders = PIECES, bringing, at_work = WORKERS;
bool slow_begun;

#define NOTHING 0
#define SHARED_PIECE 1
#define OWN_PIECE 2
#define FOUND (found != NOTHING)
#include "wake.inc"

/* tw__work_queue_pop of the queue for all */
inline pop_shared()
{
	if
	:: found == NOTHING && (first > 0 || stack > 0) ->
		atomic { !locked -> locked = true };
		if
		:: atomic { first > 0 -> first--; found = SHARED_PIECE }
		:: atomic { first == 0 && stack > 0 -> n = stack; stack = 0 }; /* QUEUED1 */
			atomic { first = n - 1; n = 0; found = SHARED_PIECE } /* QUEUED2 */
		:: first == 0 && stack == 0
		fi;
		locked = false
	:: atomic { else }
	fi
}

inline pop_own()
{
	if
	:: atomic { found == NOTHING && me == 0 && own > 0 -> own--; found = OWN_PIECE }
	:: atomic { else }
	fi
}

inline find_work()
{
	found = NOTHING;
	if
	:: pop_own(); pop_shared()
	:: me == 0 -> pop_shared(); pop_own()
	fi
}

#ifdef PINNED
#define SLOW (found == OWN_PIECE)
#else
#define SLOW (!slow_begun)
#endif

inline work_on()
{
#ifndef NO_HELP
	if
	:: first > 0 || stack > 0 -> call_for_help()
	:: else
	fi;
#endif
	if
	:: atomic { SLOW -> slow_begun = true }; ran == PIECES - 1
	:: atomic { !SLOW }
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

/* tw__pool_call(0) */
inline call_owner()
{
#ifndef LOOK_BEFORE_PUSH
	atomic { assert(!freed); sees_idle = idle[0] }; /* POOL6 */
#endif
	if
	:: atomic { sees_idle -> sees_idle = false };
#ifndef UNCOUNTED_CALL
		atomic { add_searching(1) };
#endif
		if
		:: atomic { idle[0] -> assert(!freed); idle[0] = false };
			sleepers--;
			wakes[0]++ /* POOL3 */
		:: atomic { !idle[0] -> assert(!freed) };
#ifndef UNCOUNTED_CALL
			atomic { add_searching(-1) };
#endif
#ifndef FORGET_OTHERS
			call_for_help()
#endif
		fi
	:: atomic { else }
	fi
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
	bool sees_idle;
#if !defined(NOT_COUNTED) && !defined(COUNTED_LATE)
	begin_bringing();
#endif
#ifdef PINNED
	if
	:: _pid == WORKERS ->
#ifdef LOOK_BEFORE_PUSH
		sees_idle = idle[0];
#endif
		own++; /* POOL6 */
		call_owner()
	:: else -> stack++; call_for_help()
	fi;
#else
	stack++; /* POOL2, QUEUED2 */
#ifdef COUNTED_LATE
	begin_bringing();
#endif
#ifdef UNCOUNTED_EARLY
	end_bringing();
#endif
	call_for_help();
#endif
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
