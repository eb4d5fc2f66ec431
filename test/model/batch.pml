/*
 * A batch: wheel/run/batch.h, and in batch.c submit, claim, finish, return; how a pool opens it to
 * several workers (executor/pool/queue.c); close's wait.
 *
 * Modelled: one chunk of the wheel, submitted twice, with two entries and then with one. A worker
 * takes it from the queue, claims the first run and lists the batch, under the pool's lock; then it
 * claims without the lock. Another worker claims runs of the listed batch under the lock. Each runs
 * and finishes. The second submit may be refused by the executor, and is then run by the driver
 * itself. At last close waits for batches_out and frees all.
 *
 * Left out: the control words (word.pml): an entry that is run has been run; who is woken
 * (pool.pml). Orders of release and acquire are program order here.
 *
 * Holds:
 *   RUN1  what is claimed belongs to the intended submit, and is run once (G3)
 *   RUN2  a batch returns when its last run is over, just once
 *   RUN3  a returned chunk is written to by nobody else
 *   RUN4  after batches_out has fallen to zero nobody touches the service
 *   rule 4 of executor/pool/parts.h: nobody reads a batch that has returned
 *
 *   run: BATCH  RUN1 RUN2 RUN3 RUN4, for G3
 *   mutant: LOOK_THEN_ADD  a claim that is beyond the end counts
 *   mutant: NEXT_LAST      the batch is submitted before `next` is published
 *   mutant: COUNT_LATE     finish reads the chunk's count after its addition
 *   mutant: FINISH_FIRST   a run is finished with before it is run
 *   mutant: OUT_FIRST      batches_out falls before the chunk is returned
 *   mutant: LIST_FIRST     the batch is listed before its first run is claimed
 *   mutant: UNLIST_LATE    the batch is listed until its worker has finished with it
 *   mutant: CLAIM_LATE     a worker that joins claims when it has given up the lock
 */

byte next, count, finished; /* the chunk's */
byte round;                 /* whose entries the chunk holds: 0 while it is not out */
bool returned, freed;       /* service.returned; all memory */
byte batches_out;
bool queued, listed, locked; /* the pool's */
byte ran[6];                 /* by submit * 2 + index */
byte runs_under_way;
bool all_submitted;

#define LOOK assert(!freed && round != 0 && !returned) /* a look at the chunk */

inline lock()
{
	atomic { !locked -> locked = true }
}

inline unlock()
{
	locked = false
}

inline run_entry(l, at)
{
	atomic {
		assert(!freed && round == l && ran[l * 2 + at] == 0); /* RUN1, RUN3 */
		runs_under_way++;
		ran[l * 2 + at]++
	};
	runs_under_way--
}

inline finish(n)
{
#ifndef COUNT_LATE
	c = count;
#endif
	atomic { finished = finished + n; total = finished }; /* RUN2 */
#ifdef COUNT_LATE
	c = count;
#endif
	if
	:: total == c ->
#ifdef OUT_FIRST
		batches_out--;
#endif
		atomic {
			assert(!freed && !returned && round != 0); /* RUN2, RUN4 */
			assert(runs_under_way == 0);
			returned = true /* batch_return: RUN3 */
		};
#ifndef OUT_FIRST
		batches_out-- /* RUN4 */
#endif
	:: else
	fi;
	c = 0
}

/* won: a run is claimed, with that index */
inline claim()
{
	atomic { LOOK; c = next; won = c < count }; /* RUN1 */
	if
	:: won -> atomic { LOOK; index = next; next++ };
#ifndef LOOK_THEN_ADD
		won = index < count
#endif
	:: else
	fi;
	c = 0
}

/* Runs what it has claimed, and what else it can claim. */
inline work_on()
{
	whose = round;
	claims = 0;
	do
	:: won ->
#ifdef FINISH_FIRST
		finish(1);
		run_entry(whose, index);
		won = false
#else
		run_entry(whose, index);
		claims++;
		claim()
#endif
	:: else -> break
	od
}

active proctype taker()
{
	byte c, total, claims, index, whose;
	bool won;
end:	do
	:: atomic { queued && !locked -> locked = true };
		queued = false;
#ifdef LIST_FIRST
		listed = true;
		unlock();
		claim();
#else
		claim();
		listed = true;
		unlock();
#endif
		work_on();
#ifdef UNLIST_LATE
		if
		:: claims > 0 -> finish(claims)
		:: else
		fi;
#endif
		lock();
		listed = false;
		unlock();
#ifndef UNLIST_LATE
		if
		:: claims > 0 -> finish(claims)
		:: else
		fi;
#endif
		atomic { c = 0; total = 0; claims = 0; index = 0; whose = 0; won = false }
	od
}

active proctype joiner()
{
	byte c, total, claims, index, whose;
	bool won;
end:	do
	:: atomic { listed && !locked -> locked = true };
		if
		:: listed ->
#ifdef CLAIM_LATE
			unlock();
			claim();
#else
			claim();
			unlock();
#endif
			if
			:: won -> work_on(); finish(claims)
			:: else
			fi
		:: else -> unlock()
		fi;
		atomic { c = 0; total = 0; claims = 0; index = 0; whose = 0; won = false }
	od
}

inline hand_out(l, n)
{
	atomic { round = l; count = n; finished = 0 };
	batches_out++;
#ifndef NEXT_LAST
	next = 0 /* RUN1 */
#endif
}

inline submit(l, n)
{
	lock();
	queued = true;
	unlock()
#ifdef NEXT_LAST
	;
	next = 0
#endif
}

active proctype driver()
{
	hand_out(1, 2);
	submit(1, 2);
	atomic { returned -> returned = false; round = 0 }; /* batch_collect: RUN3 */
	count = 3;                                         /* an ordinary chunk meanwhile */
	hand_out(2, 1);
	if
	:: submit(2, 1)
	:: batches_out--; /* refused: tw__batch_retract */
		run_entry(2, 0); /* tw__run_inline */
		round = 0
	fi;
	all_submitted = true
}

active proctype closing()
{
	all_submitted; /* the last round */
	/* RUN4 */
	atomic { batches_out == 0 -> freed = true };
	assert(ran[2] == 1 && ran[3] == 1 && ran[4] == 1) /* G3 */
}
