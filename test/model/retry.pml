/*
 * Who calls the user code of a job, and what follows: `todo`, the lists and the work `tell` in
 * executor/limiter/settle.c and tell.c.
 *
 * Modelled: a job whose attempt runs, ends, and fails. The thread that ends the attempt has a list
 * of things to tell, and so has one that cancels the job at any time. The tick thread settles the
 * job when its total timeout passes, at any time; its list is the limiter's. An executor of two
 * threads takes from that list by the work `tell`. With ALLOW the executor asks retry.allow; with
 * PLAIN the policy decides at once. What a thread does under one hold of the lock is one step; user
 * code runs between steps.
 *
 * Left out: the event STARTED, which holds up `done` as `stop` does; closes; the next attempt (the
 * timeout passes before it).
 *
 * Holds:
 *   1   The job is in one list at most, and `tell` is not submitted while it is out
 *   2   The job settles once. `done` is called once, then `release`, once
 *   3   No `done` while `stop` runs, nor while retry.allow does, except after a timeout. No
 *       `release` while the attempt, `stop` or retry.allow runs
 *   4   The timeout settles the job in every state. So the job ends: if not, this would stand still
 *
 *   run: ALLOW   1 2 3 4
 *   run: PLAIN   1 2 3 4
 *   mutant: PLAIN TELL_ALWAYS       a job that settles does not wait for its `stop`
 *   mutant: ALLOW ASK_STAYS         a job that settles before it is asked about is noted once more
 *   mutant: ALLOW RELEASE_EARLY     a release does not wait for retry.allow
 *   mutant: PLAIN RELEASE_INSIDE    a release does not wait for the attempt
 *   mutant: ALLOW CANCEL_SETTLES    a cancel settles the job while retry.allow runs
 *   mutant: ALLOW ANSWER_COUNTS     an answer counts though the job has settled
 *   mutant: PLAIN LOST              who has called `stop` does not look whether the job has settled
 *   mutant: PLAIN TELL_TWICE        `tell` is submitted though it is out
 *   mutant: ALLOW TELL_LATE         `tell` counts as out until its step is over, and nobody looks
 *                                   then
 */
mtype { NOTHING, STOP, ASK, DONE, RELEASE }
mtype { RUNNING, ENDED, ASKING, DELAYED, SETTLED }

/* Lists. */
#define NONE 0
#define LIMITER 9

mtype todo = NOTHING, state = RUNNING;
byte where, settles, dones, releases;
bool inside = true, stopped, cancelled, asked, told, finished;
bool in_stop, in_allow, has_stop;
bool sent, tell_out, timed_out;

inline tell(list, what)
{
	assert(todo == NOTHING && where == NONE); /* 1 */
	todo = what;
	where = list
}

inline when_free(list)
{
	if
#ifndef TELL_ALWAYS
	:: todo == STOP
#endif
#ifndef ASK_STAYS
	:: todo == ASK -> todo = DONE
#endif
	:: else -> tell(list, DONE)
	fi
}

inline settle(list)
{
	assert(state != SETTLED); /* 2 */
	state = SETTLED;
	when_free(list)
}

inline look_for_release(list)
{
	if
#ifdef RELEASE_EARLY
	:: told && !inside -> tell(list, RELEASE)
#else
#ifdef RELEASE_INSIDE
	:: told && !asked -> tell(list, RELEASE)
#else
	:: told && !inside && !asked -> tell(list, RELEASE)
#endif
#endif
	:: else
	fi
}

inline answered(list)
{
	if
	:: cancelled -> settle(list)
	:: !cancelled -> state = DELAYED
	:: !cancelled -> settle(list) /* not wanted */
	fi
}

inline decide(list)
{
#ifdef ALLOW
	if
	:: cancelled -> settle(list)
	:: else -> state = ASKING; tell(LIMITER, ASK)
	fi
#else
	answered(list)
#endif
}

inline stop_it(list)
{
	if
	:: !stopped && has_stop -> stopped = true; tell(list, STOP)
	:: else -> stopped = true
	fi
}

/* tw__limiter_leave */
inline leave()
{
	if
#ifdef TELL_TWICE
	:: where == LIMITER ->
#else
	:: where == LIMITER && !tell_out ->
#endif
		assert(!sent); /* 1 */
		tell_out = true;
		sent = true
	:: else
	fi
}

/* tell_next, until this thread's list is empty. */
inline tell_all(me)
{
	do
	:: atomic { where == me && todo == STOP -> where = NONE; in_stop = true; leave() };
	   atomic {
		in_stop = false;
		todo = NOTHING;
		if
#ifndef LOST
		:: state == SETTLED -> when_free(me)
#endif
		:: state == ENDED -> decide(me)
		:: else
		fi;
		leave()
	   }
	:: atomic { where == me && todo == ASK ->
		where = NONE;
		todo = NOTHING;
		asked = true;
		in_allow = true;
		leave()
	   };
	   atomic {
		in_allow = false;
		asked = false;
		if
#ifdef ANSWER_COUNTS
		:: true -> answered(me)
#else
		:: state == ASKING -> answered(me)
		:: else -> look_for_release(me)
#endif
		fi;
		leave()
	   }
	:: atomic { where == me && todo == DONE ->
		where = NONE;
		dones++;
		assert(dones == 1 && !in_stop && (timed_out || !in_allow)); /* 2 3 */
		leave()
	   };
	   atomic { todo = NOTHING; told = true; look_for_release(me); leave() }
	:: atomic { where == me && todo == RELEASE ->
		where = NONE;
		releases++;
		assert(releases == 1 && dones == 1);          /* 2 */
		assert(!inside && !in_stop && !in_allow);     /* 3 */
		leave()
	   };
	   atomic { todo = NOTHING; finished = true; leave() }
	:: atomic { where != me -> break }
	od
}

init
{
	atomic {
		if
		:: has_stop = true
		:: has_stop = false
		fi;
		run ender(1);
		run canceller(2);
		run driver();
		run executor(3);
		run executor(4)
	}
	/* 4 */
	finished && state == SETTLED && where == NONE && !sent
}

proctype ender(byte me)
{
	atomic {
		inside = false;
		if
		:: state == SETTLED -> look_for_release(me)
		:: state != SETTLED && todo == STOP -> state = ENDED
		:: else -> decide(me)
		fi;
		leave()
	}
	tell_all(me)
}

proctype canceller(byte me)
{
	if
	:: atomic { true ->
		if
		:: state == SETTLED
		:: state == DELAYED -> settle(me)
#ifdef CANCEL_SETTLES
		:: state == ASKING -> settle(me)
#endif
		:: else ->
			cancelled = true;
			if
			:: inside -> stop_it(me)
			:: else
			fi
		fi;
		leave()
	   }
	:: true
	fi;
	tell_all(me)
}

proctype driver()
{
	atomic {
		if
		:: state == SETTLED
		:: state == RUNNING -> timed_out = true; stop_it(LIMITER); settle(LIMITER)
		:: else -> timed_out = true; settle(LIMITER)
		fi;
		leave()
	}
}

proctype executor(byte me)
{
end:	do
	:: atomic { sent ->
		sent = false;
#ifndef TELL_LATE
		tell_out = false;
#endif
		if
		:: where == LIMITER -> where = me
		:: else
		fi
	   };
	   tell_all(me);
#ifdef TELL_LATE
	   tell_out = false
#endif
	od
}
