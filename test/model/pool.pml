/*
 * The pool's wake rule: executor/pool/wake.c and worker.c.
 *
 * Modelled: the driver submits batches; workers dequeue and join, claim, call for help, and sleep
 * on their event counts; then the pool is stopped. The first entry of all is slow: it returns only
 * when all others have run, which a free worker must see to.
 *   TWO     workers get two batches of two entries.
 *   THREE   workers get one batch.
 *   HELD    Three workers, a batch of two entries and one of a single entry. The first entry of
 *           each is slow, so the worker that shows the first batch may trust a searcher that is
 *           then held up in the second. To keep the search small, the first worker has just taken
 *           the first batch, and a look for work is one step.
 *
 * Left out: plain tasks (tasks.pml, ring.pml), work of the layers above (pool_works.pml); what a
 * batch is in itself (batch.pml): here it is a count of entries to claim, in one step. All
 * operations of workers on searching, sleepers, idle and open are sequentially consistent in the
 * code, so they interleave here; the bringer's enqueue is not, and its fence counts (NO_FENCE).
 *
 * Holds:
 *   POOL2  no work is left while a worker sleeps, and
 *   G8  a slow callback keeps no other from running while a worker is free or asleep: else this
 *       would stand still
 *   POOL3  `searching` never falls below zero, and is zero when all sleep; a stop wakes all
 *
 *   run: TWO   G8, by POOL2 POOL3
 *   run: HELD   G8, by POOL2 POOL3, with a searcher that is trusted and held up
 * (THREE holds as well: 11.5 million states, 12 s; too long for every day.)
 *   mutant: TWO STALE_CALL         a worker that finds work after it was called goes on without
 *                                  waiting for the call
 *   mutant: TWO LOOK_BEFORE_IDLE   a worker looks for work before it shows itself as asleep
 *   mutant: TWO COUNT_LATE         the event count is read after the idle bit is set
 *   mutant: TWO NO_FENCE           the bringer looks for searchers while its batch still sits in
 *                                  the store buffer
 *   mutant: TWO NO_HELP            a worker that leaves work behind calls nobody
 *   mutant: TWO TRUST_WAIT         the wait of the event count is trusted, though it may return
 *                                  uncalled
 *   mutant: TWO NO_SECOND_LOOK     one who has found no sleeper does not look again after he has
 *                                  lowered `searching`
 *   mutant: HELD QUEUES_ONLY       a searcher that has found something looks at queues for more,
 *                                  and not at shown batches
 */
#ifdef TWO
#define WORKERS 2
#else
#define WORKERS 3
#endif
#ifdef THREE
#define BATCHES 1
#else
#define BATCHES 2
#endif
#ifdef HELD
#define ENTRIES(batch) (2 - (batch))
#define SLOW(batch) (left[batch] == ENTRIES(batch))
#define QUICK 1
#else
#define ENTRIES(batch) 2
#define SLOW(batch) ((batch) == 0 && left[batch] == 2)
#define QUICK (BATCHES * 2 - 1)
#endif
#define NONE 9

#ifdef HELD
byte enqueued = BATCHES, dequeued = 1;
byte left[2] = {2, 1};
#define SEARCHERS (WORKERS - 1)
#else
byte enqueued, dequeued; /* the ring (POOL1): batches are taken in order */
byte left[2];            /* of each batch: entries to claim */
#endif
byte open_batch[3] = NONE;    /* by worker */
byte quick_left = QUICK, at_work = WORKERS;

#define FOUND (batch != NONE)
#include "wake.inc"

/* joinable: looks at another worker's open batch, unless something is found already. */
inline join(other)
{
	atomic {
		if
		:: batch == NONE && open_batch[other] != NONE ->
			if
			:: left[open_batch[other]] > 0 -> batch = open_batch[other]
			:: else
			fi
		:: else
		fi
	}
}

inline dequeue()
{
	batch = NONE;
	if
	:: dequeued < enqueued -> batch = dequeued; dequeued++; own = true
	:: else
	fi
}

inline find_work()
{
#ifdef HELD
	atomic { dequeue(); join((me + 1) % WORKERS); join((me + 2) % WORKERS) }
#else
	atomic { dequeue() };
	join((me + 1) % WORKERS);
#ifdef THREE
	join((me + 2) % WORKERS)
#endif
#endif
}

inline work_on()
{
	if
	:: own -> open_batch[me] = batch /* POOL2 */
	:: else
	fi;
	do
	:: atomic { left[batch] > 0 -> slow = SLOW(batch); left[batch]-- }; /* claim */
#ifndef NO_HELP
		if
		:: left[batch] > 0 || dequeued < enqueued -> call_for_help()
		:: else
		fi;
#endif
		if /* the callback */
		:: atomic { slow && quick_left == 0 -> slow = false }
		:: atomic { !slow -> quick_left-- }
		fi
	:: left[batch] == 0 -> break
	od;
	atomic {
		if
		:: own -> open_batch[me] = NONE
		:: else
		fi;
		batch = NONE;
		own = false
	}
}

#define SHOWS(worker) (open_batch[worker] != NONE && left[open_batch[worker]] > 0)

/* stop_searching: others have trusted this searcher, which may now be held up */
inline look_after_others()
{
	if
	:: dequeued < enqueued -> call_for_help()
	:: else ->
#ifndef QUEUES_ONLY
		if
		:: SHOWS((me + 1) % WORKERS) -> call_for_help()
#if WORKERS == 3
		:: !SHOWS((me + 1) % WORKERS) && SHOWS((me + 2) % WORKERS) -> call_for_help()
#endif
		:: else
		fi
#else
		skip
#endif
	fi
}

active [WORKERS] proctype worker()
{
	byte me = _pid, batch = NONE, who = NONE, before;
	bool own, slow;
#ifdef HELD
	if
	:: me == 0 ->
		atomic { batch = 0; own = true };
		work_on();
		atomic { add_searching(1) }
	:: else
	fi;
#endif
	do
	:: !stopping ->
		find_work();
		if
		:: batch == NONE -> sleep_until_called()
		:: else
		fi;
		if
		:: atomic { batch != NONE -> add_searching(-1) };
			look_after_others();
			do
			:: batch != NONE -> work_on(); find_work()
			:: else -> break
			od;
			atomic { add_searching(1) }
		:: else
		fi
	:: stopping -> break
	od;
	at_work--
}

active proctype bringer()
{
	byte who = NONE, n = enqueued;
	do
	:: n < BATCHES ->
		n++;
#ifndef NO_FENCE
		/* POOL1, POOL2 */
		atomic { left[enqueued] = ENTRIES(enqueued); enqueued++ };
#endif
		call_for_help();
#ifdef NO_FENCE
		atomic { left[enqueued] = ENTRIES(enqueued); enqueued++ }
#endif
	:: else -> break
	od;
#ifdef HELD /* what follows is TWO's */
	atomic { quick_left == 0 -> stopping = true; wakes[0]++; wakes[1]++; wakes[2]++ };
#else
	/* What is left to be done must be done without help. */
	atomic { dequeued == BATCHES && left[0] + left[1] + quick_left == 0 };
	if
	/* POOL3 */
	:: atomic { idle[0] && idle[1] && (WORKERS == 2 || idle[2]) -> assert(searching == 0) }
	:: skip
	fi;
	stopping = true;
	atomic { wakes[0]++; wakes[1]++; wakes[2]++ };
#endif
	at_work == 0
}
