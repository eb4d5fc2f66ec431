/*
 * A batch that a worker shows to others: show, hide, join, claim_shown, run_claimed in
 * executor/pool/worker.c.
 *
 * Modelled: one worker takes two batches in turn, of three entries and of two, claims the first run
 * of each, shows the batch, works, hides it and finishes; two others join. A batch goes home with
 * its last finisher; from then on it is memory that somebody else may have, and with the second one
 * the service is gone.
 *
 * Left out: the words of one batch (batch.pml), who is woken (pool.pml). The operations of SHOW1
 * and SHOW2 are sequentially consistent in the code, and interleave here.
 *
 * SHOW NO_SEQUENCE holds as well: since SHOW1 and SHOW2 a joiner cannot meet another batch, and the
 * claim's look at the sequence number (POOL4) is a second belt. Where executors join without them
 * it is needed (batch.pml).
 *
 * Holds:
 *   SHOW1  SHOW2  nobody looks at a batch that has gone home, nor at a service that is gone
 *   POOL4  a joiner that mixes two batches' words claims nothing
 *   G3  each entry is run once
 *
 *   run: SHOW    SHOW1 SHOW2 POOL4, for G3
 *   mutant: SHOW LOOK_FIRST       a joiner looks at what is open before it counts itself
 *   mutant: SHOW NO_WAIT          the worker that hides its batch waits for no joiner
 *   mutant: SHOW SHOW_FIRST       the batch is shown before its first run is claimed
 *   mutant: SHOW LEAVE_EARLY      a joiner leaves the count before it has claimed
 */
#define BATCHES 2
#define ENTRIES(b) (3 - (b))
#define NONE 9

/* Both batches lie in the same chunk, one after the other. */
byte sequence, claimed, finished;
bool home = true, gone;       /* of the chunk, and of all */
byte open = NONE, open_sequence, joiners;
byte ran_of[BATCHES];
byte at_work;

#define LOOK assert(!home && !gone) /* a look at the chunk */

/* tw__batch_claim(chunk, meant) */
inline claim(meant)
{
	atomic {
		LOOK;
#ifdef NO_SEQUENCE
		won = claimed < ENTRIES(sequence);
#else
		won = sequence == meant && claimed < ENTRIES(sequence);
#endif
		if
		:: won -> claimed++
		:: else
		fi
	}
}

inline run_claimed(meant)
{
	do
	:: won ->
		/* G3, POOL4 */
		atomic { assert(!home && sequence == meant && ran_of[meant] < ENTRIES(meant));
			ran_of[meant]++ };
		count++;
		claim(meant)
	:: else -> break
	od
}

inline finish()
{
	atomic {
		if
		:: count > 0 -> LOOK; finished = finished + count; count = 0
		:: else
		fi;
		if
		:: !home && finished == ENTRIES(sequence) -> home = true
		:: else
		fi
	}
}

active proctype taker()
{
	byte b, count;
	bool won;
	do
	:: b < BATCHES ->
		home; /* the last one has returned, and the chunk is submitted again */
		atomic { home = false; sequence = b; claimed = 0; finished = 0 };
#ifndef SHOW_FIRST
		claim(b);
#endif
		open_sequence = b; /* POOL4 */
		open = 0;          /* SHOW1 */
#ifdef SHOW_FIRST
		claim(b);
#endif
		run_claimed(b);
		open = NONE; /* SHOW1 */
#ifndef NO_WAIT
		joiners == 0; /* SHOW1, SHOW2 */
#endif
		finish();
		b++
	:: else -> break
	od;
	home;
	gone = true;
	assert(ran_of[0] == ENTRIES(0) && ran_of[1] == ENTRIES(1)) /* G3 */
}

active [2] proctype joiner()
{
	byte count, meant;
	bool won, shown;
end:	do
	:: open != NONE ->
#ifdef LOOK_FIRST
		shown = open != NONE;
#endif
		joiners++; /* SHOW1 */
#ifndef LOOK_FIRST
		shown = open != NONE;
#endif
#ifdef LEAVE_EARLY
		joiners--;
#endif
		if
		:: shown ->
			meant = open_sequence;
			LOOK; /* tw__batch_left */
			claim(meant)
		:: else
		fi;
#ifndef LEAVE_EARLY
		joiners--; /* SHOW2 */
#endif
		run_claimed(meant);
		finish();
		atomic { meant = 0; won = false; shown = false }
	od
}
