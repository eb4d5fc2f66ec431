/*
 * The pool's ring: executor/pool/ring.h.
 *
 * Modelled: a ring of two cells, two threads that push two tasks each, and two that pop. A task is
 * two words, written and read one after the other. A pop that has read them and finds that `head`
 * has moved begins again.
 *
 * Left out: the close, and who waits for room (pool.pml). Positions are not taken modulo anything.
 * A load is one step, and so is a look at `head` with the store of `head_seen`.
 *
 * Holds:
 *   RING1  a task is popped whole, and once
 *   RING2  no cell is written before its last task has been read
 *
 *   run: RING   RING1, RING2
 *   mutant: RING UNREAD        a pop reads the task after it has moved `head`
 *       /at + 1 ->/s/$/ if :: atomic { head == at -> head++ };/; /at + 1 ->/{n;n;n;N;d}
 *       /<< at)));/{N;N;s/.\+/through++/}
 *   mutant: RING EARLY         a push says that the cell holds the task before it does
 *   mutant: RING NO_HEAD       a push does not look whether its cell's last task is read
 *       /= false;/{n;N;N;N;N;d}
 *   mutant: RING ABOVE         `head_seen` is above `head`
 *       s/head; is_full = at >= head/head + 1; is_full = at >= head_seen/
 *   mutant: RING BY_TAIL       a pop goes by the tail, not by what the cell says
 *       /at + 1 ->/s/.\+/:: at < tail ->/
 */
#define SIZE 2
#define TASKS 4
#define CELL(at) ((at) % SIZE)

byte tail, head, head_seen;
byte sequence[SIZE]; /* position + 1 */
byte first[SIZE], second[SIZE];
byte popped; /* a bit for each position */
byte through;

proctype producer()
{
	byte at, left = 2;
	bool is_full;
	do
	:: left == 0 -> break
	:: left > 0 ->
		at = tail;
		is_full = false;
		if
		:: at >= head_seen + SIZE ->
			d_step { head_seen = head; is_full = at >= head + SIZE } /* RING2 */
		:: else
		fi;
		if
		:: is_full
		:: else ->
			if
			:: atomic { tail == at -> tail++ };
#ifdef EARLY
				sequence[CELL(at)] = at + 1;
#endif
				first[CELL(at)] = at + 1;
				second[CELL(at)] = at + 1;
#ifndef EARLY
				sequence[CELL(at)] = at + 1; /* RING1 */
#endif
				left--
			:: tail != at
			fi
		fi
	od
}

proctype consumer()
{
	byte at, a, b;
	do
	:: through == TASKS -> break
	:: through < TASKS ->
		at = head;
		if
		:: sequence[CELL(at)] == at + 1 -> /* RING1 */
			a = first[CELL(at)];
			b = second[CELL(at)];
			if
			:: atomic { head == at -> head++; /* RING2 */
				assert(a == at + 1 && b == at + 1);
				assert(!(popped & (1 << at)));
				popped = popped | (1 << at);
				through++ }
			:: head != at
			fi
		:: else
		fi
	od
}

init {
	atomic { run producer(); run producer(); run consumer(); run consumer() }
}
