/*
 * A reset of a series: wheel/slot/word.h, WORD7; move in wheel/timer/reset.c; tw__series_begins in
 * wheel/run/series.c. With PERIOD: another period of a series: WORD8; tw_set_period in
 * wheel/timer/period.c, make_series in wheel/timer/schedule.c.
 *
 * Modelled: a series that runs RUNS times, and two threads that reset it, three times in all.
 * Instants are counted in half ticks, so that two of them share a tick. The word is the tick of the
 * next run, or RUNNING. A reset stores is_moved, then does its compare-and-swap, also within the
 * tick. A run is claimed at any time. It stands for the tick of the word if is_moved is stored, or
 * else for the instant of the record.
 *
 * PERIOD: the slot has three series, one after the other, and two threads give periods to those
 * whose handles they know. A series begins with its record, then its word.
 *
 * Left out: whether a run is due (word.pml), the entries (location.pml), far ticks (pairs.c). The
 * word carries the number of runs (turn). Without it a reset that sleeps through a whole run could
 * find the word that it has read again: that run comes in time, and the phase stays what it was.
 *
 * Holds:
 *   G1  no run stands for an instant before the deadline of a reset that has succeeded
 *   1.2 the phase of a series that nobody has tried to reset is exact
 *   WORD8 a series has its own period, or one that was given to it, and the last one that was
 *
 *   run: RESETS   G1
 *   run: ALONE    1.2
 *   run: PERIOD   WORD8
 *   mutant: RESETS MOVED_LATE    is_moved is stored after the compare-and-swap
 *       /is_moved = true;/d; /^\t\t\tfi$/s/^/is_moved = true /
 *   mutant: RESETS CLEARED_LATE  is_moved is cleared when the series is armed again
 *       /PERIOD);/{n;n;d}; /{ word =/s/$/ is_moved = false/
 *   mutant: RESETS SILENT        a reset within the tick makes no compare-and-swap
 *   mutant: RESETS TICK_ALONE    a run looks whether the word has another tick, not at is_moved
 *       /nominal;/s/$/ flag = seen != TICK(nominal);/
 *   mutant: PERIOD SET_UNLOCKED  a new series writes its period without the lock
 *       /< SERIES/{n;d}; /10 \* n;/{n;d}
 *   mutant: PERIOD LOOK_APART    the look at the word is not under the hold of the store
 *       /= generation;/s/$/ lock = false; atomic { !lock -> lock = true };/
 */
#ifdef PERIOD
#define SERIES 3
bool lock;
byte generation;    /* of the word: even: free, odd: series generation / 2 */
byte period;        /* in the record: 10 * series + the number of the change; its own: 0 */
byte given[SERIES]; /* the last change that has succeeded */
byte changes;

active [2] proctype changer()
{
	byte which, seen;
	do
	:: changes < 3 ->
		if
		:: which = 0
		:: which = 1
		:: which = 2
		fi;
		atomic { !lock -> lock = true };
		seen = generation;
		if
		:: seen == 2 * which + 1 ->
			atomic { changes++; period = 10 * which + changes; given[which] = changes }
		:: else
		fi;
		lock = false
	:: else -> break
	od
}

active proctype owner()
{
	byte n, own;
	do
	:: n < SERIES ->
		atomic { !lock -> lock = true };
		period = 10 * n;
		lock = false;
		generation++;
		do
		:: own < 2 -> own++; assert(period == 10 * n + given[n]) /* WORD8: a run */
		:: break
		od;
		own = 0;
		generation++;
		n++
	:: else -> break
	od
}
#else
#define RUNNING 0
#define RUNS 3
#define PERIOD 3
#define FIRST 3
#define TICK(instant) (((instant) + 1) / 2)
#ifdef ALONE
#define RESETTERS 0
#else
#define RESETTERS 2
#endif

byte word = TICK(FIRST), turn, nominal = FIRST;
byte promised; /* the deadline of the last reset that has succeeded; 0: none */
bool is_moved;
byte resets = 3;

#ifndef ALONE
active [RESETTERS] proctype resetter()
{
	byte seen, seen_turn, to;
	bool done;
	do
	:: atomic { resets > 0 -> resets-- };
		if
		:: to = 3
		:: to = 4
		:: to = 6
		:: to = 8
		fi;
		do
		:: done -> break
		:: !done ->
			atomic { seen = word; seen_turn = turn };
			if
			:: seen == RUNNING -> done = true /* -EBUSY */
#ifdef SILENT
			:: seen == TICK(to) ->
				atomic {
					done = true;
					if
					:: word == seen && turn == seen_turn -> promised = to
					:: else
					fi
				};
				is_moved = true
			:: seen != RUNNING && seen != TICK(to) ->
#else
			:: seen != RUNNING ->
#endif
				is_moved = true;
				atomic {
					if
					:: word == seen && turn == seen_turn ->
						word = TICK(to);
						promised = to;
						done = true
					:: else
					fi
				};
			fi
		od;
		atomic { seen = 0; seen_turn = 0; to = 0; done = false }
	:: else -> break
	od
}
#endif

active proctype runner()
{
	byte seen, wanted, instant, runs;
	bool flag;
	do
	:: runs < RUNS ->
		runs++;
		atomic { seen = word; word = RUNNING; wanted = promised; promised = 0 };
		flag = is_moved;
		instant = nominal;
		if
		:: flag -> instant = 2 * seen
		:: else
		fi;
		assert(instant >= wanted); /* G1 */
#ifdef ALONE
		assert(instant == FIRST + (runs - 1) * PERIOD); /* 1.2 */
#endif
		is_moved = false;
		nominal = instant + PERIOD;
		atomic { word = TICK(nominal); turn++ };
	:: else -> break
	od
}
#endif
