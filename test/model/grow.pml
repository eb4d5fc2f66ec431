/*
 * Growth of a pool: arming of the reserve, and workers that end: executor/pool/grow.c, wake.c
 * (POOL2, POOL7).
 *
 * Modelled: a bringer, worker 0, which is permanent, worker 1, which the reserve starts and which
 * may end whenever it is idle, and the reserve. The first piece of work is slow: it returns only
 * when all others have run, so somebody must start worker 1, again if it has ended. AGAIN: a quick
 * piece comes first, which its worker submits again and calls nobody (tw__work_submit_again).
 *
 * Left out: time (a worker inside the slow piece is blocked, one that sleeps may end at any
 * moment), batches, work for one worker alone, failures of the system to start a thread. All
 * operations are sequentially consistent in the code, so they interleave here.
 *
 * Holds:
 *   POOL7  no run waits for ever behind a blocked worker: else this would stand still
 *   POOL2  nor behind a worker that ends
 *   POOL3  `searching` never falls below zero
 *
 *   run: GROWS   POOL2 POOL3 POOL7
 *   run: GROWS AGAIN   POOL2 POOL3 POOL7, with work that comes again
 *   mutant: GROWS NO_ARM            who leaves work behind, and finds nobody to wake, does not arm
 *                                   the reserve
 *   mutant: GROWS NO_SECOND_LOOK    the reserve does not look again after it has disarmed itself
 *   mutant: GROWS AGAIN NO_HELP     a worker that has submitted work again, and takes something
 *                                   else, calls nobody
 *   mutant: GROWS END_WITHOUT_LOOK  a worker that ends does not look for work after it has taken
 *                                   its idle bit back
 */
#define PIECES 3
#ifdef AGAIN
#define RUNS (PIECES + 1)
#else
#define RUNS PIECES
#endif
#define NONE 9

byte queued, ran;
short searching = 1; /* worker 0 begins by searching */
byte sleepers;
bool idle[2], alive;
byte wakes[2];
bool armed, stopping, slow_begun, slow_inside;
#ifdef AGAIN
bool came_again;
#endif

inline add_searching(n)
{
	searching = searching + (n);
	assert(searching >= 0 || stopping) /* POOL3 */
}

inline find_work()
{
	atomic {
		if
		:: queued > 0 -> queued--; found = true
		:: else -> found = false
		fi
	}
}

/* called: somebody searches, or was woken to */
inline wake_one()
{
	do
	:: atomic { searching == 0 -> add_searching(1) };
		atomic {
			if
			:: idle[0] -> idle[0] = false; who = 0
			:: !idle[0] && idle[1] -> idle[1] = false; who = 1
			:: else -> who = NONE
			fi
		};
		if
		:: who != NONE -> sleepers--; atomic { wakes[who]++; who = NONE }; called = true;
			break
		:: else -> atomic { add_searching(-1) };
			if
			:: idle[0] || idle[1]
			:: else -> break
			fi
		fi
	:: searching != 0 -> called = true; break
	od
}

inline call_for_help()
{
	called = false;
	if
	:: searching != 0 -> called = true /* POOL2 */
	:: else ->
		if
		:: sleepers != 0 -> wake_one() /* POOL2 */
		:: else
		fi
	fi;
#ifndef NO_ARM
	if
	:: !called ->
		if
		:: !armed -> armed = true /* POOL7 */
		:: else
		fi
	:: else
	fi;
#endif
	called = false
}

inline work_on()
{
#ifndef NO_HELP
	if
	:: queued > 0 -> call_for_help()
	:: else
	fi;
#endif
	if
#ifdef AGAIN
	:: atomic { !came_again -> came_again = true; queued++ } /* from inside its run */
	:: atomic { came_again && !slow_begun -> slow_begun = true; slow_inside = true };
		atomic { ran == RUNS - 1 -> slow_inside = false }
	:: atomic { came_again && slow_begun }
#else
	:: atomic { !slow_begun -> slow_begun = true; slow_inside = true };
		atomic { ran == RUNS - 1 -> slow_inside = false }
	:: atomic { else }
#endif
	fi;
	atomic { ran++; found = false }
}

inline sleep_until_called()
{
	before = wakes[me]; /* POOL3 */
	atomic { add_searching(-1) };
	sleepers++;
	idle[me] = true;
	find_work(); /* POOL2 */
	if
	:: found || stopping ->
		if
		:: atomic { idle[me] -> idle[me] = false }; sleepers--; atomic { add_searching(1) }
		:: !idle[me] && (!found || wakes[me] != before)
		fi
	:: !found && wakes[me] != before
	:: !found && me == 1 && !stopping -> /* it has been idle for too long */
		if
		:: atomic { idle[me] -> idle[me] = false }; sleepers--;
#ifndef END_WITHOUT_LOOK
			find_work(); /* POOL2 */
#endif
			if
			:: atomic { found -> add_searching(1) }
			:: atomic { !found -> retired = true }
			fi
		:: !idle[me] && wakes[me] != before
		fi
	fi;
	before = 0
}

inline life()
{
	do
	:: true ->
		stop_seen = stopping;
		find_work();
		if
		:: !found && stop_seen -> break
		:: !found && !stop_seen -> sleep_until_called()
		:: found
		fi;
		stop_seen = false;
		if
		:: retired -> break
		:: !retired && found -> atomic { add_searching(-1) };
			do
			:: found -> work_on(); find_work()
			:: else -> break
			od;
			atomic { add_searching(1) }
		:: !retired && !found
		fi
	od
}

active proctype permanent()
{
	byte me = 0, who = NONE, before;
	bool found, called, retired, stop_seen;
	life()
}

active proctype grown()
{
	byte me = 1, who = NONE, before;
	bool found, called, retired, stop_seen;
	do
	:: alive ->
		atomic { add_searching(1) };
		life();
		atomic { retired = false; alive = false }
	:: !alive && stopping -> break
	od
}

/* Loads one after the other, as is_short in the code. */
inline look()
{
	is_short = false;
	if
	:: searching == 0 ->
		if
		:: sleepers == 0 -> is_short = queued > 0
		:: else
		fi
	:: else
	fi
}

active proctype reserve()
{
	bool is_short;
	do
	:: armed && !stopping ->
		look();
		if
		:: is_short ->
			if /* a look that comes later */
			:: atomic { slow_inside && !alive -> alive = true }
			:: queued == 0 || searching != 0 || sleepers != 0 || stopping
			fi
		:: !is_short /* it stays armed, and looks again */
		:: !is_short ->
			armed = false; /* POOL7 */
#ifndef NO_SECOND_LOOK
			look();
			if
			:: is_short -> armed = true
			:: else
			fi
#endif
		fi;
		is_short = false
	:: stopping -> break
	od
}

active proctype bringer()
{
	byte who = NONE, n;
	bool called;
	do
	:: n < PIECES -> n++; queued++; call_for_help()
	:: else -> break
	od;
	ran == RUNS;
	stopping = true;
	atomic { wakes[0]++; wakes[1]++ }
}
