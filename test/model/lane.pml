/*
 * A lane: push, take, packing into a copy that one compare-and-swap puts in place, and who gets the
 * segments that were read out: mpsc/lane.h, lane.c.
 *
 * Modelled: one producer that pushes numbered entries one by one, one driver that takes them and
 * sometimes purges. Segments of two entries. When a segment is full, the producer may pack; any
 * unread entry may be found dead then. At its bound of four it refuses if that did not help. What
 * is copied, linked, stored and freed is a step each; a segment that is nobody's may not be
 * touched. The driver also looks whether anything is unread, as it does before it sleeps.
 *
 * Left out: bases (order of bases: test/unit/driver/order_of_bases.c), batches with a mark, the
 * reserve, what the queue does with orphans. Orders of release and acquire are program order here.
 *
 * Holds:
 *   G6  entries come out in the order they were put in, each once
 *   G3  none is lost that was accepted and not dead; a look that finds nothing has missed nothing
 *   G8  the driver never waits: a take ends, whatever the producer is at
 *   LANE2  LANE3  LANE5  nobody reads or writes a segment that was freed, or an entry that was
 *          overwritten
 *
 *   run: LANE   G3 G6, by LANE2 LANE3 LANE5, LANE6 to LANE9
 *   run: LANE STOPS   G3 G8: the producer stops for ever, wherever it is
 *   mutant: LANE PUT_IN_PLACE_BLINDLY  a packing does not ask for the turn that it has begun in
 *       s/turn == mine/true/; /the driver/,+1d
 *   mutant: LANE TAKE_UNMARKED       a take does not mark the turn
 *       /again if/s/.\+/w = which;/; /= h + t;/{n;d}
 *   mutant: LANE SAME_TURN           a take leaves the turn as it was
 *       /= h + t;/{n;s/.\+/turn--;/}
 *   mutant: LANE ONE_FRONT           a packing makes its front where the driver's is
 *       s/!old/old/
 *   mutant: LANE TORN_LOOK           a packing does not look at the turn again after the front
 *       s/|| turn != mine ->/->/
 *   mutant: LANE READ_ON             a packing copies into segments that it has yet to read, since
 *                                    the driver has left them
 *       s/UNTIL begun/UNTIL segment[which]/
 *   mutant: LANE TAIL_FIRST          the driver reads the tail, and then the head, to see whether
 *                                    anything is unread
 *       /^\t\t\tw = which$/s/^/t = tail; /; /head\[w\] };/{n;d}
 *   mutant: LANE IGNORE_HEAD         the producer takes the oldest segment wherever the driver is
 *       s/until ->/next[s] || next[s] == NONE ->/
 *   mutant: LANE SPARE_UNLOCKED      producer and driver take spare segments without a lock
 *   mutant: LANE PUBLISH_FIRST       the tail is published before the link to the next segment is
 *                                    made
 */
#define SIZE 2
#define SEGMENTS 6
#define PUSHES 5
#define BOUND 4
#define NONE 7

byte entry[12];              /* by segment * SIZE + index; 0: padding */
byte next[SEGMENTS] = NONE;
bool used[SEGMENTS];
byte tail, first, last;
byte head[2], begin[2], segment[2]; /* the fronts */
byte turn;                          /* counts up; odd: a take is under way */
bool which;                         /* the front that counts: a bit of the turn */
bool spare_lock;
bool dead[PUSHES + 1], got[PUSHES + 1];
bool accepted[PUSHES + 1];          /* with the tail that publishes it */
bool over;                   /* the producer has pushed all, or has stopped */

#define AT(s, i) entry[(s) * SIZE + (i)]

#ifdef STOPS
#define MAY_STOP if :: goto stopped :: skip fi
#else
#define MAY_STOP skip
#endif

inline free_segment(x)
{
	assert(used[x]);
	atomic { used[x] = false; next[x] = NONE; AT(x, 0) = 15; AT(x, 1) = 15 }
}

/* take_spare_locked: s is the segment, or NONE. */
inline take_spare(until)
{
	s = first;
	if
	:: s == until -> s = NONE /* LANE2 */
	:: else -> assert(used[s]); first = next[s]
	fi
}

inline new_segment()
{
	atomic {
		s = 0;
		do
		:: used[s] -> s++; assert(s < SEGMENTS)
		:: else -> break
		od;
		used[s] = true
	}
}

/* A step of the cursor of a packing. */
inline step(seg, index)
{
	if
	:: index == SIZE -> seg = next[seg]; index = 0; assert(seg != NONE)
	:: else
	fi;
	index++
}

#define NEW !old
#define UNTIL begun

/* lane_pack. What is read was the producer's own writing; spare_lock keeps it from being freed. */
inline pack()
{
	if
	:: atomic { !spare_lock -> spare_lock = true }; /* LANE5 */
		atomic { mine = turn; old = which };
		atomic { h = head[old] };
		atomic { f = h - begin[old] };
		atomic { from = segment[old]; begun = from };
		if
		:: (mine & 1) || turn != mine -> skip /* LANE4 */
		:: else ->
			atomic {
				take_spare(UNTIL);
				if
				:: s == NONE -> new_segment()
				:: else
				fi;
				next[s] = NONE;
				c_first = s; to = s; t = 0; n = tail - h; kept = 0
			};
			do
			/* seen at once, later, or by put_in_place */
			:: n > 0 && turn != mine -> n = 0
			:: n > 0 ->
				atomic {
					n--;
					step(from, f);
					assert(used[from]);
					value = AT(from, f - 1);
					if
					:: value == 0
					:: value != 0 -> dead[value] = true
					:: value != 0 ->
						if
						:: t == SIZE ->
							take_spare(UNTIL);
							if
							:: s == NONE -> new_segment()
							:: else
							fi;
							next[s] = NONE;
							next[to] = s;
							to = s;
							t = 0
						:: else
						fi;
						assert(used[to]);
						AT(to, t) = value;
						t++;
						kept++
					fi
				}
			:: else -> break
			od;
			MAY_STOP;
			atomic { new = NEW; begin[new] = tail - kept; segment[new] = c_first };
			head[new] = tail - kept;
			MAY_STOP;
			if
			:: atomic {
				turn == mine ->
				turn = turn + 2; which = new /* LANE3 */
			   };
				MAY_STOP;
				atomic { next[last] = c_first; last = to; at = t }
			:: turn != mine -> /* the driver has won */
				atomic { next[to] = first; first = c_first }
			fi
		fi;
		atomic {
			spare_lock = false;
			mine = 0; old = 0; new = 0; h = 0; f = 0; from = 0; to = 0; t = 0; n = 0;
			kept = 0; value = 0; s = NONE; c_first = NONE; begun = 0
		}
	:: spare_lock -> skip
	fi
}

inline put(value)
{
	assert(used[last]);
	atomic { AT(last, at) = value; at++; written++ }
}

inline begin_segment()
{
#ifdef SPARE_UNLOCKED
	take_spare(segment[which]);
#else
	if
	:: atomic { !spare_lock -> spare_lock = true }; /* LANE5 */
		take_spare(segment[which]);
		spare_lock = false
	:: spare_lock -> s = NONE
	fi;
#endif
	if
	:: s == NONE -> new_segment()
	:: else
	fi;
	next[s] = NONE;
#ifdef PUBLISH_FIRST
	link_from = last;
	atomic { last = s; at = 0; put(i) };
	tail = written;
	next[link_from] = s;
#else
	next[last] = s;
	atomic { last = s; at = 0 }
#endif
}

active proctype producer()
{
	byte written, at, i = 1, s = NONE, from, f, to, t, n, kept, value, h, mine, c_first = NONE;
	byte link_from, begun;
	bool refused, old, new;
	atomic { used[0] = true };
	do
	:: i <= PUSHES ->
		refused = false;
		if
		:: at == SIZE ->
			if
			:: pack()
			:: skip /* little is dead */
			fi;
			if
			:: written - head[which] >= BOUND -> refused = true /* -EAGAIN */
			:: else ->
				if
				:: at == SIZE -> begin_segment(); s = NONE
				:: else
				fi
			fi
		:: else
		fi;
		if
		:: !refused ->
#ifdef PUBLISH_FIRST
			if
			:: tail == written && at == 1 && AT(last, 0) == i
			:: else -> put(i); tail = written
			fi;
			accepted[i] = true
#else
			put(i);
			atomic { tail = written; accepted[i] = true } /* LANE1 */
#endif
		:: refused
		fi;
		i++
	:: else -> break
	od;
stopped:
	over = true
}

active proctype driver()
{
	byte h, t, seg, b, i, n, v, last_got, s = NONE;
	bool w;
	do
	:: tail > head[which] ->
		t = tail;
		atomic { turn++; w = which }; /* LANE3: a swap, again if a packing has come first */
		seg = segment[w];
		h = head[w];
		b = begin[w];
		if
		:: h - b == SIZE && h < t -> /* LANE8 */
			seg = next[seg];
			b = h;
			assert(seg != NONE)
		:: else
		fi;
		atomic {
			i = h - b;
			/* a packing that came first may have left none before that tail */
			if :: h < t -> n = t - h :: else -> n = 0 fi;
			if :: n > SIZE - i -> n = SIZE - i :: else fi;
			t = n
		};
		do
		:: n > 0 ->
			atomic {
				assert(used[seg]); /* LANE2, LANE3 */
				v = AT(seg, i);
				if
				/* G6 */
				:: v != 0 -> assert(v > last_got && v <= PUSHES); got[v] = true;
					last_got = v
				:: else
				fi;
				i++;
				n--
			}
		:: else -> break
		od;
		begin[w] = b;
		segment[w] = seg; /* LANE2 */
		head[w] = h + t;  /* LANE4 */
		turn++; /* LANE3 */
		atomic { h = 0; t = 0; seg = 0; b = 0; i = 0; n = 0; v = 0; w = 0 }
	:: first != segment[which] -> /* tw__lane_purge */
#ifdef SPARE_UNLOCKED
		take_spare(segment[which]);
		if
		:: s != NONE -> free_segment(s); s = NONE
		:: else
		fi
#else
		if
		:: atomic { !spare_lock -> spare_lock = true }; /* LANE5 */
			take_spare(segment[which]);
			spare_lock = false;
			if
			:: s != NONE -> free_segment(s); s = NONE
			:: else
			fi
		:: spare_lock -> skip
		fi
#endif
	:: true -> /* tw__lane_unread: sees what was accepted before, and lives */
		atomic {
			n = 0;
			i = 1;
			do
			:: i <= PUSHES ->
				/* one that is to be seen */
				if
				:: n == 0 && !got[i] && !dead[i] && accepted[i] -> n = i
				:: else
				fi;
				i++
			:: else -> break
			od;
			w = which
		};
		atomic { h = head[w] };
		t = tail;
		atomic {
			assert(t != h || n == 0 || dead[n]); /* LANE7 */
			h = 0; t = 0; n = 0; i = 0; w = 0
		}
	:: atomic { over && tail == head[which] -> break }
	od;
	i = 1;
	do
	:: i <= PUSHES -> assert(!accepted[i] || dead[i] || got[i]); i++ /* G3 */
	:: else -> break
	od
}
