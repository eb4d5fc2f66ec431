/*
 * How plain jobs come to a limiter without its lock, and who looks for them: ACTIVE, `run_out` and
 * tw__limiter_leave in executor/limiter/lock.c, on the word of executor/base/object.h.
 *
 * Modelled: two threads that submit plain jobs, one two of them, the other one; without the lock
 * (and by chance with it, as jobs with options come); the work `run`, which picks, runs, comes back
 * lazily, and goes home; and an owner, who with PAUSE pauses and resumes, with DROP closes the
 * limiter and drops what waits, with RESIZE makes of one permit two, and one again. With the lock,
 * all between two looks at the word is one step.
 *
 * Left out: priorities, options, callbacks; limiters that decide something at a submit; the half
 * reversed stack of the object (object.pml). Program order stands for the release and acquire of
 * OBJECT1 and OBJECT2. A post is one step: its compare-and-swap fails if anything came or went.
 *
 * Holds:
 *   LIMITER1  each job that was accepted runs or is dropped, once, and none is forgotten: else this
 *       would stand still. Places in line are in the order of submits, by whomever. Who has the
 *       lock knows all whose submit had returned: a drop drops them, idle is not told before them
 *   LIMITER2  `run` is not submitted while it is out. With the lock free: not ACTIVE, or somebody
 *       will look; and no job in line for which there is a permit, unless `run` is out
 *   as many jobs run as there are permits, at most
 *
 *   run: PAUSE    LIMITER1 LIMITER2
 *   run: DROP     LIMITER1 LIMITER2
 *   run: RESIZE   LIMITER1 LIMITER2
 *   mutant: PAUSE REST_BLINDLY     ACTIVE is cleared without a look whether a job came
 *       /:: noted/{n;N;N;N;s/.\+/word_active = false; noted = false; break/}
 *   mutant: PAUSE RAISE_BLINDLY    who raises ACTIVE does not look whether a submit was faster
 *       s/noted || !word_active;/true;/
 *   mutant: PAUSE NO_NOTE          who takes the lock does not note that a submit has raised ACTIVE
 *       /inbox_look/{n;n;n;n;N;N;N;d}
 *   mutant: PAUSE STAYS_ACTIVE     who gives a permit back leaves it raised
 *       /:: noted/{N;N;N;N;s/.\+/:: noted \&\& !LOOKS -> break/}
 *       s/give_up_lock();/locked = false; known = 0;/
 *   mutant: PAUSE TAKEN_ONLY       who takes over what came at a rest sends nobody for it
 *       /inbox_n >/s/$/ ; break/; s/give_up_lock();/locked = false; known = 0;/
 *   mutant: PAUSE NO_LOOK          who takes the lock does not look: a submitter with the lock
 *                                  overtakes what it left without it
 *       /^\tlook()$/d
 *   mutant: DROP NO_LOOK           the same: a drop leaves behind what it should drop
 *       /^\tlook()$/d
 *   mutant: PAUSE NO_LAZY_LOOK     a runner that comes back to an empty line does not look: it
 *                                  tells of an idle that is none
 *       /function/{n;N;N;N;d}
 *   mutant: PAUSE LAST_FIRST       the stack is not turned round
 *       /= 0; i++/s/.\+/:: inbox_n > 0 -> inbox_n--; accept(inbox[inbox_n]); inbox[inbox_n] = 0/
 */
#define NONE 9
#define JOBS 3
#define BIT(j) (1 << (j))

/* The word of the object; the oldest first. */
bool word_active, word_closed;
byte inbox[JOBS], inbox_n;

bool locked, noted, run_out, paused, closed;
byte limit = 1, running, queue[4], queue_n, unfinished;

byte sent; /* `run`, with the executor */

/* Sets of jobs. */
byte returned, accepted, begun, finished;
byte before[JOBS]; /* whose submit had returned when this one's began */
byte known;        /* whose submit had returned when the lock was taken */
byte at_work = 3;

#define MAY_START (!paused && running < limit && queue_n > 0)
#define LOOKS (run_out || (!closed && (paused || running >= limit)))

inline accept(j)
{
	assert(!(accepted & BIT(j)) && !(before[j] & ~(accepted | finished))); /* LIMITER1 */
	accepted = accepted | BIT(j);
	queue[queue_n] = j;
	queue_n++;
	unfinished++
}

/* inbox_look */
inline look()
{
	d_step {
		if
		:: !noted && word_active -> noted = true; run_out = true
		:: else
		fi;
		do
		:: i < inbox_n -> accept(inbox[i]); inbox[i] = 0; i++
		:: else -> break
		od;
		inbox_n = 0;
		i = 0
	}
}

inline lock()
{
	atomic { !locked -> locked = true; known = returned }
}

inline relock()
{
	lock();
	look()
}

inline give_up_lock()
{
	/* LIMITER2 */
	assert((!noted || LOOKS) && (!MAY_START || run_out));
	locked = false;
	known = 0
}

inline submit_run()
{
	assert(sent == 0); /* LIMITER2 */
	sent++
}

/* tw__limiter_leave */
inline leave()
{
	do
	:: true ->
		if
		:: !run_out && MAY_START ->
			atomic {
				wants = noted || !word_active;
				word_active = true
			};
			noted = true; run_out = true
		:: else
		fi;
		if
		:: !noted || LOOKS -> break
		:: noted && !LOOKS ->
			if
			:: atomic { inbox_n == 0 -> word_active = false; noted = false }; break
			:: inbox_n > 0 -> look()
			fi
		fi
	od;
	give_up_lock();
	if
	:: wants -> wants = false; submit_run()
	:: else
	fi
}

inline refuse(j)
{
	finished = finished | BIT(j);
	returned = returned | BIT(j)
}

inline submit(j)
{
	before[j] = returned;
	if
	:: true -> /* tw__object_post */
		atomic {
			if
			:: word_closed -> refuse(j)
			:: else ->
				inbox[inbox_n] = j;
				inbox_n++;
				raised = !word_active;
				word_active = true;
				returned = returned | BIT(j)
			fi
		};
		if
		:: raised -> raised = false; submit_run()
		:: else
		fi
	:: true ->
		relock();
		d_step {
			if
			:: closed -> refuse(j)
			:: else -> accept(j); returned = returned | BIT(j)
			fi
		};
		leave()
	fi
}

active [2] proctype submitter()
{
	byte i, me = 2 * _pid;
	bool wants, raised;
	submit(me);
	if
	:: me + 1 < JOBS -> submit(me + 1)
	:: else
	fi;
	at_work--
}

inline finish(j)
{
	assert(!(finished & BIT(j)));
	finished = finished | BIT(j);
	unfinished--;
	if
	:: unfinished == 0 -> assert(!(known & ~finished)) /* LIMITER1: idle */
	:: else
	fi
}

inline leave_queue(j)
{
	j = queue[0];
	queue_n--;
	queue[0] = queue[1];
	queue[1] = queue[2];
	queue[2] = queue[3];
	queue[3] = 0
}

inline pick()
{
	if
	:: queue_n == 0 -> look()
	:: else
	fi;
	d_step {
		if
		:: MAY_START ->
			leave_queue(job);
			running++;
			assert(!(begun & BIT(job)) && !(finished & BIT(job)));
			begun = begun | BIT(job)
		:: else
		fi
	}
}

/* The executor's threads: tw__limiter_run. */
active [2] proctype runner()
{
	byte i, job = NONE;
	bool wants;
end:	do
	:: atomic { sent > 0 -> sent-- };
		relock();
		run_out = false;
		do
		:: pick();
			if
			:: job == NONE -> break
			:: else
			fi;
			leave();
			lock(); /* its function has returned */
			if
			:: queue_n == 0 -> look()
			:: else
			fi;
			d_step { running--; finish(job); job = NONE };
			if
			:: true        /* goes on */
			:: true -> break /* it has callbacks to call, or has run many */
			fi
		od;
		leave()
	od
}

active proctype owner()
{
	byte i, job = NONE;
	bool wants;
	relock();
#ifdef PAUSE
	paused = true;
#endif
#ifdef DROP
	atomic { word_closed = true; closed = true };
	leave();
	relock();
	d_step {
		do
		:: queue_n > 0 -> leave_queue(job); finish(job)
		:: else -> break
		od;
		job = NONE;
		assert(!(known & ~(begun | finished))) /* LIMITER1 */
	};
#endif
#ifdef RESIZE
	limit = 2;
#endif
	leave();
	relock();
	d_step { paused = false; limit = 1 };
	leave();
	at_work--
}

active proctype at_rest()
{
	at_work == 0;
	finished == BIT(JOBS) - 1;
	running == 0 && sent == 0
}
