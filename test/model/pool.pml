/*
 * The pool's queue (executor/pool/parts.h, queue.c), its starter (threads.c), and its end (pool.c).
 *
 * Modelled: submitters, workers, the starter, and close. A push to the ring is one step, and the
 * look at `wanted` another one; so are a worker's pop and what it does next. The lock is held over
 * several steps where the ring is looked at. Work that finds no cell is kept, and pushed by whoever
 * makes room.
 * The first run of all is slow: it returns only when all others have run, which another worker must
 * see to.
 *   BATCH   Two workers. One submitter brings a batch of two runs, another one a task. The worker
 *           that took the batch claims from it without the lock.
 *   GROW    One permanent worker, one that the starter starts and that ends when it is idle for
 *           long. Three tasks.
 *   JOBS    Two workers, two jobs, of which one at a time may run, and a task. The first job ends
 *           when the task has run.
 *   ROOM    Two workers, a ring with one cell for tasks and another one for items, an item, and two
 *           submitters of tasks that wait for room.
 *   KEEP    The same ring, and three items: one finds no cell.
 *   END     One worker, room for one task, two submitters that wait for room. The pool is closed at
 *           any time, and freed when the workers have ended.
 *
 * Left out: which of several sleepers is called; links and order; a push that has its cell and has
 * not filled it (its submitter looks at `wanted` later than those behind it); threads that the
 * system refuses; time: a worker inside the slow run is blocked. A futex is a word that the sleeper
 * waits for.
 *
 * Holds:
 *   rules 1 to 3 of parts.h, for G8: nothing waits forever while a worker sleeps, or behind a
 *       blocked one: else this would stand still
 *   WANTED  of a push and a worker, or starter, about to sleep, one sees the other
 *   CALLED  a worker that was called wakes
 *   ROOM    what waits for room gets it
 *   BRINGING  rule 5: nobody touches a pool that was freed
 *
 *   run: BATCH   rules 1 and 3, WANTED, CALLED
 *   run: GROW    rules 2 and 3, WANTED, CALLED
 *   run: JOBS    rule 1, and a worker that is never inside a job
 *   run: ROOM    ROOM: what waits for room runs; rule 6
 *   run: KEEP    ROOM: work that is kept runs
 *   run: END     rule 5, BRINGING, ROOM; what was accepted runs
 *   mutant: BATCH NO_HELP       a worker that leaves something behind calls nobody
 *   mutant: BATCH LOOK_FIRST    a worker looks at the ring before it stores `wanted`
 *   mutant: BATCH SEARCHES_ON   a worker that was called counts as searching when it has looked
 *   mutant: BATCH NOT_OPENED    a batch is not shown to others
 *   mutant: GROW NO_ARM         who finds no worker to call does not call the starter
 *   mutant: GROW DISARM_BLIND   the starter does not look again when it is about to sleep
 *   mutant: GROW END_BLIND      a worker that was idle for long ends without a look
 *   mutant: JOBS NO_LIMIT       each worker takes jobs
 *   mutant: JOBS HELD_ON        a job that was set aside does not come back
 *   mutant: ROOM NO_TELL        a worker that has made room does not look who waits for it
 *   mutant: ROOM ROOM_LATE      a submitter reads `room` after it has found none
 *   mutant: ROOM TELL_FIRST     a worker looks who waits for room before it has made some
 *   mutant: ROOM ENDS_ALONE     a worker that ends at the stop calls nobody
 *   mutant: KEEP KEEP_BLIND     work is kept without another look for room
 *   mutant: KEEP KEEP_ON        a worker that has made room does not push what is kept
 *   mutant: END NOT_SHOWN       close does not wait for submitters
 *   mutant: END STOP_EARLY      a worker that the stop has called ends without a look
 */
#ifdef GROW
#define PERMANENT 1
#endif
#ifdef END
#define PERMANENT 1
#endif
#ifndef PERMANENT
#define PERMANENT 2
#endif

#ifdef BATCH
#define RUNS 3
#endif
#ifdef GROW
#define RUNS 3
#endif
#ifdef JOBS
#define RUNS 3
#endif
#ifdef ROOM
#define RUNS 3
#define SMALL
#endif
#ifdef KEEP
#define RUNS 3
#define SMALL
#endif
#ifdef END
#define RUNS 0
#define SMALL
#endif

#define NONE 0
#define TASK 1
#define OPENED 2 /* the first run of a batch, which is listed */
#define JOB 3
#define ITEM 4

/* the ring */
byte tasks, batches, jobs;
bool shut;
byte left; /* `open` */

bool wanted;
byte waiting, room;

/* under the lock */
bool locked;
byte held, inside, kept;
bool searching, idle[2], armed, stopping;
byte alive;
bool called[2]; /* futexes */

byte ran, accepted, in_jobs, at_work, bringing, refused;
bool slow_begun, freed;

#define WAITS (tasks > 0 || batches > 0 || left > 0 || jobs > 0)
#define SHORT (!searching && !idle[0] && !idle[1] && WAITS)

inline tell()
{
	wanted = !searching && (idle[0] || idle[1] || !armed)
}

/* Under the lock. */
inline call()
{
	if
	:: searching || !(stopping || WAITS)
	:: else ->
		if
		:: idle[0] -> idle[0] = false; searching = true; called[0] = true
		:: !idle[0] && idle[1] -> idle[1] = false; searching = true; called[1] = true
		:: else ->
#ifndef NO_ARM
			armed = true
#else
			skip
#endif
		fi;
		tell()
	fi
}

/* Under the lock, which it gives up. */
inline push_kept_and_unlock()
{
	atomic {
		if
		:: kept > 0 && tasks < 2 -> kept--; tasks++; waiting--
		:: else
		fi
	};
	atomic { call(); locked = false }
}

/* Without the lock. */
inline take()
{
	do
#ifdef TELL_FIRST
	:: tasks > 0 -> waits = waiting > 0;
		atomic {
			if
			:: tasks > 0 -> tasks--; what = TASK
			:: else -> skip
			fi };
#else
	:: atomic { tasks > 0 -> assert(!freed); tasks--; what = TASK };
#ifdef SMALL
		waits = waiting > 0; /* ROOM */
#endif
#endif
#ifndef NO_TELL
		if
		:: waits ->
#ifndef KEEP_ON
			atomic { !locked -> locked = true; assert(!freed) };
			push_kept_and_unlock();
#endif
			atomic { assert(!freed); room++ }
		:: else
		fi;
#endif
		waits = false;
		break
	:: atomic { batches > 0 -> batches--; what = OPENED };
#ifndef NOT_OPENED
		left = 1; /* WANTED */
#endif
		break
	:: atomic { jobs > 0 -> jobs--; what = JOB };
		atomic { !locked ->
			if
#ifndef NO_LIMIT
			:: inside == 1 -> held++; what = NONE
			:: inside != 1 -> inside++
#else
			:: true -> inside++
#endif
			fi };
		if
		:: what == JOB -> break
		:: else
		fi
	:: atomic { tasks == 0 && batches == 0 && jobs == 0 && left > 0 ->
		left--; what = TASK };
		break
	:: atomic { tasks == 0 && batches == 0 && jobs == 0 && left == 0 -> what = NONE };
		break
	od
}

inline run_one()
{
	if
	:: atomic { !slow_begun && RUNS > 0 -> slow_begun = true };
#ifdef JOBS
		ran == 1 || (what == TASK && ran == RUNS - 1) /* a job waits for the task alone */
#else
		ran == RUNS - 1
#endif
	:: else
	fi;
	ran++
}

inline look_at_wanted()
{
	if
	:: wanted -> atomic { !locked -> assert(!freed); call() }
	:: else -> assert(!freed)
	fi
}

proctype worker(byte me)
{
	byte what;
	bool waits, slept, late, ends;
	do
	:: take();
		if
		:: what != NONE && !slept ->
#ifndef NO_HELP
			if
			:: wanted && WAITS -> atomic { !locked -> call() }
			:: else
			fi
#else
			skip
#endif
		:: else ->
			atomic { !locked -> locked = true; assert(!freed) };
#ifdef LOOK_FIRST
			waits = WAITS;
#endif
			atomic {
				ends = what == NONE && (stopping || late);
#ifdef STOP_EARLY
				ends = ends || (stopping && called[me] && what == NONE);
#endif
				if
#ifndef SEARCHES_ON
				:: called[me] -> searching = false
#endif
				:: else
				fi;
				called[me] = false;
				idle[me] = what == NONE && !ends;
				tell()
			};
#ifndef LOOK_FIRST
			waits = WAITS; /* WANTED */
#endif
#ifdef END_BLIND
			if
			:: ends && late -> waits = false
			:: else
			fi;
#endif
#ifdef STOP_EARLY
			if
			:: ends -> waits = false
			:: else
			fi;
#endif
			atomic {
				slept = what == NONE;
				if
#ifndef NO_HELP
				:: what != NONE && waits -> call()
#endif
				:: ends && !waits -> alive--;
					if
#ifndef ENDS_ALONE
					:: stopping -> call()
#endif
					:: else
					fi;
					locked = false;
					break
				:: else
				fi;
				locked = false
			};
			late = false;
			if
			:: what == NONE && !waits ->
				if
				:: called[me] /* CALLED */
#ifdef GROW
				:: me == 1 -> late = true /* the time is over */
#endif
				fi
			:: what == NONE && waits -> WAITS || called[me] || stopping
			:: else
			fi;
			waits = false;
			ends = false
		fi;
		if
		:: what == OPENED ->
			run_one();
			if
			:: atomic { left > 0 -> left-- }; run_one() /* without the lock */
			:: left == 0 ->
#ifdef NOT_OPENED
				run_one()
#else
				skip
#endif
			fi
		:: what == TASK -> run_one()
		:: what == JOB ->
			atomic { in_jobs++; assert(in_jobs < 2) };
			run_one();
			in_jobs--;
			atomic { !locked ->
				inside--;
#ifndef HELD_ON
				if
				:: held > 0 -> held--; waits = true
				:: else
				fi
#endif
			};
			if
			:: waits -> waits = false; jobs++; look_at_wanted()
			:: else
			fi
		:: else
		fi;
		what = NONE
	od;
	at_work--
}

/* Sleeps until there is room, or the pool is closed. */
inline submit_wait()
{
	atomic { assert(!freed); waiting++ }; /* ROOM */
	do
	::
#ifndef ROOM_LATE
		before = room;
#endif
		if
		:: shut -> kind = NONE; break
		:: atomic { !shut && tasks == 0 -> tasks++; accepted++ };
			look_at_wanted(); /* WANTED */
			break
		:: !shut && tasks > 0
		fi;
#ifdef ROOM_LATE
		before = room;
#endif
		room != before /* the futex */
	od;
	atomic { assert(!freed); waiting-- };
	if
	:: kind == NONE -> refused++
	:: else
	fi
}

proctype submitter(byte kind)
{
	byte before;
	atomic { bringing++; assert(!freed) };
#ifdef SMALL
	if
	:: kind == ITEM ->
		if
		:: atomic { tasks < 2 -> tasks++; accepted++ };
			look_at_wanted() /* WANTED */
		:: tasks == 2 ->
			atomic { !locked -> locked = true };
			kept++;
			accepted++;
			waiting++; /* ROOM */
#ifndef KEEP_BLIND
			push_kept_and_unlock()
#else
			locked = false
#endif
		fi
	:: else -> submit_wait()
	fi;
	bringing--
#else
#ifdef JOBS
	atomic {
		if
		:: kind == JOB -> jobs++
		:: else -> tasks++
		fi
	};
#endif
#ifdef BATCH
	atomic {
		if
		:: kind == TASK -> tasks++
		:: else -> batches++
		fi
	};
#endif
#ifdef GROW
	tasks++;
#endif
	look_at_wanted(); /* WANTED */
	bringing--
#endif
}

proctype starter()
{
end:	do
	:: armed ->
		if
		:: atomic { !locked && SHORT && alive == 1 ->
			alive++; at_work++; run worker(1) }
		:: atomic { !locked && !SHORT -> locked = true }; /* it is about to sleep */
			atomic { armed = false; tell() };
			atomic {
				if
#ifndef DISARM_BLIND
				:: SHORT -> armed = true; tell() /* WANTED */
#endif
				:: else
				fi;
				locked = false
			}
		fi
	od
}

init {
	atomic {
		alive = PERMANENT;
		at_work = PERMANENT;
#ifndef GROW
		armed = true; /* there is no starter */
#endif
		tell();
		run worker(0);
		if
		:: PERMANENT == 2 -> run worker(1)
		:: else
		fi;
#ifdef BATCH
		run submitter(OPENED);
		run submitter(TASK);
#endif
#ifdef GROW
		run starter();
		run submitter(TASK);
		run submitter(TASK);
		run submitter(TASK);
#endif
#ifdef JOBS
		run submitter(JOB);
		run submitter(JOB);
		run submitter(TASK);
#endif
#ifdef ROOM
		run submitter(ITEM);
		run submitter(TASK);
		run submitter(TASK);
#endif
#ifdef KEEP
		run submitter(ITEM);
		run submitter(ITEM);
		run submitter(ITEM);
#endif
#ifdef END
		run submitter(TASK);
		run submitter(TASK);
#endif
	};
#ifndef END
	ran == RUNS;
#endif
	atomic { !locked -> shut = true; room++ };
#ifndef NOT_SHOWN
	bringing == 0; /* BRINGING */
#endif
	atomic { !locked ->
		stopping = true;
		call() /* rule 6 */
	};
	at_work == 0;
#ifdef END
	accepted + refused == 2; /* the user waits for calls that are refused */
#endif
	freed = true;
#ifdef END
	assert(ran == accepted)
#else
	assert(ran == RUNS)
#endif
}
