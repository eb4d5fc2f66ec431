/*
 * The nodes' free list and their generations: executor/base/handles.c.
 *
 * Modelled: two threads; each takes a node, perhaps a second one, and gives them back, again and
 * again. LIST: three nodes, free at first. HANDLE: one node whose generation comes round; each
 * thread notes the handle, and asks for it when it has given the node back. The count of takings in
 * the head goes round at COUNTS.
 *
 * Left out: slabs (slabs.pml): this is the free list of one. In the code the count goes round at
 * 2^40: a pop that sleeps through exactly so many takings would err. Program order stands for
 * release and acquire.
 *
 * Holds:
 *   NODE1  a node has one owner; none is lost
 *   G5  a handle never names its node anew once that was given back: NODE3, and a node whose
 *       generation has come round is retired
 *
 *   run: LIST    NODE1
 *   run: HANDLE  G5, NODE3
 *   mutant: LIST NO_COUNT           the head is an index alone
 *   mutant: LIST NEXT_LATE          the link is read when the head has been taken
 *   mutant: LIST LINK_ONCE          a push that is outrun tries again with the link that it has
 *                                   written before
 *   mutant: HANDLE SAME_GENERATION  the generation moves on when the node is taken, not when it is
 *                                   given back
 *   mutant: HANDLE PUSH_FIRST       the node is free before its generation has moved on
 *   mutant: HANDLE NEVER_RETIRED    a node goes on when its generation has come round
 */
#define NONE 0
#ifdef HANDLE
#define NODES 1
#define THREADS 2
#define TURNS 3
#define GENERATIONS 4
#define AT_ONCE 1
#else
#define NODES 3
#define THREADS 2
#define TURNS 2
#define GENERATIONS 8
#define AT_ONCE 2
#endif
#define COUNTS 8

byte head = 1, count;             /* one word: index + 1 of the first, and takings */
byte next[4];                     /* by index + 1 */
byte generation[4];
bool owned[4], retired[4];
bool used[GENERATIONS];           /* HANDLE: generations that were given out, of the one node */
byte at_work = THREADS;

inline get()
{
	do
	:: atomic { seen = head; seen_count = count }; /* NODE1 */
		if
		:: seen == NONE -> break
		:: else
		fi;
#ifndef NEXT_LATE
		after = next[seen];
#endif
		if
#ifdef NO_COUNT
		:: atomic { head == seen -> head = after }; break
		:: atomic { else }
#else
#ifdef NEXT_LATE
		:: atomic { head == seen && count == seen_count -> head = NONE;
			count = (count + 1) % COUNTS };
			head = next[seen]; break
#else
		/* NODE1 */
		:: atomic { head == seen && count == seen_count -> head = after;
			count = (count + 1) % COUNTS }; break
#endif
		:: atomic { else }
#endif
		fi
	od;
	atomic {
		after = NONE; seen_count = 0;
		if
		:: seen != NONE -> assert(!owned[seen]); owned[seen] = true /* NODE1 */
		:: else
		fi
	}
}

inline push(node)
{
	seen = head;
	do
	::
#ifdef LINK_ONCE
		if
		:: !linked -> next[node] = seen; linked = true
		:: else
		fi;
#else
		next[node] = seen;
#endif
		if
		:: atomic { head == seen -> head = node }; break /* NODE1 */
		:: atomic { head != seen -> seen = head }
		fi
	od;
	atomic { seen = NONE; linked = false }
}

inline put(node)
{
	atomic { assert(owned[node]); owned[node] = false };
#ifdef PUSH_FIRST
	push(node);
#endif
#ifndef SAME_GENERATION
	generation[node] = (generation[node] + 1) % GENERATIONS; /* NODE3 */
#endif
#ifndef PUSH_FIRST
	if
#ifndef NEVER_RETIRED
	:: generation[node] == GENERATIONS - 1 -> retired[node] = true
#endif
	:: else -> push(node)
	fi
#endif
}

init {
	atomic {
		generation[0] = 0;
#ifdef LIST
		next[1] = 2;
		next[2] = 3;
#endif
		run thread();
		run thread()
	};
	at_work == 0;
	/* At rest each node is free, once, or retired: none is lost. */
	atomic {
		byte n = head, left;
		do
		:: n != NONE -> assert(!owned[n] && !retired[n] && left < NODES); left++;
			n = next[n]
		:: else -> break
		od;
		n = 1;
		do
		:: n <= NODES -> left = left + retired[n]; n++
		:: else -> break
		od;
		assert(left == NODES) /* NODE1 */
	}
}

proctype thread()
{
	byte turn, seen, seen_count, after, mine, other, handle;
	bool linked, stale;
	do
	:: turn < TURNS ->
		turn++;
		get();
		atomic { mine = seen; seen = NONE };
#ifdef HANDLE
		/* The handle that it has had before names another's node now, or nobody's. */
		if
		:: stale -> assert(generation[1] != handle) /* G5 */
		:: else
		fi;
		if
		:: mine != NONE ->
#ifdef SAME_GENERATION
			generation[mine] = (generation[mine] + 1) % GENERATIONS;
#endif
			/* G5 */
			atomic { handle = generation[mine]; assert(!used[handle]);
				used[handle] = true }
		:: else
		fi;
#endif
		if
		:: AT_ONCE == 2 && mine != NONE -> get(); atomic { other = seen; seen = NONE }
		:: true
		fi;
		if
		:: mine != NONE -> put(mine);
#ifdef HANDLE
			stale = true;
			assert(generation[1] != handle);
#endif
			mine = NONE
		:: else
		fi;
		if
		:: other != NONE -> put(other); other = NONE
		:: else
		fi
	:: else -> break
	od;
	at_work--
}
