/*
 * The current entry of a timer: the transition table of wheel/timer/word.h; wheel/driver/resolve.c; wheel/driver/drain.c; claim in wheel/run/run.c;
 * arm_again in wheel/run/series.c; reset_word in wheel/timer/reset.c.
 *
 * Modelled: one timer. Its word is a sequence number and a deadline, or RUNNING, or ENDED. Each entry carries the sequence number
 * that the word had when the entry was made. An entry is current while its number equals the word's.
 *   - Two threads (one with COARSE, FAR and REARM) reset the timer to any tick. Thread 1 also cancels it.
 *   - The driver drains the lane without a look at the word, turns through the ticks, and resolves each entry that it meets.
 *   - A worker claims entries that were handed over. With REARM the callback arms its timer once more.
 * There are two sequence numbers beside 0, so that a stale entry passes for a current one after two moves.
 * With COARSE the ticks 3 and 4 have one bucket on a higher level. Its entries move down one at a time.
 * With FAR a deadline two ticks or more ahead is not in the word but in far_tick, under the slot's lock.
 *
 * Left out: sweeps and compaction, which drop what is not current; other timers; generations and groups (word.pml, group.pml); the reading
 * of deadline bits modulo their range (the service's own tests).
 *
 * Holds:
 *   I   while the timer is armed, at least one entry is current and will be met by the deadline, or is on its way there
 *   D   the deadline of an armed timer is that of the last reset
 *   X   while the sequence number is 0, there is exactly one entry
 *   G1  the timer does not run before its deadline
 *   G2  the turn through the deadline meets a timer whose entries were drained
 *   G3  when nothing is left to do, the timer has ended
 *
 *   run: PLAIN    I D X G1 G2 G3
 *   run: COARSE   I D X G1 G2 G3
 *   run: REARM    I D X G1 G2 G3
 *   run: FAR      I D X G1 G2 G3
 *   mutant: PLAIN PUSH_FIRST     a reset to earlier pushes its entry before it moves the word
 *   mutant: PLAIN NO_ENTRY       a reset to earlier pushes no entry
 *   mutant: PLAIN OLD_NUMBER     the entry of a reset to earlier carries the number before
 *   mutant: PLAIN SAME_NUMBER    a reset to earlier takes no new number
 *   mutant: REARM REFILE_STORE   the driver gives a refiled entry its new number by a store
 *   mutant: PLAIN REFILE_OLD     the driver refiles an entry with the number that it had
 *   mutant: PLAIN CLAIM_DROPS    a claim drops the entry of a timer that is not due
 *   mutant: PLAIN CLAIM_EARLY    a claim does not look at the deadline
 *   mutant: COARSE MOVE_LAST     an entry that is moved down goes to the last tick of its bucket
 *   mutant: REARM SAME_ENTRY     a timer that is armed again pushes no entry
 *   mutant: REARM ZERO_NUMBER    a timer that is armed again begins with 0
 *   mutant: FAR MOVE_UNLOCKED    a reset writes far_tick after it has given up the lock
 *   mutant: FAR NEAR_UNLOCKED    the driver makes a far deadline a near one without the lock
 */
#define LAST 4
#define NUMBERS 3 /* 0, 1, 2 */
#define TICKS 12
#if defined(PLAIN)
#define RESETS 2
#define RESETTERS 2
#else
#define RESETS 3
#define RESETTERS 1
#endif
#define RUNNING 20
#define ENDED 21
#define ARMED (deadline < RUNNING)

/* The word. A far deadline is FARAWAY here and whole in far_tick. */
#define FARAWAY 15
byte deadline = 2, number;
byte far_tick;
byte promised = 2; /* the deadline of the last reset, or of the last time the timer was armed */
bool locked, ready;

byte lane_tick[4], lane_number[4], lane_n;
byte bucket[36];   /* entries by tick and number */
byte coarse[3];    /* entries by number in the bucket of ticks 3 and 4 */
bool opened;       /* that bucket takes no entries any more */
byte handed[3];    /* entries by number with the executor */
byte held[3];      /* entries by number in the hands of a thread */
byte next;         /* the first tick not turned through yet */
byte resets = RESETS, at_work = RESETTERS, rearms = 1;

#define AT(t, n) bucket[(t) * NUMBERS + (n)]
#define IN_COARSE(t) ((t) == 3 || (t) == 4)
#define NEXT_NUMBER(n) ((n) == NUMBERS - 1 -> 1 : (n) + 1)
#define REAL(d) ((d) == FARAWAY -> far_tick : (d))
#define IS_FAR(t) ((t) > next + 1)

init {
	d_step {
#ifdef COARSE
		deadline = 4;
		promised = 4;
		coarse[0] = 1
#else
		AT(2, 0) = 1;
		opened = true
#ifdef FAR
		;
		deadline = FARAWAY;
		far_tick = 2
#endif
#endif
		;
		ready = true
	}
}

/* In the wheel, to be met by the tick; in a lane for such a tick; with the executor; or in someone's hands. */
#define FILED(n) (AT(0, n) + AT(1, n) * (d >= 1) + AT(2, n) * (d >= 2) + AT(3, n) * (d >= 3) + AT(4, n) * (d >= 4) + \
		  AT(5, n) * (d >= 5) + AT(6, n) * (d >= 6) + AT(7, n) * (d >= 7) + AT(8, n) * (d >= 8) + AT(9, n) * (d >= 9) + coarse[n])
#define QUEUED(n) ((lane_n > 0 && lane_number[0] == n && lane_tick[0] <= d) + (lane_n > 1 && lane_number[1] == n && lane_tick[1] <= d) + \
		   (lane_n > 2 && lane_number[2] == n && lane_tick[2] <= d) + (lane_n > 3 && lane_number[3] == n && lane_tick[3] <= d))
#define CURRENT (FILED(number) + QUEUED(number) + handed[number] + held[number])

/* What is overdue by now has an entry in the next bucket to be turned through, or beyond: for that the deadline counts as that tick. */
active proctype monitor()
{
	byte d;
	ready;
	do
	:: atomic {
			ARMED && !locked ->
			d = REAL(deadline);
			d = (d < next -> next : d);
			assert(REAL(deadline) == promised);    /* D */
			assert(CURRENT > 0);                   /* I */
			assert(number != 0 || CURRENT == 1);   /* X */
			d = 0
	   }
	:: deadline == ENDED -> break
	od
}

inline push(t, n)
{
	assert(lane_n < 4);
	lane_tick[lane_n] = t;
	lane_number[lane_n] = n;
	lane_n++
}

inline take_lock()
{
	atomic { !locked -> locked = true }
}

/* One reset to `to`, under the lock where a far deadline is concerned. */
active [RESETTERS] proctype resetter()
{
	byte seen, seen_number, to, new;
	bool won, far;
	ready;
	do
	:: atomic {
			resets > 0 -> resets--;
			if
			:: to = next
			:: to = next + 1
			:: to = LAST
			fi;
			if
			:: to > LAST -> to = LAST
			:: else
			fi
	   };
again:		won = false;
		atomic { seen = deadline; seen_number = number; won = false };
		if
		:: seen >= RUNNING -> goto done
		:: else
		fi;
#ifdef FAR
		far = seen == FARAWAY || IS_FAR(to);
		if
		:: far ->
			take_lock();
			atomic {
				if
				:: deadline == seen && number == seen_number -> seen = REAL(seen)
				:: else -> locked = false; goto again
				fi
			}
		:: else
		fi;
#endif
		if
		:: seen == to && !far
		:: seen < to || (seen == to && far) -> /* later: the word alone */
			atomic {
				if
				:: number == seen_number && ARMED && REAL(deadline) == seen ->
#ifdef FAR
					deadline = (IS_FAR(to) -> FARAWAY : to);
#ifndef MOVE_UNLOCKED
					far_tick = (IS_FAR(to) -> to : far_tick);
#endif
#else
					deadline = to;
#endif
					promised = to;
					won = true
				:: else
				fi
			}
		:: seen > to -> /* earlier: a new number and an entry */
#ifdef OLD_NUMBER
			new = seen_number;
#else
			new = NEXT_NUMBER(seen_number);
#endif
#ifdef PUSH_FIRST
			atomic { push(to, new) };
#endif
			atomic {
				if
				:: number == seen_number && ARMED && REAL(deadline) == seen ->
#ifdef FAR
					deadline = (IS_FAR(to) -> FARAWAY : to);
#ifndef MOVE_UNLOCKED
					far_tick = (IS_FAR(to) -> to : far_tick);
#endif
#else
					deadline = to;
#endif
#ifndef SAME_NUMBER
					number = NEXT_NUMBER(seen_number);
#else
					new = seen_number;
#endif
#if !defined(NO_ENTRY) && !defined(PUSH_FIRST)
					held[new]++;
#endif
					promised = to;
					won = true
				:: else
				fi
			};
			if
			:: won ->
#ifdef FAR
				if
				:: far -> locked = false; far = false
				:: else
				fi;
#endif
#if !defined(NO_ENTRY) && !defined(PUSH_FIRST)
				atomic { held[new]--; push(to, new) }
#else
				skip
#endif
			:: else
			fi
		fi;
#ifdef FAR
		if
		:: far -> locked = false
		:: else
		fi;
#ifdef MOVE_UNLOCKED
		far_tick = (won && deadline == FARAWAY -> to : far_tick);
#endif
#endif
		if
		:: !won && seen != to -> goto again
		:: else
		fi;
done:		atomic { seen = 0; seen_number = 0; to = 0; new = 0; won = false; far = false }
	:: atomic { _pid == 2 && ARMED -> deadline = ENDED }; break /* a cancel */
	:: break
	od;
	at_work--
}

/* tw__wheel_add */
inline add(t, n)
{
	if
	:: IN_COARSE(t) && !opened -> coarse[n]++
	:: else -> assert(t < TICKS); AT(t, n)++
	fi
}

/* A worker: what is not due goes back through the lane with the number that it has. */
active proctype worker()
{
	byte e, seen;
end:	do
	:: atomic {
			if
			:: handed[0] > 0 -> e = 0
			:: handed[1] > 0 -> e = 1
			:: handed[2] > 0 -> e = 2
			fi;
			handed[e]--;
			held[e]++
	   };
again:		seen = 0;
		atomic {
			seen = deadline;
			if
			:: seen >= RUNNING || number != e -> held[e]--; seen = ENDED
			:: else
			fi
		};
		if
		:: seen == ENDED
#ifdef FAR
		:: seen == FARAWAY ->
			take_lock();
			atomic {
				locked = false;
				if
				:: deadline != FARAWAY || number != e -> goto again
				:: else -> seen = far_tick
				fi
			};
			atomic { held[e]--; push(seen, e) }
#endif
		:: seen < FARAWAY && seen >= next ->
#ifdef CLAIM_DROPS
			held[e]--
#else
#ifdef CLAIM_EARLY
			atomic {
				if
				:: deadline == seen && number == e -> assert(seen < next)
				:: else -> goto again
				fi
			}
#else
			atomic { held[e]--; push(seen, e) }
#endif
#endif
		:: seen < next ->
			atomic {
				if
				:: deadline == seen && number == e -> held[e]--; deadline = RUNNING; assert(seen < next) /* G1 */
				:: else -> goto again
				fi
			};
#ifdef REARM
			if
			:: atomic {
					rearms > 0 -> rearms--;
					seen = next + 1;
					deadline = seen;
					promised = seen;
#ifdef ZERO_NUMBER
					number = 0;
#else
					number = (number == 0 -> 0 : NEXT_NUMBER(number));
#endif
					e = number;
#ifndef SAME_ENTRY
					held[e]++
#endif
			   };
#ifndef SAME_ENTRY
			   atomic { held[e]--; push(seen, e) }
#endif
			:: deadline = ENDED
			fi
#else
			deadline = ENDED
#endif
		fi;
		atomic { seen = 0; e = 0 }
	od
}

inline drain()
{
	do
	:: atomic {
			lane_n > 0 ->
			to = (lane_tick[0] < next -> next : lane_tick[0]); /* what is past is met in this turn */
			add(to, lane_number[0]);
			lane_tick[0] = lane_tick[1]; lane_tick[1] = lane_tick[2]; lane_tick[2] = lane_tick[3]; lane_tick[3] = 0;
			lane_number[0] = lane_number[1]; lane_number[1] = lane_number[2]; lane_number[2] = lane_number[3];
			lane_number[3] = 0;
			lane_n--;
			to = 0
	   }
	:: else -> break
	od
}

/* TW__RESOLVE_MOVE for one entry of the coarse bucket. */
inline move_one()
{
	atomic {
		if
		:: coarse[0] > 0 -> e = 0
		:: coarse[1] > 0 -> e = 1
		:: coarse[2] > 0 -> e = 2
		fi;
		coarse[e]--;
		if
		:: ARMED && number == e ->
			to = REAL(deadline);
			assert(to >= 3 || e != 0);
#ifdef MOVE_LAST
			AT(4, e)++
#else
			to = (to < 3 -> 3 : to);
			AT(to, e)++
#endif
		:: else
		fi;
		e = 0;
		to = 0
	}
}

#define SOME_COARSE (coarse[0] + coarse[1] + coarse[2] > 0)

inline cascade()
{
	do
	:: SOME_COARSE && !opened -> move_one()
	:: next < 3 || opened -> break
	:: atomic { !SOME_COARSE && !opened -> opened = true }
	od
}

/* A new number, any but 0, and the entry with it. */
inline file_again()
{
	held[e]--;
	if
	:: e == 0 -> to = 0
	:: e != 0 -> to = 1
	:: e != 0 -> to = 2
	fi;
	number = to;
#ifdef REFILE_OLD
	add(seen, e);
#else
	add(seen, to);
#endif
	to = 0
}

/* TW__RESOLVE_EXPIRE for an entry with number e in the bucket of `tick`. */
inline resolve()
{
	skip;
retry:	seen = 0;
	atomic {
		seen = deadline;
		if
		:: seen >= RUNNING || number != e -> held[e]--; seen = ENDED
		:: else
		fi
	};
	if
	:: seen == ENDED
#ifdef FAR
	:: seen == FARAWAY ->
#ifdef NEAR_UNLOCKED
		atomic { deadline == FARAWAY -> seen = far_tick };
		atomic {
#else
		take_lock();
		atomic {
			locked = false;
			seen = far_tick;
#endif
			if
			:: deadline != FARAWAY || number != e -> goto retry
			:: deadline == FARAWAY && number == e && seen <= tick -> deadline = seen; held[e]--; handed[e]++
			:: deadline == FARAWAY && number == e && seen > tick -> file_again()
			fi
		}
#endif
	:: seen <= tick -> atomic { held[e]--; handed[e]++ }
	:: seen > tick && seen < FARAWAY ->
		atomic {
			if
#ifndef REFILE_STORE
			:: e != 0 && !(deadline == seen && number == e) ->
				goto retry
#endif
#ifdef REFILE_STORE
			:: e != 0 && ARMED -> deadline = seen; number = e; file_again()
			:: e != 0 && !ARMED -> held[e]--
#endif
			:: e == 0 -> held[0]--; add(seen, 0) /* the only entry: no new number */
#ifndef REFILE_STORE
			:: e != 0 && deadline == seen && number == e -> file_again()
#endif
			fi
		}
	fi
}

#define HERE (AT(tick, 0) + AT(tick, 1) + AT(tick, 2) > 0)

inline turn()
{
	drain();
	cascade();
	tick = next;
	next++;
	do
	:: HERE ->
		atomic {
			if
			:: AT(tick, 0) > 0 -> e = 0
			:: AT(tick, 1) > 0 -> e = 1
			:: AT(tick, 2) > 0 -> e = 2
			fi;
			AT(tick, e)--;
			held[e]++
		};
		resolve();
		atomic { seen = 0; e = 0 }
	:: else -> break
	od
}

#define IDLE (handed[0] + handed[1] + handed[2] + held[0] + held[1] + held[2] == 0)

active proctype driver()
{
	byte seen, e, tick, to;
	ready;
	do
	:: next <= LAST ->
		turn();
		/* Every entry that is filed was met by its tick: the deadline lies ahead, or an entry is on its way. */
		assert(!ARMED || locked || REAL(deadline) > tick || lane_n > 0 || !IDLE) /* G2 */
	:: else -> break
	od;
	/* No reset comes any more: what is in a lane or on its way there comes with the next turns. */
	do
	:: atomic { at_work == 0 && IDLE && lane_n == 0 && deadline != RUNNING && (!ARMED || next > 7) -> break }
	:: atomic { at_work == 0 && IDLE && deadline != RUNNING && ARMED && next <= 7 }; turn()
	:: atomic { at_work == 0 && IDLE && deadline != RUNNING && !ARMED && lane_n > 0 }; drain()
	od;
	assert(deadline == ENDED) /* G3 */
}
