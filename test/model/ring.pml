/*
 * The ring of plain tasks when it goes round and is full: executor/pool/task_ring.h, and waiting
 * for room in pool.c (POOL5 in pool/worker.c).
 *
 * Modelled: a ring of two cells, two threads that push two tasks each and sleep until there is
 * room, one consumer or two that pop until all are through; what they run is slow, and returns only
 * when somebody has used the room that the pop has made.
 *
 * Left out: close (tasks.pml), who wakes the consumers (tasks.pml), the end of a wait by its
 * deadline. Positions and sequences are not taken modulo their size. What is seq_cst in the code
 * interleaves here; of RING2's release program order is left.
 *
 * Holds:
 *   RING1 RING2  a task is popped once, as it was pushed; no cell is written while it is read
 *   POOL5     nobody sleeps for room that is there: else this would stand still
 *
 *   run: ONE   RING1 RING2 POOL5, one consumer
 *   run: TWO   RING1 RING2 POOL5, two
 *   mutant: TWO FREE_EARLY      the cell is given free before it has been read
 *   mutant: TWO POP_BY_TAIL     a consumer goes by the tail, not by the cell's sequence
 *   mutant: ONE ROOM_LATE      `room` is read after the ring was seen full
 *   mutant: ONE COUNT_LATE     a submitter counts itself as waiting after it has seen the ring full
 *   mutant: ONE TELL_FIRST     a consumer looks for waiting submitters before it makes room
 *   mutant: ONE TELL_NOBODY    a consumer tells nobody of the room it has made
 */
#define SIZE 2
#define TASKS 4
#define CELL(at) ((at) % SIZE)

byte tail, head;
byte sequence[SIZE];
byte content[SIZE];   /* the position it was pushed at, from 1 on; 0: nothing, or half of it */
byte waiting, room;
byte popped;          /* bits, by position */
byte through;

init {
	sequence[1] = 1;
	atomic { run submitter(); run submitter(); run consumer() };
#ifdef TWO
	run consumer()
#endif
}

/* tw__task_ring_push; pushed: whether it had room */
inline push()
{
	do
	:: at = tail;
		seen = sequence[CELL(at)]; /* RING2 */
		if
		:: seen == at ->
			if
			/* RING2 */
			:: atomic { tail == at -> tail++; assert(content[CELL(at)] == 0) };
				content[CELL(at)] = at + 1;
				sequence[CELL(at)] = at + 1; /* RING1 */
				pushed = true;
				break
			:: atomic { tail != at }
			fi
		:: atomic { seen < at -> pushed = false }; break
		:: atomic { seen > at }
		fi
	od;
	atomic { at = 0; seen = 0 }
}

proctype submitter()
{
	byte n, at, seen, before;
	bool pushed;
	do
	:: n < 2 ->
		push();
		if
		:: pushed
		:: else ->
#ifndef COUNT_LATE
			waiting++; /* POOL5 */
#endif
			do
			:: true ->
#ifndef ROOM_LATE
				before = room;
#endif
				push();
				if
				:: pushed -> break
				:: else
				fi;
				if
				:: tail - head >= SIZE ->
#ifdef COUNT_LATE
					waiting++;
#endif
#ifdef ROOM_LATE
					before = room;
#endif
					room != before; /* POOL5: the futex */
#ifdef COUNT_LATE
					waiting--
#endif
				/* in the middle of a pop */
				:: else -> sequence[CELL(tail)] >= tail || tail - head >= SIZE
				fi;
				before = 0
			od;
#ifndef COUNT_LATE
			waiting--
#endif
		fi;
		atomic { n++; pushed = false; before = 0 }
	:: else -> break
	od
}

inline tell_of_room()
{
	if
#ifdef TELL_NOBODY
	:: true
#else
	:: atomic { waiting > 0 -> room++ }
	:: waiting == 0
#endif
	fi
}

proctype consumer()
{
	byte at, seen;
	do
	:: through < TASKS ->
		at = head;
#ifdef POP_BY_TAIL
		if
		:: tail > at -> seen = at + 1
		:: else -> seen = at
		fi;
#else
		seen = sequence[CELL(at)]; /* RING1 */
#endif
#ifdef TELL_FIRST
		tell_of_room();
#endif
		if
		:: seen == at + 1 ->
			if
			:: atomic { head == at -> head++; through++ }; /* POOL5 */
#ifdef FREE_EARLY
				sequence[CELL(at)] = at + SIZE;
#endif
				atomic {
					/* RING1 */
					assert(content[CELL(at)] == at + 1 &&
						!(popped & (1 << at)));
					popped = popped | (1 << at);
					content[CELL(at)] = 0
				};
#ifndef FREE_EARLY
				sequence[CELL(at)] = at + SIZE; /* RING2 */
#endif
#ifndef TELL_FIRST
				tell_of_room();
#endif
				tail > at + SIZE || tail == TASKS /* it runs what it has popped */
			:: atomic { head != at }
			fi
		:: else -> sequence[CELL(head)] == head + 1 || through == TASKS /* asleep */
		fi;
		atomic { at = 0; seen = 0 }
	:: else -> break
	od
}
