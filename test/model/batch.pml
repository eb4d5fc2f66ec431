/*
 * A batch: wheel/run/batch.h, and in batch.c submit, claim, finish, return; open and join in
 * executor/pool/pool.c; close's wait.
 *
 * Modelled: one chunk of the wheel, submitted twice, with two entries and then with one. A worker
 * takes it from the ring and shows it as open, another joins; each claims by the cursor, runs, and
 * finishes. The second submit may be refused by the executor, and is then run by the driver itself.
 * At last close waits for batches_out and frees all. The cursor is one word: submit, next, entries.
 *
 * Left out: the control words (word.pml): an entry that is run has been run; who is woken
 * (pool.pml). Orders of release and acquire are program order here.
 *
 * Holds:
 *   RUN1  what is claimed belongs to the intended submit, and is run once (G3)
 *   RUN2  a batch returns when its last run is over, just once
 *   RUN3  a returned chunk is written to by nobody else
 *   RUN4  after batches_out has fallen to zero nobody touches the service
 *
 *   run: BATCH  RUN1 RUN2 RUN3 RUN4, for G3
 *   mutant: NO_SEQUENCE    the claim does not compare the sequence number
 *   mutant: CURSOR_LAST    the batch is submitted before its cursor is published
 *   mutant: COUNT_LATE     finish reads the chunk's count after its addition
 *   mutant: FINISH_FIRST   a run is finished with before it is run
 *   mutant: OUT_FIRST      batches_out falls before the chunk is returned
 */
/* in the cursor: one more of `next`; `entries` is below it, the sequence number above */
#define NEXT 4
#define SEQUENCE(c) ((c) / 16)
#define LEFT(c) ((c) / 4 % 4 < (c) % 4)

byte cursor, count, finished; /* the chunk's */
byte round;                    /* whose entries the chunk holds: 0 while it is not out */
bool returned, freed;         /* service.returned; all memory */
byte batches_out;
byte ring;                    /* 1: the chunk is in it */
bool open;                    /* by the worker that took it */
byte open_sequence;
byte ran[6];                  /* by submit * 2 + index */
byte runs_under_way;
bool all_submitted;

inline run_entry(l, index)
{
	atomic {
		assert(!freed && round == l && ran[l * 2 + index] == 0); /* RUN1, RUN3 */
		runs_under_way++;
		ran[l * 2 + index]++
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

/* work_on, of a batch whose sequence number is `sequence`. */
inline work_on()
{
	claimed = 0;
	do
	:: c = cursor; /* RUN1 */
#ifdef NO_SEQUENCE
		if
		:: !LEFT(c) -> break
#else
		if
		:: SEQUENCE(c) != sequence || !LEFT(c) -> break
#endif
		:: else ->
			atomic {
				if
				:: cursor == c -> cursor = cursor + NEXT; won = true
				:: else -> won = false
				fi
			};
			if
			:: won ->
#ifdef FINISH_FIRST
				index = c / 4 % 4;
				loan_meant = SEQUENCE(c);
				finish(1);
				run_entry(loan_meant, index);
#else
				run_entry(SEQUENCE(c), (c / 4 % 4));
				claimed++;
#endif
				won = false
			:: else
			fi
		fi
	od;
	if
	:: taken -> open = false
	:: else
	fi;
	if
	:: claimed > 0 -> finish(claimed)
	:: else
	fi;
	atomic { c = 0; total = 0; claimed = 0; sequence = 0; index = 0; loan_meant = 0 }
}

active proctype taker()
{
	byte c, total, claimed, sequence, index, loan_meant;
	bool won, taken = true;
end:	do
	:: atomic { ring == 1 -> ring = 0 };
		sequence = SEQUENCE(cursor);
		open_sequence = sequence; /* pool.c, POOL4 */
		open = true;
		work_on()
	od
}

active proctype joiner()
{
	byte c, total, claimed, sequence, index, loan_meant;
	bool won, taken;
end:	do
	:: open ->
		sequence = open_sequence; /* it may have returned by now, and even be out again */
		work_on()
	od
}

inline hand_out(l, n)
{
	atomic { round = l; count = n; finished = 0 };
	batches_out++;
#ifndef CURSOR_LAST
	cursor = l * 16 + n /* RUN1 */
#endif
}

inline submit(l, n)
{
	ring = 1;
#ifdef CURSOR_LAST
	cursor = l * 16 + n
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
	:: cursor = 0; /* refused: tw__batch_retract */
		batches_out--;
		run_entry(2, 0); /* tw__run_inline */
		round = 0
	fi;
	all_submitted = true
}

active proctype closing()
{
	all_submitted; /* the last round */
	/* RUN4; the pool has stopped before, and looks at cursors no more */
	atomic { batches_out == 0 -> freed = true };
	assert(ran[2] == 1 && ran[3] == 1 && ran[4] == 1) /* G3 */
}
