/*
 * The nodes' slabs: which is current, which is listed, and how a slab's memory goes back:
 * executor/base/handles.c.
 *
 * Modelled: three slabs of two nodes; threads that take a node, perhaps a second one, and give them
 * back, twice. A slab is sorted when half of it is free, and when all is; every idle slab is
 * purged. One step stands for each access of a word, of `current`, and for each change under the
 * lock. A word is its free nodes: the stack itself is in nodes.pml.
 *
 * Left out: generations' values (a purge that loses one is the mutant NO_BASE, by a flag); growth;
 * the search when no slab is left, so a thread that finds none gives up.
 *
 * Holds:
 *   a node has one owner, and its memory is not given back while it has
 *   NODE4  at rest each slab of which half is free is current or listed: none is lost
 *   a purged slab's nodes go on from the furthest generation (G5)
 *
 *   run: THREADS_2                 one owner, none lost, G5
 *   mutant: THREADS_2 LOOK_FIRST    the exhausted slab is looked at before the other one becomes
 *                                   current
 *   mutant: THREADS_2 NO_LAST_LOOK  the exhausted slab is not looked at again
 *   mutant: THREADS_2 UNCLAIMED     a slab is purged without a claim
 *   mutant: THREADS_2 OPEN_EARLY    the word is open before the memory has gone back
 *   mutant: THREADS_2 NO_BASE       a purged slab's nodes begin anew
 */
#define SLABS 3
#define SLAB 2
#define KEPT 0
#define NO_SLAB SLABS

#define OUT 0
#define IDLE 1
#define PARTIAL 2
#define PURGED 3

byte free[SLABS] = SLAB;  /* nodes that may be taken */
byte used[SLABS];
byte tag[SLABS];
byte state[SLABS];
bool given_back[SLABS];   /* its pages are gone, and not touched since */
bool going_back[SLABS];   /* a thread is about to give them back */
bool reused[SLABS];       /* nodes of it were given out, so generations have moved on */
bool base_kept[SLABS];
byte current;
byte idle;
bool locked;
byte at_work = 2;

inline lock() { atomic { !locked -> locked = true } }
inline unlock() { locked = false }

inline unlist(s)
{
	idle = idle - (state[s] == IDLE);
	state[s] = OUT
}

/* One look at the word. */
inline sort(s)
{
	atomic {
		if
		:: free[s] > 0 && used[s] <= SLAB / 2 && used[s] + free[s] == SLAB ->
			if
			:: used[s] == 0 && (state[s] == OUT || state[s] == PARTIAL) ->
				state[s] = IDLE; idle++
			:: used[s] > 0 && state[s] == OUT -> state[s] = PARTIAL
			:: else
			fi
		:: else
		fi
	}
}

/* The lock is held. NO_SLAB: none. */
inline choose(s)
{
	atomic {
		if
		:: state[0] == IDLE -> s = 0
		:: state[1] == IDLE -> s = 1
		:: state[2] == IDLE -> s = 2
		:: else ->
			if
			:: state[0] == PARTIAL -> s = 0
			:: state[1] == PARTIAL -> s = 1
			:: state[2] == PARTIAL -> s = 2
			:: else ->
				if
				:: state[0] == PURGED -> s = 0
				:: state[1] == PURGED -> s = 1
				:: state[2] == PURGED -> s = 2
				:: else -> s = NO_SLAB
				fi
			fi
		fi
	}
}

/* mine: the slab of the node, or NO_SLAB. */
inline get(mine)
{
	do
	:: old = current;
		atomic {
			if
			:: free[old] > 0 ->
				free[old]--; used[old]++; tag[old] = (tag[old] + 1) % 4;
				assert(!going_back[old]); /* its memory would go with its owner */
				/* G5 */
				assert(!(given_back[old] && reused[old] && !base_kept[old]));
				given_back[old] = false;
				mine = old
			:: else -> mine = NO_SLAB
			fi
		};
		if
		:: mine != NO_SLAB -> break
		:: else
		fi;
		lock();
		if
		:: current != old -> unlock()
		:: else ->
			choose(s);
			if
			:: s == NO_SLAB -> unlock(); break
			:: else ->
				atomic { unlist(s) };
#ifdef LOOK_FIRST
				if
				:: s != old -> sort(old)
				:: else
				fi;
				current = s; /* NODE4 */
#else
				current = s; /* NODE4 */
#ifndef NO_LAST_LOOK
				if
				:: s != old -> sort(old)
				:: else
				fi;
#endif
#endif
				unlock()
			fi
		fi
	od;
	atomic { s = 0; old = 0 }
}

inline purge_some()
{
	atomic {
		s = NO_SLAB;
		if
		:: idle > KEPT ->
			if
			:: state[2] == IDLE -> s = 2
			:: state[1] == IDLE -> s = 1
			:: else -> s = 0
			fi;
			unlist(s)
		:: else
		fi
	};
	if
	:: s != NO_SLAB ->
		/* claim: the look at the word is one step, the CAS another */
#ifdef UNCLAIMED
		atomic { claimed = used[s] == 0 };
		going_back[s] = claimed;
#else
		atomic { claimed = used[s] == 0; seen = tag[s] };
		atomic {
			claimed = claimed && tag[s] == seen && used[s] == 0 && free[s] == SLAB;
			if
			:: claimed -> free[s] = 0; tag[s] = (tag[s] + 1) % 4; going_back[s] = true
			:: else
			fi
		};
#endif
		if
		:: !claimed -> sort(s)
		:: else
		fi
	:: else
	fi;
	unlock();
	if
	:: s != NO_SLAB && claimed ->
#ifndef NO_BASE
		base_kept[s] = true;
#endif
#ifdef OPEN_EARLY
		atomic { free[s] = SLAB; tag[s] = (tag[s] + 1) % 4 };
#endif
		atomic { assert(used[s] == 0); given_back[s] = true; going_back[s] = false };
		lock();
		atomic {
#ifndef OPEN_EARLY
			free[s] = SLAB; tag[s] = (tag[s] + 1) % 4;
#endif
			if
			:: state[s] == OUT && current != s -> state[s] = PURGED
			:: else
			fi
		};
		unlock()
	:: else
	fi;
	atomic { s = 0; claimed = false; seen = 0 }
}

inline put(mine)
{
	atomic {
		reused[mine] = true;
		used[mine]--; free[mine]++;
		changed = used[mine] == SLAB / 2 || used[mine] == 0
	};
	if
	:: changed && current != mine -> /* NODE4 */
		lock();
		if
		:: current != mine -> sort(mine)
		:: else
		fi;
		purge_some()
	:: else
	fi;
	atomic { changed = false; mine = NO_SLAB }
}

proctype thread()
{
	byte turn, old, s, a = NO_SLAB, b = NO_SLAB, seen;
	bool changed, claimed;
	do
	:: turn < 2 ->
		turn++;
		get(a);
		if
		:: get(b)
		:: true
		fi;
		if
		:: a != NO_SLAB -> put(a)
		:: else
		fi;
		if
		:: b != NO_SLAB -> put(b)
		:: else
		fi
	:: else -> break
	od;
	at_work--
}

init {
	atomic {
		state[1] = PURGED;
		state[2] = PURGED;
		run thread();
		run thread()
	};
	at_work == 0;
	atomic {
		byte n = 0;
		do
		:: n < SLABS ->
			assert(used[n] == 0 && free[n] == SLAB);
			assert(n == current || state[n] != OUT); /* NODE4 */
			n++
		:: else -> break
		od
	}
}
