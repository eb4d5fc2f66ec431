/*
 * The semaphore's word: executor/semaphore/semaphore.c: the fast way, a compare-and-swap, beside the lock that all else takes.
 *
 * Modelled: a capacity of one; threads that acquire and release twice, the first of them perhaps for a limited time only, so that it gives up.
 * THREE threads; or RESIZE: two, and one who sets the capacity to none, and then to two. With the lock the word is changed as in the
 * code: by a load and a store of the whole where WAITERS is set, by a compare-and-swap where it is not.
 *
 * Left out: functions in line, which go the same ways under the lock; what wakes a thread (the futex). Program order stands for
 * the release and acquire of SEM1 and SEM2.
 *
 * Holds (invariants of the file's first comment):
 *   SEM1     never more permits are given than there are: but for debts, held is at most the capacity; each that is out is counted
 *   1, 2   with the lock free: WAITERS if and only if somebody is in line, and then no permit is there to be had
 *   3      a permit that comes back goes to one waiter, or makes held smaller; nobody waits for what is there: else this would stand still
 *
 *   run: THREE    SEM1, 1 2 3
 *   run: RESIZE   SEM1, 1 2 3
 *   mutant: THREE ANNOUNCE_BLINDLY   WAITERS is set after a look, without a compare-and-swap
 *   mutant: THREE RELEASE_BLINDLY    a release on the fast way does not look for WAITERS
 *   mutant: RESIZE TAKE_BLINDLY      a take on the fast way does not look for WAITERS
 *   mutant: THREE BOTH_BRANCHES      a permit that is handed over makes held smaller as well
 *   mutant: THREE STAYS_ANNOUNCED    the last who leaves the line leaves WAITERS behind
 *   mutant: THREE GIVES_UP_BLINDLY   one whose time is up does not look whether a permit is on its way
 *   mutant: RESIZE NO_START          a capacity that grows starts nobody
 *   mutant: RESIZE NO_DEBT           a permit that comes back while there is a debt is handed over
 */
#define NONE 9
#ifdef RESIZE
#define THREADS 2
#else
#define THREADS 3
#endif

/* The word. */
byte held, capacity = 1;
bool waiters;

bool locked;
byte line[3] = NONE, in_line; /* oldest first */
bool granted[3], queued[3];
byte out;                     /* permits that somebody has, or that are on their way to one */
byte at_work = THREADS;

/* A permit goes to somebody: in the name of the word that says so. */
inline give()
{
	out++;
	assert(out <= capacity) /* SEM1 */
}

inline lock()
{
	atomic { !locked -> locked = true }
}

inline unlock()
{
	atomic { assert(waiters == (in_line > 0) && (!waiters || held >= capacity)); locked = false } /* 1, 2 */
}

inline join(w)
{
	atomic { line[in_line] = w; in_line++; queued[w] = true }
}

inline leave(w)
{
	seen_held = held; /* word_set: a load, and a store of the whole word */
	atomic {
		if
		:: line[0] == w -> line[0] = line[1]; line[1] = line[2]
		:: line[0] != w && line[1] == w -> line[1] = line[2]
		:: else
		fi;
		line[2] = NONE;
		in_line--;
		queued[w] = false;
#ifndef STAYS_ANNOUNCED
		if
		:: in_line == 0 -> waiters = false; held = seen_held
		:: else
		fi;
#endif
		seen_held = 0
	}
}

/* grant_thread; nothing is left to be done with the waiter (SEM2) */
inline grant(w)
{
	if
	:: atomic { w != NONE -> granted[w] = true; w = NONE }
	:: atomic { else }
	fi
}

/* pass_on: under the lock */
inline pass_on()
{
	do
	:: atomic { !waiters && held > 0 -> held--; break } /* SEM1: CAS */
	:: waiters ->
		seen_held = held;
		if
#ifdef NO_DEBT
		:: true
#else
		:: atomic { seen_held > capacity -> held = seen_held - 1; seen_held = 0 } /* word_set */
		:: seen_held <= capacity
#endif
			-> atomic { chosen = line[0]; give() };
			leave(chosen)
		fi;
#ifdef BOTH_BRANCHES
		held--;
#endif
		break
	od
}

inline release()
{
	atomic { out--; seen_held = held; seen_waiters = waiters }; /* the permit is nobody's; load */
	do
#ifdef RELEASE_BLINDLY
	:: true ->
#else
	:: atomic { seen_waiters -> seen_waiters = false }; seen_held = 0;
		lock();
		pass_on();
		unlock();
		grant(chosen);
		break
	:: !seen_waiters ->
#endif
		if
#ifdef RELEASE_BLINDLY
		:: atomic { held == seen_held -> assert(held > 0); held--; seen_held = 0; seen_waiters = false }; break
		:: atomic { else -> seen_held = held }
#else
		:: atomic { held == seen_held && !waiters -> assert(held > 0); held--; seen_held = 0 }; break /* SEM1: CAS */
		:: atomic { else -> seen_held = held; seen_waiters = waiters }
#endif
		fi
	od
}

/* take_or_announce: under the lock */
inline take_or_announce()
{
	do
	:: waiters -> break
#ifdef ANNOUNCE_BLINDLY
	:: atomic { !waiters && held < capacity -> held++; give(); has = true }; break
	:: !waiters && held >= capacity -> waiters = true; break
#else
	:: atomic { !waiters -> /* SEM1: CAS */
		if
		:: held < capacity -> held++; give(); has = true
		:: else -> waiters = true
		fi
	   };
		break
#endif
	od
}

inline acquire(may_give_up)
{
	/* The fast way; a compare-and-swap that fails looks again, so it is one step. */
	if
#ifdef TAKE_BLINDLY
	:: atomic { held < capacity -> held++; give(); has = true }
#else
	:: atomic { !waiters && held < capacity -> held++; give(); has = true } /* SEM1 */
#endif
	:: atomic { else }
	fi;
	if
	:: has
	:: else ->
		lock();
		take_or_announce();
		if
		:: has
		:: else -> join(me)
		fi;
		unlock();
		if
		:: has
		:: atomic { !has && granted[me] -> has = true; granted[me] = false } /* SEM2 */
		:: !has && may_give_up ->
			lock();
			if
#ifdef GIVES_UP_BLINDLY
			:: !queued[me] -> gave_up = true
#endif
			:: queued[me] -> leave(me); gave_up = true
#ifndef GIVES_UP_BLINDLY
			:: else
#endif
			fi;
			unlock();
			if
			:: gave_up
			:: atomic { !gave_up && granted[me] -> has = true; granted[me] = false }
			fi
		fi
	fi
}

active [THREADS] proctype thread()
{
	byte me = _pid, chosen = NONE, seen_held, turn;
	bool has, gave_up, seen_waiters;
	do
	:: turn < 2 ->
		turn++;
		acquire(me == 0);
		if
		:: atomic { has -> assert(out <= held); has = false }; /* SEM1 */
			release()
		:: atomic { else -> gave_up = false }
		fi
	:: else -> break
	od;
	at_work--
}

#ifdef RESIZE
/* tw_semaphore_set_capacity */
inline set_capacity(n)
{
	lock();
	capacity = n; /* CAS, until it is made */
	do
#ifdef NO_START
	:: true -> break
#else
	:: in_line > 0 && held < capacity ->
		seen_held = held;
		atomic { held = seen_held + 1; chosen = line[0]; give() }; /* word_set */
		leave(chosen);
		atomic { started[started_count] = chosen; started_count++; chosen = NONE }
	:: else -> break
#endif
	od;
	unlock();
	do
	:: started_count > 0 -> started_count--; grant(started[started_count])
	:: else -> break
	od
}

active proctype resizer()
{
	byte chosen = NONE, started[2] = NONE, started_count, seen_held;
	set_capacity(0);
	set_capacity(2)
}
#endif

active proctype at_rest()
{
	at_work == 0;
	assert(held == 0 && out == 0 && !waiters && in_line == 0) /* 1, 3 */
}
