/*
 * The works' stack and the driver's sleep: wheel/run/work.h, work.c; tw__works_offer in
 * wheel/driver/poll.c, park in park.c, loop_fd.c.
 *
 * Modelled: two pieces of work; each is submitted by a thread of its own, to an executor that may
 * refuse it or hand it to a worker, which may give it back (tw_run_return). The driver: turn (what
 * was deferred, then the stack), publish PARKED, look at the stack, sleep on the bell. The first
 * piece may submit itself anew once, from inside its run. The stack is a list by links in the works
 * themselves.
 *
 * Left out: how a look at the gate meets the driver's store buffer (gate.pml): the operations of
 * WORK2 are sequentially consistent in the code, and interleave here. The executor's own hand-over
 * is its affair. ABA on the stack cannot be: the driver takes all of it by an exchange.
 *
 * Holds:
 *   WORK2  with all at rest, no work is on the stack, or deferred, while the driver sleeps (4.2 of
 *          the specification: work is never lost; G8)
 *   WORK1  a piece is run once for each time it was submitted, and nobody touches it from the
 *          moment it is run to the next submit
 *
 *   run: WORKS   WORK1 WORK2
 *   run: WORKS INLINE   WORK1 WORK2, where the driver itself runs it
 *   mutant: WORKS LOOK_BEFORE_PARK   the driver looks at the stack before it says that it sleeps
 *       /!= NONE;/d; /true;/s/^/more = stack != NONE; /
 *   mutant: WORKS LOOK_BEFORE_PUSH   the gate is looked at before the push
 *       /= parked;/d; /the look/{n;n;s/$/ sees_parked = parked;/}
 *   mutant: WORKS FORGET_DEFERRED    the driver sleeps although it keeps what was refused
 *       /else -> more/{n;s/$/ more = false;/}
 *   mutant: WORKS ARM_LAST           the bell is armed after the look at the stack
 *       /bell = false;/d; /^\t:: more -> more = false; goto turn$/{n;n;s/$/ bell = false;/}
 *   mutant: WORKS POP_ONE            the driver takes only the first of the stack
 *       /= stack;/s/NONE/NONE; if :: list != NONE -> next[list] = NONE :: else fi/
 *   mutant: WORKS NEXT_LATE          the driver reads the link after it has handed the piece over
 *       /offer(w);/d; /w = list;/s/$/ offer(w);/
 */
#define NONE 9

byte stack = NONE;
byte next[2] = NONE;
byte deferred[2] = NONE;   /* what the executor refused in this turn, in order */
bool with_executor[2];     /* a worker will run it, or give it back */
bool live[2];              /* submitted, not run yet: its memory is the library's */
byte submits[2], runs[2];
bool parked, bell, asleep; /* bell as in gate.pml: true when it has rung since it was armed */
byte at_work = 2;
bool workers_busy;

inline ring()
{
	atomic { rung = bell; bell = true };
	if
	:: !rung -> asleep = false
	:: else
	fi;
	rung = false
}

/* push, and the look at the gate; from here on w may be run and gone */
inline submit_later(w)
{
	do
	:: atomic { assert(live[w]); next[w] = stack }; /* WORK1 */
		if
		:: atomic { stack == next[w] -> stack = w }; break
		:: atomic { stack != next[w] }
		fi
	od;
	sees_parked = parked; /* WORK2 */
	if
	:: atomic { sees_parked -> sees_parked = false }; ring()
	:: atomic { else }
	fi
}

#ifdef INLINE
#define GOES_LATER true
#else
#define GOES_LATER false
#endif

inline submit(w)
{
	if
	:: GOES_LATER -> submit_later(w)
	:: !GOES_LATER -> with_executor[w] = true
	:: !GOES_LATER -> submit_later(w) /* refused */
	fi
}

/* The run. It may submit the piece anew; else its owner frees it. */
inline run_it(w)
{
	atomic {
		assert(live[w] && runs[w] < submits[w]); /* WORK1 */
		runs[w]++;
		live[w] = false
	};
	if
	:: atomic { submits[w] < 2 - w -> submits[w]++; live[w] = true }; submit(w)
	:: skip
	fi
}

active [2] proctype owner()
{
	byte me = _pid;
	bool sees_parked, rung;
	atomic { submits[me] = 1; live[me] = true };
	submit(me);
	at_work--
}

active proctype worker()
{
	byte w;
	bool sees_parked, rung;
end:	do
	:: atomic {
		if
		:: with_executor[0] -> w = 0
		:: with_executor[1] -> w = 1
		fi;
		with_executor[w] = false;
		workers_busy = true
	   };
		if
		:: run_it(w)
		:: submit_later(w) /* tw_run_return */
		fi;
		atomic { workers_busy = false; w = 0 }
	od
}


inline offer(w)
{
	if
	:: GOES_LATER -> run_it(w)
	:: !GOES_LATER -> with_executor[w] = true
	:: !GOES_LATER -> /* refused: deferred to the next turn */
		if
		:: deferred[0] == NONE -> deferred[0] = w
		:: else -> deferred[1] = w
		fi
	fi
}

#define QUIET (asleep && at_work == 0 && !workers_busy && !with_executor[0] && !with_executor[1])

active proctype driver()
{
	byte w, k0, k1, list = NONE, after;
	bool sees_parked, rung, more;
turn:	parked = false;
	atomic { k0 = deferred[0]; k1 = deferred[1]; deferred[0] = NONE; deferred[1] = NONE };
	if
	:: k0 != NONE -> offer(k0)
	:: else
	fi;
	if
	:: k1 != NONE -> offer(k1)
	:: else
	fi;
	atomic { list = stack; stack = NONE }; /* exchange: WORK1 */
	do
	:: list != NONE ->
		w = list;
		after = next[w];
		offer(w);
		list = after
	:: else -> break
	od;
	atomic { k0 = NONE; k1 = NONE; w = 0; after = 0 };
	if
	:: deferred[0] != NONE -> more = true
	:: else -> more = false
	fi;
	if
	:: more -> more = false; goto turn /* again in a tick */
	:: else
	fi;
	bell = false; /* exchange */
	parked = true;
	more = stack != NONE; /* WORK2 */
	if
	:: more -> more = false; goto turn
	:: else
	fi;
	if
	:: atomic { !bell -> asleep = true }
	:: bell -> goto turn
	fi;
	if
	:: !asleep -> goto turn
	:: atomic {
		QUIET ->
		assert(stack == NONE && deferred[0] == NONE);                    /* WORK2 */
		assert(runs[0] == submits[0] && runs[1] == submits[1]) /* WORK1 */
	   }
	fi
}
