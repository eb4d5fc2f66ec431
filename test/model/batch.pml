/*
 * A batch: wheel/run/run.h, and in run.c submit, finish, return; how the workers of a pool
 * claim its runs (executor/pool/queue.c, `open`); close's wait.
 *
 * Modelled: one chunk of the wheel, submitted twice, with three entries and then with two. A worker
 * takes it from the queue, begins its first run, and shows how many are left to claim. Another
 * worker claims from that word, at any time later than its look at it. Each runs and finishes. The
 * second submit may be refused by the executor, and is then run by the driver itself. At last close
 * waits for batches_out and frees all.
 *
 * Left out: the control words (word.pml): an entry that is run has been run; who is woken
 * (pool.pml). The word's address: there is one batch. Orders of release and acquire are program
 * order here.
 *
 * Holds:
 *   RUN1, OPEN  what is claimed belongs to the intended submit, and is run once (G3)
 *   RUN2  a batch returns when its last run is over, just once
 *   RUN3  a returned chunk is written to by nobody else
 *   RUN4  after batches_out has fallen to zero nobody touches the service
 *   rule 4 of executor/pool/parts.h: nobody reads a batch that has returned
 *
 *   run: BATCH  RUN1 OPEN RUN2 RUN3 RUN4, for G3
 *   mutant: CLAIM_BLIND    a claim does not see whether the word has changed
 *       /open == c/{N;s/.\+/:: true -> open = c - 1; won = true/}
 *   mutant: READ_FIRST     a claim reads the batch's count before its CAS
 *       /:: c > 0/s/$/ first = count;/; /^\t\t\tfi$/{n;n;N;N;N;d}
 *   mutant: SHOW_ALL       the worker shows its own first run, too
 *       s/count - 1;/count;/
 *   mutant: QUEUED_FIRST   the batch is queued before its fields are written
 *       /count = n;/d; /queued = true;/s/$/ count = n/
 *   mutant: COUNT_LATE     finish reads the chunk's count after its addition
 *       /+ n;/d; /count;/s/^/atomic { finished = finished + n; total = finished }; /
 *   mutant: FINISH_FIRST   a run is finished with before it is run
 *       /^\t:: won ->$/s/$/ finish(1);/; /claims++;/{N;s/.\+/won = false/}
 *   mutant: OUT_FIRST      batches_out falls before the chunk is returned
 *       /:: total/s/$/ batches_out--;/; /batch_return:/{n;n;d}
 */

byte open;                  /* runs left to claim */
byte count, finished;       /* the chunk's */
byte round;                 /* whose entries the chunk holds: 0 while it is not out */
bool returned, freed;       /* service.returned; all memory */
byte batches_out;
bool queued;                /* the pool's */
byte ran[9];                /* by submit * 3 + index */
byte runs_under_way;
bool all_submitted;

#define LOOK assert(!freed && round != 0 && !returned) /* a look at the chunk */

inline run_entry(l, at)
{
	atomic {
		assert(!freed && round == l && at < count && ran[l * 3 + at] == 0); /* RUN1, RUN3 */
		runs_under_way++;
		ran[l * 3 + at]++
	};
	runs_under_way--
}

inline finish(n)
{
	c = count;
	atomic { finished = finished + n; total = finished }; /* RUN2 */
	if
	:: total == c ->
		atomic {
			assert(!freed && !returned && round != 0); /* RUN2, RUN4 */
			assert(runs_under_way == 0);
			returned = true /* batch_return: RUN3 */
		};
		batches_out-- /* RUN4 */
	:: else
	fi;
	c = 0
}

/* won: a run is claimed, with that index */
inline claim()
{
	won = false;
	c = open; /* OPEN */
	if
	:: c > 0 ->
		atomic {
			if
			:: open == c -> open--; won = true /* OPEN */
			:: open != c
			fi
		};
		if
		:: won -> atomic { LOOK; first = count }
		:: else
		fi;
		index = first - c
	:: else
	fi;
	atomic { c = 0; first = 0 }
}

/* Runs what it has claimed, and what else it can claim. */
inline work_on()
{
	whose = round;
	do
	:: won ->
		run_entry(whose, index);
		claims++;
		claim()
	:: !won && open > 0 && claims > 0 -> claim() /* its CAS has failed */
	:: !won && (open == 0 || claims == 0) -> break
	od;
	if
	:: claims > 0 -> finish(claims)
	:: else
	fi
}

active proctype taker()
{
	byte c, first, total, claims, index, whose;
	bool won;
end:	do
	:: atomic { queued -> queued = false };
		atomic { LOOK; index = 0; won = true };
		open = count - 1;
		work_on();
		atomic { total = 0; claims = 0; index = 0; whose = 0; won = false }
	od
}

active proctype stealer()
{
	byte c, first, total, claims, index, whose;
	bool won;
end:	do
	:: open > 0 -> claim();
		if
		:: won -> work_on()
		:: else
		fi;
		atomic { total = 0; claims = 0; index = 0; whose = 0; won = false }
	od
}

inline hand_out(l, n)
{
	atomic { round = l; finished = 0 };
	batches_out++;
	count = n; /* RUN1 */
	skip
}

inline submit(n)
{
	queued = true;
}

active proctype driver()
{
	hand_out(1, 3);
	submit(3);
	atomic { returned -> returned = false; round = 0 }; /* batch_collect: RUN3 */
	count = 4;                                         /* an ordinary chunk meanwhile */
	hand_out(2, 2);
	if
	:: submit(2)
	:: batches_out--; /* refused: tw__batch_submit */
		run_entry(2, 0); /* tw__run_inline */
		run_entry(2, 1);
		round = 0
	fi;
	all_submitted = true
}

active proctype closing()
{
	all_submitted; /* the last round */
	/* RUN4 */
	atomic { batches_out == 0 -> freed = true };
	assert(ran[3] == 1 && ran[4] == 1 && ran[5] == 1); /* G3 */
	assert(ran[6] == 1 && ran[7] == 1)
}
