/*
 * Far deadlines: far_ticks beside the control word (wheel/slot/word.h, WORD6): tw__far_read,
 * tw__far_move in wheel/slot/slots.c; reset_waiting in wheel/timer/reset.c; due_tick_of in
 * wheel/driver/resolve.c; claim in wheel/run/run.c.
 *
 * Modelled: one timer, armed for a near or a far tick, and two threads that reset it to a near
 * (NEAR_FIRST) or a far tick, twice in all. A far word says only that it is; its deadline is in
 * far_tick. The lock of the slot is taken to move to or from a far deadline, and to read one. A
 * move to later brings no entry, also from a near to a far tick and back; one to earlier does. The
 * driver drains, turns through the ticks 0 .. LAST, and files each entry that it meets by the
 * deadline; a near word that is due may become far when it is handed over, as one that is long past
 * does (once). A worker that finds the timer not due gives its entry back. It claims a far word as
 * it would move it: under the lock, if far_tick is what it has read.
 *
 * Left out: near deadlines modulo the range (a near one is written in full), locations
 * (location.pml: here each entry counts), generations (word.pml), weak memory: all that is ordered
 * by the lock.
 *
 * Holds:
 *   G1  no run before the deadline that the last reset has promised
 *   G2  a timer whose entries have all been drained is met in the turn through its deadline
 *   G3  in the end the timer has run
 *
 *   run: NEAR_FIRST   G1 G2 G3
 *   run: FAR_FIRST    G1 G2 G3
 *   mutant: NEAR_FIRST NO_LOCK   a move takes no lock
 *   mutant: FAR_FIRST NO_LOOK    a move does not look whether far_tick is what it has read
 *   mutant: NEAR_FIRST READ_APART  far_tick is read without the lock
 *   mutant: NEAR_FIRST LATER_HAS_ENTRY  the entry of a near timer that was moved far is not filed
 *                                       again
 *   mutant: FAR_FIRST CLAIM_UNLOCKED  a claim of a far word takes no lock
 *   mutant: NEAR_FIRST OTHER_DEADLINE  a word that is handed over becomes far, and far_tick stays
 *                                      what it was
 */
#define FREE 9
#define FAR 8
#define RESETTERS 2

#ifdef FAR_FIRST
#define FIRST 2
#define LAST 4
byte word = FAR;
#else
#define FIRST 1
#define LAST 3
byte word = FIRST;
#endif
#ifdef FAR_FIRST
byte far_tick = FIRST;
#else
byte far_tick = LAST; /* of another timer, long ago */
#endif
byte promised = FIRST; /* the deadline, as of the last compare-and-swap */
bool lock;
byte lane_n; /* entries in lanes: what they ask for is read from the word */
byte bucket[7];
byte next;   /* the first tick not turned through; a tick beyond it is far */
byte submitted; /* entries with the executor */
byte resets = 2, at_work = RESETTERS, busy, moving;
bool may_leap = true; /* once */

init {
	bucket[FIRST] = 1
}

inline take()
{
	atomic { !lock -> lock = true }
}

/* tw__deadline_read: known, and was */
inline read_deadline()
{
	known = true;
	if
	:: seen != FAR -> was = seen
	:: else ->
#ifdef READ_APART
		known = word == seen;
		was = far_tick
#else
		take();
		known = word == seen;
		was = far_tick;
		lock = false
#endif
	fi
}

/* tw__deadline_move of `seen`, whose deadline is `was`, to `moved` for `to`: known */
inline write_deadline(needs_entry)
{
	known = true;
	if
	:: seen != FAR && moved != FAR ->
		atomic {
			if
			:: word == seen -> word = moved; promised = to;
				moving = moving + needs_entry
			:: else -> known = false
			fi
		}
	:: else ->
#ifndef NO_LOCK
		take();
#endif
#ifndef NO_LOOK
		known = seen != FAR || far_tick == was;
#endif
		atomic {
			if
			:: known && word == seen -> word = moved; promised = to;
				moving = moving + needs_entry
			:: else -> known = false
			fi
		};
		if
		:: known && moved == FAR -> far_tick = to
		:: else
		fi;
#ifndef NO_LOCK
		lock = false
#endif
	fi
}

active [RESETTERS] proctype resetter()
{
	byte seen, to, was, moved, cursor;
	bool known;
	do
	:: atomic {
			resets > 0 -> resets--;
			if
#ifdef NEAR_FIRST
			:: to = next
#endif
			:: to = LAST - 1
			:: to = LAST
			fi;
			if
			:: to > LAST -> to = LAST
			:: else
			fi
	   };
again:		seen = word;
		if
		:: seen == FREE
		:: else ->
			cursor = next;
			read_deadline();
			if
			:: !known -> goto again
			:: known && was == to
			:: known && was != to ->
				moved = (to > cursor -> FAR : to);
				write_deadline((to < was -> 1 : 0));
				if
				:: !known -> goto again
				:: known && to < was -> atomic { lane_n++; moving-- }
				:: known && to >= was
				fi
			fi
		fi;
		atomic { seen = 0; was = 0; moved = 0; cursor = 0; known = false }
	:: break
	od;
	at_work--
}

active proctype worker()
{
	byte seen, was;
	bool known;
end:	do
	:: atomic { submitted > 0 -> submitted--; busy++ };
again:		atomic {
			seen = word;
			if
			:: seen < next -> word = FREE; assert(promised < next) /* G1 */
			:: seen >= next && seen < FAR -> lane_n++ /* push_back */
			:: seen == FREE
			:: seen == FAR
			fi
		};
		if
		:: seen != FAR
		:: seen == FAR ->
			read_deadline();
			if
			:: !known -> goto again
			:: known && was >= next -> lane_n++
			:: known && was < next ->
				atomic {
					if
#ifndef CLAIM_UNLOCKED
					:: !lock -> known = far_tick == was
#else
					:: true
#endif
					fi;
					if
					:: known && word == FAR ->
						word = FREE; assert(promised < next) /* G1 */
					:: else -> known = false
					fi
				};
				if
				:: !known -> goto again
				:: else
				fi
			fi
		fi;
		atomic { seen = 0; was = 0; known = false; busy-- }
	od
}

/* Files by the word: where the wheel has an entry met at `tick`, or from a lane. */
inline drain()
{
	do
	:: lane_n > 0 ->
		lane_n--;
		do
		:: atomic { seen = word };
			if
			:: seen == FREE -> break
			:: else ->
				read_deadline();
				if
				:: known -> atomic { to = (was < next -> next : was);
					bucket[to]++ }; break
				:: else
				fi
			fi
		od;
		atomic { seen = 0; was = 0; to = 0 }
	:: else -> break
	od
}

/* due_tick_of, and what the wheel does with the answer */
inline resolve(tick)
{
	do
	:: atomic { seen = word };
		if
		:: seen == FREE -> break
		:: else ->
			read_deadline();
			if
			:: !known
#ifdef LATER_HAS_ENTRY
			:: known && was > tick && seen == FAR && tick == FIRST -> break
#endif
			:: known && was > tick -> bucket[was]++; break
			:: known && was <= tick -> submitted++; break
			:: known && was <= tick && seen != FAR && may_leap ->
				atomic { to = was; moved = FAR; may_leap = false };
#ifdef OTHER_DEADLINE
				atomic {
					known = word == seen;
					word = (known -> FAR : word)
				};
#else
				write_deadline(0);
#endif
				if
				:: known -> submitted++; break
				:: else
				fi
			fi
		fi
	od;
	atomic { seen = 0; was = 0; to = 0; moved = 0 }
}

inline turn()
{
	drain();
	tick = next;
	atomic { next++ };
	do
	:: bucket[tick] > 0 -> bucket[tick]--; resolve(tick)
	:: else -> break
	od;
	/* Every entry there is was drained before this turn: so one that is due was met. */
	/* G2 */
	atomic { assert(promised > tick || word == FREE || lane_n + submitted + busy + moving > 0) }
}

active proctype driver()
{
	byte seen, was, tick, to, moved;
	bool known;
	bucket[FIRST] > 0;
	do
	:: next <= LAST -> turn()
	:: else -> break
	od;
	/* No reset follows: what is in a lane or on its way there comes with the next turns. */
	do
	:: atomic { at_work == 0 && submitted == 0 && busy == 0 && lane_n == 0 -> break }
	:: atomic { at_work == 0 && submitted == 0 && busy == 0 && lane_n > 0 }; assert(next < 7);
		turn()
	od;
	assert(word == FREE) /* G3 */
}
