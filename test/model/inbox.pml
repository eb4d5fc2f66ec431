/*
 * The limiter's inbox: INBOX1 and INBOX2 in executor/limiter/inbox.c, beside the lock, and the
 * runners for whom it is left.
 *
 * Modelled: two threads that submit plain jobs, one two of them, the other one; without the lock if
 * the inbox is open (and by chance with it, as one does who has read an old word); runners that are
 * sent, pick, run, come back lazily, and go home; and an owner, who with PAUSE pauses and resumes,
 * with STOP stops and starts again, with RESIZE makes of one permit two, and one again. With the
 * lock, all between two looks at the inbox's word is one step.
 *
 * Left out: priorities, options, callbacks (each gives the lock up and takes it again, as the
 * sending of runners does here); what limiters have no inbox for. Program order stands for the
 * release and acquire of INBOX1 and INBOX2. A leave is one step: its compare-and-swap fails if
 * anything came or went, and takes no harm if it came back. A pick's second look at an empty queue
 * saves a runner: all holds without it.
 *
 * Holds:
 *   INBOX1  each job that was accepted runs or is dropped, once, and none sleeps there: else this
 *           would stand still. Places in the queue are in the
 *       order of submits, by whomever. Who has the lock knows all whose submit had returned: a stop
 *       drops them, idle is not told before them
 *   INBOX2  with the lock free: open only if all permits are out, started and not paused; and no
 *           job in the queue for which there is a permit
 *   no permit, nor runner, is lost; as many jobs run as there are permits, at most
 *
 *   run: PAUSE    INBOX1 INBOX2
 *   run: STOP     INBOX1 INBOX2
 *   run: RESIZE   INBOX1 INBOX2
 * (With FOUR, two jobs each, all three hold as well: 3.6, 7.2 and 10.2 million states; too long for
 * every day.)
 *   mutant: PAUSE SHUT_BLINDLY       shut without a look whether a job came: a store instead of a
 *                                    compare-and-swap
 *   mutant: PAUSE LEAVE_BLINDLY      a submitter looks whether it is open, and leaves its job in a
 *                                    second step
 *   mutant: PAUSE STAYS_OPEN         who gives a permit back leaves the inbox open
 *   mutant: PAUSE TAKEN_ONLY         who shuts sends nobody for what it took
 *   mutant: PAUSE NO_LOOK            who takes the lock does not look: a submitter with the lock
 *                                    overtakes what it left without it
 *   mutant: STOP NO_LOOK             the same: a stop leaves behind what it should drop
 *   mutant: PAUSE NO_LAZY_LOOK       a runner that comes back to an empty queue does not look: it
 *                                    tells of an idle that is none
 *   mutant: PAUSE LAST_FIRST         the stack is not turned round
 *   mutant: RESIZE NO_RESERVE        a limit that grows has no runner for those who came meanwhile
 */
#define NONE 9
#ifdef FOUR
#define JOBS 4
#else
#define JOBS 3
#endif
#define BIT(j) (1 << (j))

/* The word of the inbox; oldest first. */
bool inbox_open;
byte inbox[JOBS], inbox_n;

bool locked, open, started = true, paused;
byte limit = 1, running, searching, runners, free_runners;
byte queue[4], queue_n, unfinished;

byte sent; /* runners that the executor has */

/* Sets of jobs. */
byte returned, accepted, begun, finished;
byte before[JOBS];    /* whose submit had returned when this one's began */
byte known;           /* whose submit had returned when the lock was taken */
byte at_work = 3;

#define ALL_OUT (started && !paused && running + searching >= limit)
#define MAY_START (started && !paused && running + searching < limit && queue_n > searching)

inline accept(j)
{
	assert(!(accepted & BIT(j)) && !(before[j] & ~accepted)); /* INBOX1: once; in order */
	accepted = accepted | BIT(j);
	queue[queue_n] = j;
	queue_n++;
	unfinished++
}

/* INBOX1: exchange */
inline take()
{
	d_step {
		do
#ifdef LAST_FIRST
		:: inbox_n > 0 -> inbox_n--; accept(inbox[inbox_n]); inbox[inbox_n] = 0
#else
		:: i < inbox_n -> accept(inbox[i]); inbox[i] = 0; i++
#endif
		:: else -> break
		od;
		inbox_n = 0;
		i = 0
	}
}

inline look()
{
	if
	:: open && inbox_n > 0 -> take()
	:: !open || inbox_n == 0
	fi
}

inline lock()
{
	atomic { !locked -> locked = true; known = returned }
}

inline relock()
{
	lock();
#ifndef NO_LOOK
	look()
#endif
}

/* tw__limiter_lock_lazily */
inline lock_lazily()
{
	lock();
#ifndef NO_LAZY_LOOK
	if
	:: queue_n == 0 -> look()
	:: else
	fi
#endif
}

inline give_up_lock()
{
	assert(open == inbox_open && (!open || ALL_OUT) && !MAY_START); /* INBOX2 */
	locked = false;
	known = 0
}

/* tw__runner_reserve */
inline reserve(wanted)
{
	d_step {
		do
		:: runners < limit && runners < wanted -> runners++; free_runners++
		:: else -> break
		od
	}
}

/* tw__dispatch: into the thread's deferred actions */
inline dispatch()
{
	d_step {
		do
		:: MAY_START && free_runners > 0 -> free_runners--; searching++; to_send++
		:: else -> break
		od
	}
}

/* tw__inbox_attend */
inline attend()
{
	if
#ifndef STAYS_OPEN
	:: open && !ALL_OUT ->
		do
#ifdef SHUT_BLINDLY
		:: inbox_n > 0 -> take()
		:: inbox_n == 0 -> atomic { true -> inbox_open = false; open = false }; break
#else
		/* INBOX2: CAS */
		:: atomic { inbox_n == 0 -> inbox_open = false; open = false }; break
		:: inbox_n > 0 -> take()
#endif
		od;
#ifndef TAKEN_ONLY
#ifndef NO_RESERVE
		reserve(unfinished);
#endif
		dispatch()
#endif
#endif
	:: else
	fi;
	if
	:: atomic { !open && ALL_OUT -> open = true; inbox_open = true } /* INBOX2: store */
	:: else
	fi
}

/* tw__limiter_unlock */
inline unlock()
{
	attend();
	do
	:: atomic { to_send > 0 -> give_up_lock() };
		atomic { sent = sent + to_send; to_send = 0 };
		relock();
		attend()
	:: atomic { to_send == 0 -> give_up_lock() }; break
	od
}

inline submit(j)
{
	before[j] = returned;
	if
#ifdef LEAVE_BLINDLY
	:: inbox_open -> atomic { inbox[inbox_n] = j; inbox_n++; returned = returned | BIT(j) }
#else
	/* INBOX1, INBOX2: CAS */
	:: atomic { inbox_open -> inbox[inbox_n] = j; inbox_n++; returned = returned | BIT(j) }
#endif
	:: true ->
		relock();
		reserve(unfinished + 1);
		d_step { accept(j); returned = returned | BIT(j) };
		dispatch();
		unlock()
	fi
}

active [2] proctype submitter()
{
	byte i, to_send, me = 2 * _pid;
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
	:: unfinished == 0 -> assert(!(known & ~finished)) /* INBOX1: idle */
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
		:: queue_n > 0 && started && !paused && running < limit ->
			leave_queue(job);
			running++;
			assert(!(begun & BIT(job)) && !(finished & BIT(job)));
			begun = begun | BIT(job)
		:: else
		fi
	}
}

/* The executor's threads. */
active [2] proctype runner()
{
	byte i, to_send, job = NONE;
end:	do
	:: atomic { sent > 0 -> sent-- };
		relock();
		searching--;
		do
		:: pick();
			if
			:: job == NONE -> break
			:: else
			fi;
			dispatch();
			unlock();
			lock_lazily(); /* its function has returned */
			d_step { running--; finish(job); job = NONE };
			if
			:: true        /* goes on */
			:: true -> break /* it has callbacks to call, or has run many */
			fi
		od;
		free_runners++;
		dispatch();
		unlock()
	od
}

active proctype owner()
{
	byte i, to_send, job = NONE;
	relock();
#ifdef PAUSE
	paused = true;
#endif
#ifdef STOP
	d_step {
		started = false;
		do
		:: queue_n > 0 -> leave_queue(job); finish(job)
		:: else -> break
		od;
		job = NONE;
		assert(!(known & ~(begun | finished))) /* INBOX1 */
	};
#endif
#ifdef RESIZE
	limit = 2;
	reserve(unfinished);
#endif
	dispatch();
	unlock();
	relock();
	d_step { paused = false; started = true; limit = 1 };
	dispatch();
	unlock();
	at_work--
}

active proctype at_rest()
{
	at_work == 0;
	finished == BIT(JOBS) - 1;
	running == 0 && searching == 0 && free_runners == runners
}
