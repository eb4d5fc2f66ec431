/*
 * A lane: push, take, compaction under the try-lock, and who gets the segments that were read out:
 * mpsc/lane.h, lane.c.
 *
 * Modelled: one producer that pushes numbered entries one by one, one driver that takes them and
 * sometimes purges. Segments of two entries. At its bound of three the producer compacts, if it
 * gets the lock; any unread entry may be found dead then. What is copied, moved, linked and freed
 * is a step each; a segment that is nobody's may not be touched.
 *
 * Left out: bases (order of bases: test/unit/driver/order_of_bases.c), batches with a mark, the
 * reserve, what the queue does with orphans. Orders of release and acquire are program order here.
 * A producer that finds the lock taken gives up at once, or tries again.
 *
 * Holds:
 *   G6  entries come out in the order they were put in, each once
 *   G3  none is lost that was accepted and not dead
 *   LANE2  LANE3  LANE5  nobody reads or writes a segment that was freed, or an entry that was
 *          overwritten
 *
 *   run: LANE   G3 G6, by LANE2 LANE3 LANE5, LANE6 to LANE9
 *   mutant: LANE COMPACT_UNLOCKED     compaction does not take the lock
 *   mutant: LANE TAKE_UNLOCKED        the driver does not take the lock
 *   mutant: LANE TRUST_TAIL           the driver believes a tail that it has read without the lock
 *   mutant: LANE IGNORE_HEAD          the producer takes the oldest segment wherever the driver is
 *   mutant: LANE SPARE_UNLOCKED       producer and driver take spare segments without a lock of
 *                                     their own
 *   mutant: LANE PUBLISH_FIRST        the tail is published before the link to the next segment is
 *                                     made
 */
#define SIZE 2
#define SEGMENTS 5
#define PUSHES 8
#define BOUND 3
#define NONE 7

byte entry[10];              /* by segment * SIZE + index; 0: padding */
byte next[SEGMENTS] = NONE;
bool used[SEGMENTS];
byte tail, head, head_segment, first;
bool lock, spare_lock;
bool dead[9], got[9], accepted[9];
bool over;                   /* the producer has pushed all */

#define AT(s, i) entry[(s) * SIZE + (i)]

/* take_spare: s is the segment, or NONE. A try. */
inline take_spare()
{
#ifdef SPARE_UNLOCKED
	atomic { s = first };
#else
	atomic {
		if
		:: !spare_lock -> spare_lock = true; s = first
		:: else -> s = NONE
		fi
	};
#endif
	if
	:: s == NONE
	:: s != NONE ->
		if
#ifdef IGNORE_HEAD
		:: s == next[s] || next[s] == NONE -> s = NONE
#else
		:: s == head_segment -> s = NONE /* LANE2 */
#endif
		:: else -> assert(used[s]); first = next[s]
		fi;
#ifndef SPARE_UNLOCKED
		spare_lock = false /* LANE5 */
#endif
	fi
}

inline free_segment(x)
{
	assert(used[x]);
	atomic { used[x] = false; next[x] = NONE; AT(x, 0) = 15; AT(x, 1) = 15 }
}

inline put(value)
{
	assert(used[last]);
	atomic { AT(last, at) = value; at++; written++ }
}

/* One step of a cursor of the compaction. */
inline step(segment, index)
{
	if
	:: index == SIZE -> segment = next[segment]; index = 0; assert(segment != NONE)
	:: else
	fi;
	index++
}

inline drop_dead()
{
	from = head_segment;
	f = head % SIZE;
	if
	:: f == 0 && head != 0 -> f = SIZE /* LANE8 */
	:: else
	fi;
	atomic { to = from; t = f; kept = 0; n = written - head };
	do
	:: n > 0 ->
		n--;
		atomic { step(from, f); assert(used[from]); value = AT(from, f - 1) };
		if
		:: value == 0
		:: value != 0 -> dead[value] = true
		:: value != 0 ->
			atomic { step(to, t); assert(used[to]); AT(to, t - 1) = value; kept++ }
		fi
	:: else -> break
	od;
	s = next[to];
	do
	:: s != NONE -> atomic { n = next[s]; free_segment(s); s = n }
	:: else -> break
	od;
	atomic { next[to] = NONE; last = to; at = t; written = head + kept };
	tail = written; /* LANE1, LANE7 */
	atomic { from = 0; f = 0; to = 0; t = 0; n = 0; kept = 0; value = 0; s = NONE }
}

/* compact: whether it was done. */
inline compact()
{
	done = false;
#ifdef COMPACT_UNLOCKED
	drop_dead();
	done = true;
#else
	if
	:: atomic { !lock -> lock = true }; /* LANE3 */
		drop_dead();
		done = true;
		lock = false
	:: true /* it was taken for too long, or is wanted */
	fi
#endif
}

inline begin_segment()
{
	take_spare();
	if
	:: s == NONE ->
		atomic {
			if
			:: !used[0] -> s = 0
			:: else ->
				if
				:: !used[1] -> s = 1
				:: else ->
					if
					:: !used[2] -> s = 2
					:: else ->
						if
						:: !used[3] -> s = 3
						:: else -> assert(!used[4]); s = 4
						fi
					fi
				fi
			fi;
			used[s] = true
		}
	:: else
	fi;
	next[s] = NONE;
	do
	:: at < SIZE -> put(0)
	:: else -> break
	od;
#ifdef PUBLISH_FIRST
	atomic { link_from = last; last = s; at = 0; put(i) };
	tail = written;
	next[link_from] = s;
#else
	next[last] = s;
	atomic { last = s; at = 0 }
#endif
}

active proctype producer()
{
	byte written, last, at, i = 1, s = NONE, from, f, to, t, n, kept, value, link_from;
	bool done, refused;
	atomic { used[0] = true };
	do
	:: i <= PUSHES ->
		refused = false;
		if
		:: at == SIZE ->
			if
			:: written - head >= BOUND ->
				compact();
				if
				:: !done || written - head >= BOUND -> refused = true /* -EAGAIN */
				:: else
				fi
			:: else
			fi;
			if
			:: !refused && at == SIZE ->
				begin_segment();
				s = NONE
			:: else
			fi
		:: else
		fi;
		if
		:: !refused ->
			accepted[i] = true;
#ifdef PUBLISH_FIRST
			if
			:: tail == written && at == 1 && AT(last, 0) == i
			:: else -> put(i); tail = written
			fi
#else
			put(i);
			tail = written /* LANE1 */
#endif
		:: refused
		fi;
		i++
	:: else -> break
	od;
	over = true
}

active proctype driver()
{
	byte h, t, seg, i, n, v, last_got, s = NONE;
	do
	:: tail != head ->
#ifdef TRUST_TAIL
		t = tail;
#endif
#ifndef TAKE_UNLOCKED
		if
		:: atomic { !lock -> lock = true } /* LANE3 */
		:: lock -> goto again /* looks again in the next turn */
		fi;
#endif
		h = head;
#ifndef TRUST_TAIL
		t = tail;
#endif
		atomic { seg = head_segment; i = h % SIZE };
		if
		:: i == 0 && h != 0 && h != t -> seg = next[seg]; assert(seg != NONE) /* LANE8 */
		:: else
		fi;
		atomic { n = t - h; if :: n > SIZE - i -> n = SIZE - i :: else fi; t = n };
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
		head_segment = seg; /* LANE2 */
		head = h + t;       /* LANE4 */
#ifndef TAKE_UNLOCKED
		lock = false;
#endif
again:		atomic { h = 0; t = 0; seg = 0; i = 0; n = 0; v = 0 }
	:: first != head_segment -> /* tw__lane_purge */
		take_spare();
		if
		:: s != NONE -> free_segment(s); s = NONE
		:: else
		fi
	:: atomic { over && tail == head -> break }
	od;
	i = 1;
	do
	:: i <= PUSHES -> assert(!accepted[i] || dead[i] || got[i]); i++ /* G3 */
	:: else -> break
	od
}
