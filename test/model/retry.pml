/*
 * Who decides about a retry, and who tells of the end: executor/limiter/tell.c and settle.c.
 *
 * Modelled: a job whose attempt has failed. The thread that ended the attempt has the job in its
 * list of things to do. With retry.allow, it hands the question to the executor (ALLOW); without,
 * it decides itself (PLAIN). The driver settles the job when its total timeout passes, at any
 * time. One more thread may cancel the job. An executor of two threads runs what it is given. What
 * a thread does under one hold of the lock is one step; retry.allow, `done` and `release` run
 * between steps.
 *
 * Left out: `stop`, the event STARTED, closes, the next attempt (the timeout passes before it).
 *
 * Holds:
 *   1   The job is in one thread's list at most, and `tell` is not submitted while it is out
 *   2   The job settles once. `done` is called once, then `release`, once
 *   3   No `release` while retry.allow runs; no `done` either, except after a timeout
 *   4   The timeout settles the job in every state. So the job ends: if not, this would stand still
 *
 *   run: ALLOW   1 2 3 4
 *   run: PLAIN   1 2 3 4
 *   mutant: ALLOW NOTE_ALWAYS       the driver notes a job that another thread has to do
 *   mutant: PLAIN NOTE_ALWAYS       the same, without retry.allow
 *   mutant: ALLOW RUNS_EARLY        the question counts as asked before its thread has the job
 *   mutant: ALLOW RELEASE_EARLY     a release does not wait for retry.allow
 *   mutant: ALLOW CANCEL_SETTLES    a cancel settles the job while retry.allow runs
 *   mutant: ALLOW ANSWER_COUNTS     an answer counts though the job has settled
 *   mutant: ALLOW LOST              who finds the job settled does not note it
 */
#define NOT 0
#define DUE 1
#define SENT 2
#define RUNS 3

byte asking, lists, settles, dones, releases;
bool ended, retrying, settled, timed_out, cancelled, told, releasing, work_out, inside_allow;
bool begun, over;

/* tw__job_note_settled: for this thread to do, unless another one has the job. */
inline note()
{
	if
#ifndef NOTE_ALWAYS
	:: asking == DUE || asking == SENT
#endif
	:: else ->
		lists++;
		mine = true;
		assert(lists == 1) /* 1 */
	fi
}

inline settle()
{
	assert(!settled); /* 2 */
	settled = true;
	ended = false;
	retrying = false
}

inline look_for_release()
{
	if
#ifdef RELEASE_EARLY
	:: told && !releasing ->
#else
	:: told && !releasing && asking == NOT ->
#endif
		releasing = true;
		lists++;
		mine = true;
		assert(lists == 1) /* 1 */
	:: else
	fi
}

inline send()
{
	assert(!work_out); /* 1 */
	work_out = true
}

inline retry_or_end()
{
	ended = false;
	if
	:: cancelled -> settle(); note()
	:: !cancelled -> retrying = true
	:: !cancelled -> settle(); note() /* not wanted */
	fi
}

/* do_job, until this thread has nothing to do. */
inline do_all()
{
	do
	:: atomic { mine && (asking == DUE || asking == SENT) && settled ->
		mine = false;
		lists--;
		asking = NOT;
#ifndef LOST
		note()
#endif
	   }
	:: atomic { mine && asking == DUE && !settled ->
		mine = false;
		lists--;
#ifdef ALLOW
		if
		:: !cancelled -> asking = SENT; send()
		:: cancelled -> asking = NOT; retry_or_end()
		fi
#else
		asking = NOT;
		retry_or_end()
#endif
	   }
	:: atomic { mine && asks && !settled ->
		mine = false;
		asks = false;
		lists--;
		asking = RUNS;
		inside_allow = true
	   }
	   atomic { assert(releases == 0); inside_allow = false } /* 3 */
	   atomic {
		asking = NOT;
		if
#ifndef ANSWER_COUNTS
		:: settled -> look_for_release()
#endif
		:: else -> retry_or_end()
		fi
	   }
	:: atomic { mine && asking != DUE && asking != SENT && settled && !told ->
		mine = false;
		asks = false;
		lists--;
		dones++;
		assert(dones == 1); /* 2 */
		assert(timed_out || !inside_allow) /* 3 */
	   }
	   atomic { told = true; look_for_release() }
	:: atomic { mine && told && releasing ->
		mine = false;
		lists--;
		releases++;
		assert(releases == 1 && dones == 1); /* 2 */
		assert(!inside_allow) /* 3 */
	   }
	:: else -> break
	od
}

active proctype ender()
{
	bool mine, asks;
	atomic {
		ended = true;
		asking = DUE;
		lists++;
		mine = true;
		begun = true
	}
	do_all();
	over = true
}

active [2] proctype executor()
{
	bool mine, asks;
end:	do
	:: atomic { work_out ->
		work_out = false;
		lists++;
		mine = true;
		asks = asking == SENT;
#ifdef RUNS_EARLY
		if
		:: asks && !settled -> asking = RUNS
		:: else
		fi;
#endif
		assert(lists == 1) /* 1 */
	   }
	   do_all()
	od
}

/* tw__tell_later: what the driver has to do goes to the executor. */
active proctype driver()
{
	bool mine;
	atomic { begun ->
		if
		:: settled
		:: else ->
			timed_out = true;
			settle();
			note();
			if
			:: mine -> mine = false; lists--; send()
			:: else
			fi
		fi
	}
}

active proctype canceller()
{
	bool mine;
	atomic {
		if
#ifdef CANCEL_SETTLES
		:: ended && asking == RUNS ->
			settle();
			note();
			if
			:: mine -> mine = false; lists--; send()
			:: else
			fi
#endif
		:: ended -> cancelled = true
		:: true
		fi
	}
}

/* 4 */
active proctype final()
{
	settled && told && releases == 1 && lists == 0 && !work_out
}
