/*
 * The limiter's queue: executor/limiter/queue.c and job_queue.c. How long a job that needs many
 * permits waits behind jobs that need few.
 *
 * Modelled: two permits; one job that needs both (HEAVY), two plain jobs that take the inbox if it
 * is open, and a fourth with options, which always takes the lock. The heavy job and the fourth may
 * fail once, wait for a retry, and return to the line. An attempt ends in its runner, or later by
 * tw_job_complete. Two threads submit the light jobs, and one the heavy job. Two threads are the
 * executor, one completes, one is the driver with its timers. What a thread does under one hold of
 * the lock is one step.
 *   PLAIN     all jobs have one priority
 *   CANCEL    the same, and one more thread cancels the heavy job while it is in line
 *   PRIORITY  the fourth job has a higher priority
 *
 * Left out: what happens between two steps of one thread with the lock (inbox.pml); rate, timeouts,
 * pause, changes of the limit.
 *
 * Holds:
 *   1   While the heavy job is in line, no more attempts begin than there were jobs in line when it
 *       came. Only jobs of a higher priority come on top
 *   2   An attempt begins only if all its permits are free
 *   3   With the lock free: if the first in line fits, a runner is on its way. So each job settles,
 *       and all permits return: if not, this would stand still
 *
 *   run: PLAIN     1 2 3
 *   run: CANCEL    1 2 3
 *   run: PRIORITY  1 2 3
 *   mutant: PLAIN LIGHT_FIRST       a runner takes the first job that fits, past the head
 *   mutant: PLAIN INBOX_FIRST       the inbox is served before the line
 *   mutant: PLAIN RETRY_FIRST       a retry returns to the head of the line
 *   mutant: PLAIN FITS_BLINDLY      a runner takes the first job if one permit is free
 *   mutant: PLAIN ENDS_QUIETLY      a completion that gives permits back sends no runner
 *   mutant: CANCEL LEAVES_QUIETLY   a cancelled job at the head sends no runner for the next
 */
#define NONE 9
#define JOBS 4
#define HEAVY 0
#define FOURTH 3
#define LIMIT 2
#define BIT(j) (1 << (j))
#define NEED(j) (j == HEAVY -> 2 : 1)
#define HAS_OPTIONS(j) (j == HEAVY || j == FOURTH)

#ifdef PRIORITY
#define IS_HIGH(j) (j == FOURTH)
#else
#define IS_HIGH(j) false
#endif

bool open;
byte inbox[JOBS], inbox_n, line[JOBS], line_n; /* oldest first */
byte running, searching, free_runners = LIMIT;
byte sent;                                     /* runners that the executor has */

/* Sets of jobs. */
byte pending, retrying, failed, settled;

/* Of the heavy job in line: jobs before it when it came; attempts that began since. */
byte ahead, others;
bool heavy_waits;

/* ----------------------------------------------------------------- the line */

inline insert(j, place)
{
	i = line_n;
	do
	:: i > place -> line[i] = line[i - 1]; i--
	:: else -> break
	od;
	line[i] = j;
	line_n++;
	i = 0
}

inline remove(place)
{
	i = place;
	line_n--;
	do
	:: i < line_n -> line[i] = line[i + 1]; i++
	:: else -> break
	od;
	line[i] = 0;
	i = 0
}

/* tw__job_queue_first: `first` is its place, or line_n. `low`: the first of the lower priority. */
inline look_for_first()
{
	first = line_n;
	low = line_n;
	do
	:: i < line_n && IS_HIGH(line[i]) -> first = i; i++
	:: i < line_n && !IS_HIGH(line[i]) ->
		if
		:: low == line_n -> low = i
		:: else
		fi;
		i++
	:: else -> break
	od;
	i = 0;
	if
	:: first == line_n -> first = low
	:: else
	fi;
#ifdef LIGHT_FIRST
	first = 0;
	do
	:: first < line_n && running + NEED(line[first]) > LIMIT -> first++
	:: else -> break
	od;
#endif
	low = 0
}

/* tw__job_enqueue */
inline enter(j)
{
	d_step {
		if
		:: j == HEAVY ->
			others = 0;
			ahead = 0;
			do
			:: i < line_n -> ahead = ahead + !IS_HIGH(line[i]); i++
			:: else -> break
			od;
			heavy_waits = true
		:: else
		fi;
		insert(j, line_n)
	}
}

/* tw__inbox_take */
inline take()
{
	d_step {
		do
#ifdef INBOX_FIRST
		:: inbox_n > 0 -> inbox_n--; insert(inbox[inbox_n], 0); inbox[inbox_n] = 0
#else
		:: n < inbox_n -> insert(inbox[n], line_n); inbox[n] = 0; n++
#endif
		:: else -> break
		od;
		inbox_n = 0;
		n = 0
	}
}

/* tw__limiter_lock_lazily */
inline take_lazily()
{
	if
	:: line_n == 0 -> take()
	:: else
	fi
}

/* ------------------------------------------------------------------- permits */

#ifdef FITS_BLINDLY
#define FITS(j) (running + 1 <= LIMIT)
#else
#define FITS(j) (running + NEED(j) <= LIMIT)
#endif

/* `first` is known. */
#define MAY_START (first < line_n && line_n > searching && \
	running + searching < LIMIT + 1 - NEED(line[first]))

/* tw__dispatch: runners for the first in line */
inline dispatch()
{
	d_step {
		look_for_first();
		do
		:: MAY_START && free_runners > 0 -> free_runners--; searching++; sent++
		:: else -> break
		od;
		first = 0
	}
}

#define ALL_OUT (running + searching >= LIMIT)

/* tw__limiter_unlock: tw__inbox_attend */
inline unlock()
{
	if
	:: open && !ALL_OUT -> take(); open = false; dispatch()
	:: else
	fi;
	if
	:: ALL_OUT -> open = true
	:: else
	fi;
	d_step {
		assert(running <= LIMIT); /* 2 */
		look_for_first();
		assert(!MAY_START || free_runners == 0); /* 3 */
		first = 0
	}
}

inline pick()
{
#ifdef INBOX_FIRST
	take();
#else
	take_lazily();
#endif
	d_step {
		look_for_first();
		if
		:: first < line_n && FITS(line[first]) ->
			job = line[first];
			remove(first);
			running = running + NEED(job);
			if
			:: job == HEAVY -> heavy_waits = false; ahead = 0; others = 0
			:: job != HEAVY && heavy_waits && !IS_HIGH(job) ->
				others++;
				assert(others <= ahead) /* 1 */
			:: else
			fi
		:: else
		fi;
		first = 0
	}
}

/* tw__attempt_end; what has failed waits for the driver */
inline end_attempt(j)
{
	running = running - NEED(j);
	if
	:: settled = settled | BIT(j)
	:: HAS_OPTIONS(j) && !(failed & BIT(j)) ->
		failed = failed | BIT(j);
		retrying = retrying | BIT(j)
	fi
}

/* ------------------------------------------------------------------- threads */

inline submit(j)
{
	if
	:: atomic { !HAS_OPTIONS(j) && open -> /* tw__inbox_leave */
		inbox[inbox_n] = j; inbox_n++
	   }
	:: atomic { take(); enter(j); dispatch(); unlock() }
	fi
}

active proctype submitter()
{
	byte i, n, first, low;
	submit(1);
	submit(2)
}

active proctype submitter_of_fourth()
{
	byte i, n, first, low;
	submit(FOURTH)
}

active proctype submitter_of_heavy()
{
	byte i, n, first, low;
	submit(HEAVY)
}

/* With a job, or else home. */
inline go_on()
{
	free_runners = free_runners + (job == NONE);
	dispatch();
	unlock()
}

active [2] proctype runner()
{
	byte i, n, first, low, job = NONE;
end:	do
	:: atomic { job == NONE && sent > 0 -> sent--; searching--; take(); pick(); go_on() }
	:: atomic { job != NONE ->
		take_lazily();
		if
		:: end_attempt(job)
		:: pending = pending | BIT(job)
		fi;
		job = NONE;
		if
		:: pick()
		:: true /* it has callbacks to call, or its slice is over */
		fi;
		go_on()
	   }
	od
}

/* tw_job_complete */
active proctype completer()
{
	byte i, n, first, low, job;
end:	do
	:: atomic { pending != 0 ->
		if
		:: pending & BIT(0) -> job = 0
		:: pending & BIT(1) -> job = 1
		:: pending & BIT(2) -> job = 2
		:: pending & BIT(3) -> job = 3
		fi;
		pending = pending & ~BIT(job);
		take();
		end_attempt(job);
		job = 0;
#ifndef ENDS_QUIETLY
		dispatch();
#endif
		unlock()
	   }
	od
}

#ifdef RETRY_FIRST
#define RETURN(j) insert(j, 0)
#else
#define RETURN(j) enter(j)
#endif

/* on_time */
active proctype driver()
{
	byte i, n, first, low;
end:	do
	:: atomic { retrying & BIT(HEAVY) ->
		retrying = retrying & ~BIT(HEAVY);
		take();
		enter(HEAVY);
		dispatch();
		unlock()
	   }
	:: atomic { retrying & BIT(FOURTH) ->
		retrying = retrying & ~BIT(FOURTH);
		take();
		RETURN(FOURTH);
		dispatch();
		unlock()
	   }
	od
}

#ifdef CANCEL
active proctype canceller()
{
	byte i, n, first, low;
end:	atomic { heavy_waits ->
		take();
		do
		:: line[first] != HEAVY -> first++
		:: else -> break
		od;
		remove(first);
		first = 0;
		heavy_waits = false;
		settled = settled | BIT(HEAVY);
#ifndef LEAVES_QUIETLY
		dispatch();
#endif
		unlock()
	}
}
#endif

active proctype at_rest()
{
	settled == BIT(JOBS) - 1; /* 3 */
	running == 0 && searching == 0 && free_runners == LIMIT
}
