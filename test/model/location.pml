/*
 * The refile rule for timers that were moved to earlier: wheel/driver/resolve.c; reset_waiting,
 * move_with_entry in wheel/timer/reset.c; file in wheel/driver/drain.c.
 *
 * Modelled: one timer, armed for tick 2, or with COARSE for tick 4, with its entry in the wheel;
 * two threads reset it to any tick, one of them also cancels it. To later is a CAS of the word
 * alone; to earlier sets RELOCATED with the CAS, then pushes an entry into the lane. The driver
 * drains, turns through the ticks 0 .. 4, each bucket resolved by the rule (location {state, tick,
 * level}); a claim hands the entry back to the lane if the timer is no longer due, and says so: it
 * is back. A bucket holds a number of entries of the timer. Time goes on by the driver's turns; a
 * reset is relative to it. With COARSE the ticks 3 and 4 have one bucket on a higher level, whose
 * entries are moved down one at a time, whenever it likes, until it is empty, at the latest when
 * tick 3 comes; from then on they have buckets of their own. There one thread resets, three times.
 * With AGAIN the timer is armed again once when it has run, as a series is: its entry is filed
 * without a look at word or location unless the timer was RELOCATED. There one thread resets.
 *
 * Left out: BEYOND_RANGE words (pairs.c), sweeps (the service's own tests), other timers,
 * generations (word.pml).
 *
 * Holds:
 *   G3  (invariant of resolve.c) when all is turned through, and nothing is in a lane or batch, the
 *       timer has come to its end
 *   G1  it is not run before its deadline
 *   G2  a timer whose entries have all been drained is met in the turn through its deadline
 *
 *   run: LOCATION   G1 G2 G3
 *   run: LOCATION COARSE   G1 G2 G3
 *   run: LOCATION AGAIN   G1 G2 G3
 *   run: LOCATION COARSE AGAIN   G1 G2 G3
 *   mutant: LOCATION PUSH_FIRST     the entry is pushed before the word is moved and marked
 *   mutant: LOCATION KEEP_LOCATION  the location stays when the entry that counts is filed again
 *       /IN_BATCH;/{n;n;s/.\+/location = FILED;/}
 *   mutant: LOCATION DROP_LATER     a drained entry is dropped if there is any location, also a
 *                                   later one
 *       s/FILED && location_tick <= t)/FILED)/
 *   mutant: LOCATION BACK_IS_MOVED  an entry that comes back is taken for one that a reset has
 *                                   brought, which a timer in a batch does not need
 *       s/true,/false,/
 *   mutant: LOCATION COARSE KEEP_LEVEL  the location still names the coarse bucket when the entry
 *                                   has been moved down from it
 *       /location_down(to, 0)/s/0)/1)/
 *   mutant: LOCATION COARSE ANY_LEVEL   a drained entry is dropped if the location's tick was of
 *                                   the same coarse bucket, though it stands on the finer level
 *   mutant: LOCATION AGAIN BLIND_ALWAYS  the entry of a RELOCATED timer that is armed again is
 *                                   filed without a look at its location, too
 *       /^\tfi;$/{n;n;s/.\+/push(seen, false, true)/}
 */
#define LAST 4
#ifdef COARSE
#define RESETS 3
#define RESETTERS 1
#elif defined(AGAIN)
#define RESETS 2
#define RESETTERS 1
#else
#define RESETS 2
#define RESETTERS 2
#endif
#define NOWHERE 0
#define FILED 1
#define IN_BATCH 2
#define FREE 9
#define RUNNING 10 /* claimed, and to be armed again */
#define WAITS(d) ((d) < FREE)

#ifdef COARSE
byte deadline = 4;     /* the word: a tick, or FREE when it has ended */
byte coarse = 1;       /* entries in the bucket of ticks 3 and 4 */
#else
byte deadline = 2;
byte coarse;
#endif
bool opened;           /* that bucket takes no entries any more */
bool relocated;
byte lane[3], lane_n;  /* ticks that entries ask for */
bool back[3];          /* they come from a worker */
bool blind[3];         /* they are filed without a look */
byte bucket[12];       /* entries of the timer by tick */
byte location = NOWHERE, location_tick, location_level;
byte next;             /* the first tick not turned through yet */
byte submitted;        /* entries with the executor */
byte resets = RESETS, at_work = RESETTERS, busy;
byte moving; /* resets between their CAS and their push */
#ifdef AGAIN
bool goes_on = true; /* the series has another run */
#endif

init {
#ifndef COARSE
	bucket[2] = 1;
	opened = true
#else
	skip
#endif
}

#define IN_COARSE(t) ((t) == 3 || (t) == 4)

inline push(asks, from_worker, without_look)
{
	atomic {
		assert(lane_n < 3);
		lane[lane_n] = asks;
		back[lane_n] = from_worker;
		blind[lane_n] = without_look;
		lane_n++
	}
}

active [RESETTERS] proctype resetter()
{
	byte seen, to, pushed = FREE;
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
again:		seen = deadline;
		if
		:: !WAITS(seen) || seen == to
		:: WAITS(seen) && to > seen -> /* move */
			if
			:: atomic { deadline == seen -> deadline = to }
			:: deadline != seen -> goto again
			fi
		:: WAITS(seen) && to < seen -> /* move_with_entry */
#ifdef PUSH_FIRST
			push(to, false, false);
			if
			:: atomic { deadline == seen -> deadline = to; relocated = true }
			:: deadline != seen -> goto again
			fi
#else
			if
			:: atomic { deadline == seen -> deadline = to; relocated = true; moving++ }
			:: deadline != seen -> goto again
			fi;
			atomic { push(to, false, false); moving-- }
#endif
		fi;
		seen = 0
	:: atomic { _pid == 1 && WAITS(deadline) -> deadline = FREE }; break /* a cancel */
	:: break
	od;
	at_work--
}

/* tw__wheel_add */
inline add(t)
{
	if
	:: IN_COARSE(t) && !opened -> coarse++
	:: else -> bucket[t]++
	fi
}

inline location_down(t, level)
{
	location = FILED;
	location_tick = t;
	location_level = level
}

#define LEVEL_FOR(t) (IN_COARSE(t) && !opened) /* a bool is 1 or 0 */

/* tw__location_covers */
#define COVERS(t) (location == FILED && location_tick <= t)
#define DROPPED COVERS(tick)
#ifdef ANY_LEVEL
#define COVERED (location == FILED && IN_COARSE(location_tick) && IN_COARSE(tick))
#else
#define COVERED \
	(location == FILED && location_level == 1 && IN_COARSE(location_tick) && IN_COARSE(tick))
#endif

/* tw__file: for a word of which `seen` was read */
inline file(tick)
{
	if
	:: !was_relocated ->
		to = (tick < next -> next : tick);
		add(to);
		to = 0
	:: was_relocated && (DROPPED || (location == IN_BATCH && !is_back)) -> skip
	:: was_relocated && !DROPPED && COVERED -> location_tick = tick
	:: was_relocated && !DROPPED && !COVERED && (location != IN_BATCH || is_back) ->
		to = (tick < next -> next : tick);
		location_down(to, LEVEL_FOR(to));
		add(to);
		to = 0
	fi
}

/* resolve_forget: the entry at the location is dropped, for a worker has the timer */
inline forget(is_at_location)
{
	if
	:: location == FILED && is_at_location -> location = IN_BATCH
	:: else
	fi
}

/* resolve_keeps for a bucket that is moved down */
inline move_one()
{
	atomic {
		coarse--;
		seen = deadline;
		was_relocated = relocated;
		to = (seen < 3 -> 3 : seen);
		if
		:: !WAITS(seen) -> forget(location_level == 1 && IN_COARSE(location_tick))
		:: WAITS(seen) && !was_relocated -> bucket[to]++
		:: WAITS(seen) && was_relocated ->
			if
			:: location == IN_BATCH
			:: location == FILED && !(location_level == 1 && IN_COARSE(location_tick))
			:: location == NOWHERE || (location == FILED && location_level == 1 &&
				IN_COARSE(location_tick)) ->
				bucket[to]++;
				location_down(to, 0)
			fi
		fi;
		seen = 0;
		to = 0
	}
}

/* Some of the coarse bucket; all when its time has come. */
inline move_nearer()
{
	do
	:: coarse > 0 && !opened -> move_one()
	:: next < 3 || opened -> break
	:: atomic { coarse == 0 && !opened -> opened = true }
	od
}

inline drain()
{
	do
	:: lane_n > 0 ->
		atomic {
			asks = lane[0]; lane[0] = lane[1]; lane[1] = lane[2]; lane[2] = 0;
			is_back = back[0]; back[0] = back[1]; back[1] = back[2]; back[2] = false;
			is_blind = blind[0]; blind[0] = blind[1]; blind[1] = blind[2];
			blind[2] = false;
			lane_n--
		};
		if
		:: is_blind -> atomic { to = (asks < next -> next : asks); add(to); to = 0 }
		:: !is_blind && COVERS(asks) -> skip /* the word is not looked at */
		:: !is_blind && !COVERS(asks) ->
			atomic { seen = deadline; was_relocated = relocated };
			if
			:: !WAITS(seen)
			:: else -> atomic { file(seen) }
			fi
		fi;
		asks = 0
	:: else -> break
	od
}

/* After the run of a series: it is armed for any tick, and then has an entry again. */
inline arm_again()
{
	if
	:: seen = next
	:: seen = LAST
	fi;
	atomic { deadline = seen; was_relocated = relocated };
	push(seen, was_relocated, !was_relocated)
}

/* What a claim finds not due goes back through a lane; the entry counts as coming. */
active proctype worker()
{
	byte seen;
	bool was_relocated;
end:	do
	:: atomic { submitted > 0 -> submitted--; busy++ };
again:		seen = deadline;
		if
		:: seen == FREE
#ifdef AGAIN
		:: WAITS(seen) && seen < next && goes_on ->
			if
			/* G1 */
			:: atomic { deadline == seen -> deadline = RUNNING; assert(seen < next) };
				goes_on = false;
				arm_again()
			:: deadline != seen -> goto again
			fi
		:: WAITS(seen) && seen < next && !goes_on ->
#else
		:: WAITS(seen) && seen < next ->
#endif
			if
			/* G1 */
			:: atomic { deadline == seen -> deadline = FREE; assert(seen < next) }
			:: deadline != seen -> goto again
			fi
		:: WAITS(seen) && seen >= next -> push(seen, true, false)
		fi;
		atomic { seen = 0; was_relocated = false; busy-- }
	od
}

/* resolve_entry for the bucket in hand; low = tick, high = tick + 1 */
inline resolve(tick)
{
	atomic { seen = deadline; was_relocated = relocated };
	if
	:: !WAITS(seen) -> forget(location_tick == tick && location_level == 0)
	:: WAITS(seen) && !was_relocated ->
		if
		:: seen <= tick -> submitted++
		:: else -> add(seen)
		fi
	:: WAITS(seen) && was_relocated ->
		if
		:: location == IN_BATCH
		:: location == FILED && !(location_tick == tick && location_level == 0)
		:: location == NOWHERE ||
		   (location == FILED && location_tick == tick && location_level == 0) ->
			if
			:: seen <= tick -> location = IN_BATCH; submitted++
			:: else ->
				location_down(seen, LEVEL_FOR(seen));
				add(seen)
			fi
		fi
	fi
}

inline turn()
{
	drain();
	move_nearer();
	tick = next;
	atomic { next++ };
	do
	:: bucket[tick] > 0 -> atomic { bucket[tick]--; resolve(tick) }
	:: else -> break
	od;
	/* Every entry there is was drained before this turn: so one that is due was met. */
	/* G2 */
	atomic { assert(deadline > tick || deadline == FREE ||
		lane_n + submitted + busy + moving > 0) }
}

active proctype driver()
{
	byte seen, asks, tick, to;
	bool was_relocated, is_back, is_blind;
	bucket[2] + coarse > 0 && (coarse > 0 || opened);
	do
	:: next <= LAST -> turn()
	:: else -> break
	od;
	/* No reset follows: what is in a lane or on its way there comes with the next turns. */
	do
	:: atomic { at_work == 0 && submitted == 0 && busy == 0 && lane_n == 0 -> break }
	:: atomic { at_work == 0 && submitted == 0 && busy == 0 && lane_n > 0 }; assert(next < 11);
		turn()
	od;
	assert(deadline == FREE) /* G3 */
}
