/*
 * A task of a pool begins while a service with on_stuck is created on the pool: show_task in
 * executor/pool/worker.c, tw__pool_watch in executor/pool/source.c, tw__look_for_stuck_by in
 * wheel/run/watchdog.c.
 *
 * Modelled: a worker shows a task and looks whether there are watchers; the creating thread counts
 * the service as a watcher, tells it which flag says that its tick thread sleeps, and rings; the
 * tick thread arms its bell, raises the flag, looks at what is shown, and sleeps if it saw nothing.
 * What the worker has stored but not yet in memory is explicit: `stored` against `word`. The
 * process `memory` moves it there at any moment. A sequentially consistent store moves it, and so
 * does membarrier. MEMBARRIER and SEQ_CST are the two ways of WATCHERS1.
 *
 * Left out: the task's end, and dates. Other services, whose flags the worker looks at too.
 *
 * Holds:
 *   nothing under way and the tick thread asleep: it has seen the task (USER3, WATCHERS1)
 *
 *   run: MEMBARRIER      by WATCHERS1 USER3
 *   run: SEQ_CST         by WATCHERS1 USER3
 *   mutant: MEMBARRIER LOOK_FIRST    the worker looks for watchers before it shows the task
 *   mutant: MEMBARRIER NO_BARRIER    the creating thread does without the heavy barrier
 *   mutant: MEMBARRIER LIGHT_WAKE    a worker that finds watchers looks at the flag without having
 *                                    its store in memory
 *   mutant: MEMBARRIER RING_FIRST    the tick thread is rung for before it knows the flag
 *   mutant: SEQ_CST LIGHT_SHOW       the task is shown by a mere release store
 */
bool stored, word;      /* the task: published by the worker, in memory */
bool watchers;
bool flag[2];           /* the tick thread sleeps: the service's own flag, the pool's */
byte flag_in_use;
bool bell, asleep, seen;
byte at_work = 2;

inline ring()
{
	atomic { bell = true; asleep = false } /* seq_cst, then futex wake */
}

active proctype worker()
{
	bool finds;
#ifdef LOOK_FIRST
	finds = watchers;
#endif
	stored = true; /* USER1, WATCHERS1 */
#if defined(SEQ_CST) && !defined(LIGHT_SHOW)
	word = true;
#endif
#ifndef LOOK_FIRST
	finds = watchers; /* WATCHERS1 */
#endif
	if
	:: finds ->
#ifndef LIGHT_WAKE
		word = true; /* USER3 */
#endif
		if
		:: flag[1] -> flag[1] = false; ring() /* USER3 */
		:: else
		fi
	:: else
	fi;
	at_work--
}

active proctype creator()
{
	watchers = true; /* WATCHERS1 */
#if defined(MEMBARRIER) && !defined(NO_BARRIER)
	word = stored; /* WATCHERS1 */
#endif
#ifdef RING_FIRST
	ring();
	flag_in_use = 1;
#else
	flag_in_use = 1;
	ring();
#endif
	at_work--
}

active proctype memory()
{
end:	do
	:: word != stored -> word = stored
	od
}

active proctype tick_thread()
{
	byte mine;
again:	bell = false;
	mine = flag_in_use;
	flag[mine] = true; /* USER3 */
	if
	:: word -> seen = true; goto done /* USER1, USER3 */
	:: else
	fi;
	/* the futex takes the sleeper only while the bell reads 0 */
	if
	:: atomic { !bell -> asleep = true }
	:: bell -> goto again
	fi;
	if
	:: !asleep -> goto again
	:: atomic { asleep && at_work == 0 && word == stored -> assert(seen) }
	fi;
done:	skip
}
