/*
 * Leaps of the clock, and deadlines modulo their range: wheel/driver/leap.c, wheel/timer/whole.c, tw__word_deadline in wheel/slot/word.h,
 * wheel/driver/resolve.c; claim and push_back in wheel/run/run.c; reset_word in wheel/timer/reset.c.
 *
 * Modelled: one timer. Its word is a sequence number and a deadline modulo 8, of which a quarter is near: the deadline is read
 * relative to the cursor. A deadline further ahead is kept whole.
 *   - A thread, or two (PAIR), reset the timer once each, to about now. Each may stand still between its look at the cursor and its word, and
 *     between its word and its second look.
 *   - The driver turns by any number of ticks. Between two turns it may look at a bucket ahead.
 *   - A worker claims entries that were handed over. One that is not due goes back under the next number.
 * What a thread has pushed the driver may see at once or later.
 * There are two sequence numbers beside 0, so that a stale entry passes for a current one soon.
 *
 * Left out: the barrier, without which the word of a new timer, a plain store, may come into memory after the driver's look; bulk calls, for which the leap waits; the rest of entry.pml. Two deadlines of one timer that differ by exactly the range,
 * while a thread stands between two instructions: no word can tell them. The threads here know their own word by its author.
 *
 * Holds:
 *   G1  the timer does not run before its deadline
 *   G3  when nothing is left to do, and the clock is past the deadline, the timer has ended
 *   D   a reset to the tick that is read in the word is one to the deadline, or both have come
 *
 *   run: NEARBY   G1 G3 D
 *   run: FARAWAY  G1 G3 D
 *   run: PAIR     G1 G3 D
 *   run: STALE    G1 G3 D
 *   mutant: NEARBY NO_RECHECK    a writer does not look at the cursor again
 *   mutant: NEARBY NO_KEEP       words keep their deadlines while the driver leaps
 *   mutant: PAIR KEEP_LENT       the driver looks only at the words whose entries it has
 *   mutant: PAIR NO_REFILE       a word is made whole, and no entry is filed for it
 *   mutant: NEARBY NO_WHOLE      entries are filed anew, but the word stays near
 *   mutant: PAIR ANY_WHOLE       a writer makes the word of another writer whole
 *   mutant: FARAWAY NO_CLAMP     a deadline long past is written as it is
 *   mutant: STALE BUCKET_BASE    an entry that is met ahead of its time is read by its bucket
 */
#define RANGE 8
#define NEAR 2
#define START 16
#define END (START + 8) /* the clock stops here */
#define LATEST END      /* what is filed for later is never met */
#define NUMBERS 3

/* Turns at most before the one to the end. */
#if defined(PAIR)
#define RESETTERS 2
#define TURNS 1
#else
#define RESETTERS 1
#define TURNS 2
#endif

/* Kinds of word. */
#define SHORT 0
#define WHOLE 1
#define ENDED 2

byte kind, bits, number, far_tick;
byte author;   /* of the deadline bits: a resetter, or 0: the driver */
byte promised; /* the deadline by the last reset */
byte next = START, cursor = START - 1, leapt = START - 1;
byte target = START - 1; /* what the clock says, as the driver has read it */
bool leaping, overtaken;
bool ready;

/* A lane of one entry for each resetter, and one for the worker. */
#define LANES 3
#define EMPTY 0
#define FULL 1
byte lane_state[LANES], lane_tick[LANES], lane_number[LANES];

byte bucket[27]; /* entries by tick from START to LATEST, and number */
byte late[3];
byte handed[3];
byte in_hand;    /* the entry that the worker holds */
bool lent;       /* the batch of what was handed over has not come back to the driver */
byte at_work = RESETTERS;

#define AT(t, n) bucket[((t) - START) * NUMBERS + (n)]
/* The deadline was moved by exactly the range since: no compare-and-swap can tell. Left out. */
#define SAME_BITS(then) (kind == SHORT && (then) != promised && (then) % RANGE == promised % RANGE)
#define BY_THE_RANGE (promised != to && author != 0 && old > target) /* likewise */
#define NEXT_NUMBER(n) ((n) == NUMBERS - 1 -> 1 : (n) + 1)
#define AHEAD(b, base) ((RANGE + (b) - (base) % RANGE) % RANGE)
#define READ(b, base) (AHEAD(b, base) < NEAR -> (base) + AHEAD(b, base) : (base) + AHEAD(b, base) - RANGE)

inline add(t, n)
{
	if
	:: (t) < next -> late[n]++
	:: (t) >= next && (t) <= LATEST -> AT(t, n)++
	:: (t) > LATEST /* never met */
	fi
}

init {
	d_step {
#if defined(NEARBY)
		bits = START % RANGE;
		promised = START;
		AT(START, 0) = 1
#elif defined(FARAWAY)
		kind = WHOLE;
		far_tick = END;
		promised = far_tick;
		AT(END, 0) = 1
#elif defined(PAIR)
		kind = WHOLE;
		far_tick = END + 1; /* its entry is never met */
		promised = far_tick
#else /* moved from far to near, twice: one stale entry has the number of the word */
		bits = (START + 1) % RANGE;
		promised = START + 1;
		number = 1;
		AT(START + 1, 1) = 1;
		AT(START + 8, 1) = 1
#endif
		;
		ready = true
	}
}

inline push(l, t, n)
{
	assert(lane_state[l] == EMPTY);
	lane_tick[l] = t;
	lane_number[l] = n;
	lane_state[l] = FULL
}

inline put_number(n)
{
	if
	:: n == 0 -> number = 1
	:: n != 0 -> number = NEXT_NUMBER(n)
	fi
}

/* tw__write_whole: the word of resetter `who`, if it still is. With ANY_WHOLE whatever it is. */
inline make_whole(who, t)
{
	atomic {
		if
#ifndef NO_WHOLE
		:: kind == SHORT && author == who -> kind = WHOLE; far_tick = t; bits = 0
		:: kind == WHOLE && author == who -> far_tick = t
#endif
#ifdef ANY_WHOLE
		:: kind == SHORT && author != who -> kind = WHOLE; far_tick = READ(bits, cursor); bits = 0
#endif
		:: else
		fi;
		overtaken = true
	}
}

active [RESETTERS] proctype resetter()
{
	byte look, to, old, seen_kind, seen_bits, seen_number, seen_promised, me;
	bool near, done, pushed;
	ready;
	me = _pid; /* 1 .. */
	do
	:: !done ->
		if
		:: kind == ENDED -> done = true
		:: else ->
			atomic { /* the word, then the cursor: what comes between is found by the compare-and-swap */
				seen_kind = kind; seen_bits = bits; seen_number = number; seen_promised = promised;
				look = cursor;
				near = !leaping;
				if
				:: to != 0
				:: to == 0 -> to = look + 1
				:: to == 0 -> to = look + 3
				fi;
#ifndef NO_CLAMP
				to = (to + NEAR < look -> look : to); /* tw__tick_to_write */
#endif
				near = near && to < look + NEAR
			};
			atomic { /* the compare-and-swap; under the lock where one of the two is far */
				if
				:: kind == ENDED -> done = true; near = false
				:: kind != ENDED && (kind != seen_kind || bits != seen_bits || number != seen_number || SAME_BITS(seen_promised))
				:: else ->
					old = (kind == WHOLE -> far_tick : READ(bits, look));
					if
					:: near && kind == SHORT && to == old && !(BY_THE_RANGE) ->
						assert(promised == to || old <= target); /* D */
						promised = to
					:: else ->
						if
						:: to < old -> put_number(seen_number); pushed = true
						:: else
						fi;
						if
						:: near -> kind = SHORT; bits = to % RANGE; author = me
						:: else -> kind = WHOLE; bits = 0; far_tick = to; author = me
						fi;
						promised = to
					fi;
					seen_number = number;
					done = true
				fi
			};
			if
			:: pushed -> atomic { push(me - 1, to, seen_number); pushed = false }
			:: else
			fi;
#ifndef NO_RECHECK
			if
			:: done && near && (leaping || cursor - look >= NEAR) -> make_whole(me, to)
			:: else
			fi
#endif
		fi
	:: done -> break
	od;
	atomic { look = 0; to = 0; old = 0; seen_kind = 0; seen_bits = 0; seen_number = 0; seen_promised = 0; near = false; at_work-- }
}

#define SOME(x) (x[0] + x[1] + x[2] > 0)

active proctype worker()
{
	byte e, look, seen, old, then;
end:	do
	:: atomic {
			lane_state[2] == EMPTY && SOME(handed) ->
			if
			:: handed[0] > 0 -> e = 0
			:: handed[1] > 0 -> e = 1
			:: handed[2] > 0 -> e = 2
			fi;
			handed[e]--;
			in_hand = e + 1
	   };
#ifdef PAIR /* the worker stands still nowhere: it is the two resetters that do */
#define LOOK_AGAIN assert(false)
		atomic {
#else
#define LOOK_AGAIN goto again
again:
#endif
		atomic {
			seen = (kind == ENDED || number != e -> ENDED : kind);
			old = bits;
			then = promised;
			look = cursor /* here: what comes between is found by the compare-and-swap */
		};
		if
		:: seen == ENDED
		:: else ->
			if
			:: seen == SHORT && READ(old, look) <= look ->
				atomic {
					if
					:: kind == SHORT && bits == old && number == e && !SAME_BITS(then) -> assert(promised <= target); kind = ENDED /* G1 */
					:: else -> LOOK_AGAIN
					fi
				}
			:: else ->
				atomic {
					if
					:: kind == seen && bits == old && number == e && !SAME_BITS(then) ->
						old = (seen == WHOLE -> far_tick : READ(old, look));
						if
						:: e != 0 -> number = NEXT_NUMBER(e)
						:: else
						fi;
						push(2, old, number)
					:: else -> LOOK_AGAIN
					fi
				};
			fi
		fi;
		atomic { in_hand = 0; e = 0; look = 0; seen = 0; old = 0; then = 0 }
#ifdef PAIR
		}
#endif
	od
}

/* Lanes, and all timers if a leap has overtaken a call. */
inline drain()
{
	atomic {
		if
#ifndef NO_REFILE
		:: overtaken ->
			overtaken = false;
			if
			:: kind != ENDED ->
				if
				:: number = 1
				:: number = 2
				fi;
				seen = (kind == WHOLE -> far_tick : READ(bits, next));
				add(seen, number);
				seen = 0
			:: else
			fi
#endif
		:: else
		fi;
		lane = 0;
		do
		:: lane < LANES ->
			if
			:: lane_state[lane] != EMPTY ->
				add(lane_tick[lane], lane_number[lane]);
				lane_state[lane] = EMPTY;
				lane_tick[lane] = 0;
				lane_number[lane] = 0
			:: lane_state[lane] == EMPTY || (lane_state[lane] == FULL && next <= END)
			fi;
			lane++
		:: else -> break
		od;
		lane = 0
	}
}

/* Takes a new number by chance, unless it is 0, and files. */
inline file_again(t, n)
{
	if
	:: n == 0
	:: n != 0 -> number = 1
	:: n != 0 -> number = 2
	fi;
	add(t, number)
}

/* An entry of number n that was met in its bucket `here`, or among the late. */
inline resolve(n, here)
{
	if
	:: kind == ENDED || number != n
	:: else ->
		seen = (kind == WHOLE -> far_tick : READ(bits, next));
		if
		:: seen > here -> file_again(seen, n)
		:: else ->
			if
			:: kind == WHOLE || seen + NEAR < target ->
				kind = SHORT;
				bits = (seen + NEAR < target -> target : seen) % RANGE;
				far_tick = 0;
				author = 0
			:: else
			fi;
			handed[n]++;
			lent = true
		fi;
		seen = 0
	fi
}

/* Step 4 of leap.c. */
inline keep_word()
{
	atomic {
		if
#ifdef KEEP_LENT
		:: kind == SHORT && lent && READ(bits, next) + NEAR < target ->
#else
		:: kind == SHORT && READ(bits, next) + NEAR < target ->
#endif
			if
			:: READ(bits, next) < next -> bits = target % RANGE; author = 0
			:: READ(bits, next) >= next -> far_tick = READ(bits, next); kind = WHOLE; bits = 0
			fi
		:: else
		fi
	}
}

#define PICK(x) if :: x[0] > 0 -> e = 0 :: x[1] > 0 -> e = 1 :: x[2] > 0 -> e = 2 fi

inline turn_to()
{
	atomic {
		do
		:: SOME(late) -> PICK(late); late[e]--; resolve(e, next - 1); e = 0
		:: else -> break
		od
	};
	do
	:: atomic {
			next <= target ->
			do
			:: AT(next, 0) + AT(next, 1) + AT(next, 2) > 0 ->
				if
				:: AT(next, 0) > 0 -> e = 0
				:: AT(next, 1) > 0 -> e = 1
				:: AT(next, 2) > 0 -> e = 2
				fi;
				AT(next, e)--;
				resolve(e, next);
				e = 0
			:: else -> break
			od;
			next++;
			if
			:: cursor = next - 1
			:: next <= target
			fi
	   }
	:: else -> break
	od;
	cursor = next - 1
}

inline look_ahead()
{
	atomic {
		here = START;
		do
		:: here < LATEST -> here++
		:: here > next && number != 0 && kind != ENDED && AT(here, number) > 0 ->
#ifdef BUCKET_BASE
			seen = (kind == WHOLE -> far_tick : READ(bits, here));
#else
			seen = (kind == WHOLE -> far_tick : READ(bits, next));
#endif
			if
			:: seen > here -> e = number; AT(here, e)--; file_again(seen, e)
			:: else
			fi;
			break
		:: here == LATEST -> break
		od;
		here = 0;
		seen = 0;
		e = 0
	}
}

#define SOMETHING_TO_DO (SOME(late) || overtaken || lane_state[0] != EMPTY || lane_state[1] != EMPTY || lane_state[2] != EMPTY)
#define NOTHING_LEFT (at_work == 0 && in_hand == 0 && !SOME(handed) && !SOME(late) && !overtaken && \
		      lane_state[0] == EMPTY && lane_state[1] == EMPTY && lane_state[2] == EMPTY)

active proctype driver()
{
	byte e, lane, seen, here, turns;
	ready;
	do
	:: kind == ENDED && at_work == 0 -> break
	:: next <= END || SOMETHING_TO_DO ->
		if
		:: !SOME(handed) && in_hand == 0 -> lent = false
		:: else
		fi;
		drain();
		if
		:: next <= END && turns < TURNS -> target = next; turns++
		:: next <= END && turns < TURNS -> target = (next + 6 < END -> next + 6 : END); turns++
		:: next <= END -> target = END
		:: next > END -> target = next - 1
		fi;
		if
		:: target >= leapt + NEAR ->
			leaping = true;
#ifndef NO_KEEP
			keep_word();
#endif
			turn_to();
			atomic { leaping = false; leapt = cursor }
		:: else -> turn_to()
		fi
	:: next <= END && number != 0 -> look_ahead()
	:: atomic { next > END && NOTHING_LEFT && kind != ENDED -> assert(promised > END) /* G3 */ }; break
	od
}
