/*
 * Growth of a pool: arming of the starter, and workers that end: executor/pool/grow.c, wake.c
 * (POOL2, POOL7).
 *
 * Modelled: a bringer, worker 0, which is permanent, worker 1, which the starter starts and which
 * may end whenever it is idle, and the starter. The first piece of work is slow: it returns only
 * when all others have run, so worker 1 must be started, again if it has ended.
 *
 * Left out: which of several sleepers is woken, and their event counts (pool.pml); time: a worker
 * inside the slow piece is blocked; batches; threads that the system refuses. All operations are
 * sequentially consistent in the code, so they interleave here.
 *
 * Holds:
 *   POOL7  no piece waits forever behind a blocked worker: else this would stand still
 *   POOL2  nor behind a worker that sleeps or ends
 *
 *   run: GROWS   POOL2 POOL7
 *   mutant: NO_WAKE           who leaves work behind wakes no sleeper
 *   mutant: NO_HELP           a worker that takes a piece, and leaves others behind, calls nobody
 *   mutant: LOOK_BEFORE_IDLE  a worker looks for work before it sets its idle bit
 *   mutant: NO_ARM            who finds nobody to wake does not arm the starter
 *   mutant: NO_SECOND_LOOK    the starter does not look again after it has disarmed itself
 *   mutant: END_WITHOUT_LOOK  a worker that ends does not look for work after it has taken its idle
 *                             bit back
 */
#define PIECES 3

byte queued, ran, sleepers, searching = 1; /* worker 0 begins by searching */
bool idle[2], called[2], alive, armed, slow_begun;

inline call_for_help()
{
	if
	:: searching > 0 /* POOL2 */
	:: else ->
		if
#ifndef NO_WAKE
		:: atomic { sleepers > 0 && idle[0] -> idle[0] = false; searching++ };
			sleepers--;
			called[0] = true /* POOL3 */
		:: atomic { sleepers > 0 && !idle[0] && idle[1] -> idle[1] = false; searching++ };
			sleepers--;
			called[1] = true
#endif
		:: atomic { sleepers == 0 || (!idle[0] && !idle[1]) };
#ifndef NO_ARM
			if
			:: !armed -> armed = true /* POOL7 */
			:: else
			fi
#endif
		fi
	fi
}

inline run_what_waits()
{
	do
	:: atomic { queued > 0 -> queued-- };
		if
		:: counted -> searching--; counted = false
		:: else
		fi;
#ifndef NO_HELP
		if
		:: queued > 0 -> call_for_help()
		:: else
		fi;
#endif
		if
		:: atomic { !slow_begun -> slow_begun = true }; ran == PIECES - 1
		:: atomic { slow_begun }
		fi;
		ran++
	:: atomic { queued == 0 };
		if
		:: !counted -> searching++; counted = true
		:: counted -> break
		fi
	od
}

proctype worker(byte me)
{
	bool counted = true, found;
	do
	:: run_what_waits();
#ifdef LOOK_BEFORE_IDLE
		found = queued > 0;
#endif
		searching--;
		sleepers++;
		idle[me] = true;
#ifndef LOOK_BEFORE_IDLE
		found = queued > 0; /* POOL2 */
#endif
		if
		:: found ->
			if
			:: atomic { idle[me] -> idle[me] = false }; sleepers--; searching++
			:: atomic { called[me] -> called[me] = false } /* counted already */
			fi
		:: atomic { !found && called[me] -> called[me] = false }
		:: atomic { !found && me == 1 && idle[me] -> idle[me] = false }; /* it ends */
			sleepers--;
#ifndef END_WITHOUT_LOOK
			found = queued > 0; /* POOL2 */
#endif
			if
			:: found -> searching++
			:: !found -> break
			fi
		:: ran == PIECES -> break
		fi;
		counted = true
	od;
	if
	:: me == 1 -> alive = false
	:: else
	fi
}

/* Loads one after the other, as is_short in the code. */
inline look()
{
	is_short = searching == 0;
	is_short = is_short && sleepers == 0;
	is_short = is_short && queued > 0
}

active proctype starter()
{
	bool is_short;
	run worker(0);
	do
	:: armed ->
		look();
		if
		:: is_short ->
			if
			:: atomic { !alive -> alive = true; searching++ }; run worker(1)
			:: queued == 0 || searching > 0 || sleepers > 0
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
		fi
	:: ran == PIECES -> break
	od
}

active proctype bringer()
{
	byte n;
	do
	:: n < PIECES -> n++; queued++; call_for_help()
	:: else -> break
	od
}
