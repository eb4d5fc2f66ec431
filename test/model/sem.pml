/*
 * The semaphore's word: executor/semaphore/semaphore.c: the fast way, a compare-and-swap, beside
 * the lock that all else takes.
 *
 * Modelled: a capacity of one; threads that acquire and release twice, the first of them perhaps
 * for a limited time only, so that it gives up. THREE threads; HEAVY: three, a capacity of two, and
 * two of them want both permits at a time, which each gives back one by one; or RESIZE: two, and
 * one who sets the capacity to none, and then to two. With the lock the word is changed as in the
 * code: by a load and a store of the whole where WAITERS is set, by a compare-and-swap where it is
 * not.
 *
 * Left out: functions in line, which go the same ways under the lock; what wakes a thread (the
 * futex). Program order stands for the release and acquire of SEM1 and SEM2.
 *
 * Holds (invariants of the file's first comment):
 *   SEM1     never more permits are given than there are: but for debts, held is at most the
 *            capacity; each that is out is counted
 *   1, 2   with the lock free: WAITERS if and only if somebody is in line, and then the oldest does
 *          not fit
 *   3      permits that come back make held smaller, and start the oldest that fit; nobody waits
 *          for what is there: else this would stand still
 *   4      nobody is started before one who came to the line earlier: so the heavy one waits at
 *          most for those before it
 *
 *   run: THREE    SEM1, 1 2 3 4
 *   run: HEAVY    SEM1, 1 2 3 4
 *   run: RESIZE   SEM1, 1 2 3 4
 *   mutant: THREE ANNOUNCE_BLINDLY   WAITERS is set by a load and a store
 *   mutant: THREE RELEASE_BLINDLY    a release on the fast way does not look for WAITERS
 *   mutant: RESIZE TAKE_BLINDLY      a take on the fast way does not look for WAITERS
 *   mutant: THREE NOT_COUNTED        a waiter that is started does not make held larger
 *       /seen_held +/d
 *   mutant: THREE STAYS_ANNOUNCED    the last who leaves the line leaves WAITERS behind
 *       /in_line--;/{n;n;N;N;N;d}
 *   mutant: THREE GIVES_UP_BLINDLY   one whose time is up does not look whether permits are on
 *                                    their way
 *       /queued\[me\]/s/^/:: !queued[me] -> gave_up = true /; /^\t\t\t:: else$/d
 *   mutant: RESIZE NO_START          a capacity that grows starts nobody
 *       /^\tstart();$/d
 *   mutant: RESIZE START_BLINDLY     permits that come back start the oldest while there is a debt
 *       /FITS held/s/.\+/#define FITS held > 0/
 *   mutant: HEAVY LIGHT_FIRST        permits that come back start the first that fits, past one
 *                                    that does not: the heavy one starves
 *   mutant: HEAVY LEAVES_QUIETLY     one whose time is up starts nobody behind it
 *       /leave(me);/{n;d}
 */
#define NONE 9
#ifdef RESIZE
#define THREADS 2
#else
#define THREADS 3
#endif

/* The word. */
#ifdef HEAVY
byte held, capacity = 2;
#define NEED(who) (who < 2 -> 2 : 1)
#else
byte held, capacity = 1;
#define NEED(who) 1
#endif
bool waiters;

bool locked;
byte line[3] = NONE, in_line; /* in the order in which they came */
bool granted[3], queued[3];
byte out;                     /* permits that somebody has, or that are on their way to one */
byte at_work = THREADS;

/*
 * Permits go to somebody: in the name of the word that says so. place: in the line; 0 for one that
 * is not in line
 */
inline give(who, place)
{
	out = out + NEED(who);
	assert(out <= capacity); /* SEM1 */
	assert(place == 0)       /* 4: nobody in line is older */
}

inline lock()
{
	atomic { !locked -> locked = true }
}

inline unlock()
{
	/* 1, 2 */
	atomic { assert(waiters == (in_line > 0) && (!waiters || held + NEED(line[0]) > capacity));
		locked = false }
}

inline join(w)
{
	atomic { line[in_line] = w; in_line++; queued[w] = true }
}

inline leave(w)
{
	seen_held = held; /* permits_set: a load, and a store of the whole word */
	atomic {
		if
		:: line[0] == w -> line[0] = line[1]; line[1] = line[2]
		:: line[0] != w && line[1] == w -> line[1] = line[2]
		:: else
		fi;
		line[2] = NONE;
		in_line--;
		queued[w] = false;
		if
		:: in_line == 0 -> waiters = false; held = seen_held
		:: else
		fi;
		seen_held = 0
	}
}

/* The place in line of the next to be started; in_line: there is none. */
inline choose()
{
	place = 0;
#ifdef LIGHT_FIRST
	do
	:: place < in_line && held + NEED(line[place]) > capacity -> place++
	:: else -> break
	od
#endif
}

#define FITS held + NEED(line[place]) <= capacity

/* choose_and_unlock: under the lock */
inline start()
{
	do
	:: true ->
		atomic { choose() };
		if
		:: atomic { place < in_line && FITS -> chosen = line[place]; seen_held = held };
			atomic {
				held = seen_held + NEED(chosen); /* permits_set */
				give(chosen, place);
				seen_held = 0
			};
			leave(chosen);
			atomic { granted[chosen] = true; chosen = NONE }
		:: atomic { else -> place = 0 }; break
		fi
	od
}

/* give_back, and start: under the lock */
inline pass_on()
{
	do
	:: atomic { !waiters && held > 0 -> held--; break } /* SEM1: CAS */
	:: waiters ->
		seen_held = held;
		atomic { held = seen_held - 1; seen_held = 0 }; /* permits_set */
		start();
		break
	od
}

/* One permit. */
inline release()
{
	/* the permit is nobody's; load */
	atomic { out--; seen_held = held; seen_waiters = waiters };
	do
#ifdef RELEASE_BLINDLY
	:: true ->
#else
	:: atomic { seen_waiters -> seen_waiters = false }; seen_held = 0;
		lock();
		pass_on();
		unlock();
		break
	:: !seen_waiters ->
#endif
		if
#ifdef RELEASE_BLINDLY
		:: atomic { held == seen_held -> assert(held > 0); held--; seen_held = 0;
			seen_waiters = false }; break
		:: atomic { else -> seen_held = held }
#else
		/* SEM1: CAS */
		:: atomic { held == seen_held && !waiters -> assert(held > 0); held--;
			seen_held = 0 }; break
		:: atomic { else -> seen_held = held; seen_waiters = waiters }
#endif
		fi
	od
}

/* semaphore_join: under the lock, less the line */
inline announce()
{
#ifdef ANNOUNCE_BLINDLY
	seen_held = held;
	atomic { held = seen_held; seen_held = 0; waiters = true }
#else
	waiters = true /* or */
#endif
}

inline acquire(may_give_up)
{
	/* The fast way; a compare-and-swap that fails looks again, so it is one step. */
	if
#ifdef TAKE_BLINDLY
	:: atomic { held + NEED(me) <= capacity -> held = held + NEED(me); give(me, in_line);
		has = true }
#else
	/* SEM1 */
	:: atomic { !waiters && held + NEED(me) <= capacity -> held = held + NEED(me);
		give(me, in_line); has = true }
#endif
	:: atomic { else }
	fi;
	if
	:: has
	:: else ->
		lock();
		announce();
		join(me);
		start();
		unlock();
		if
		:: atomic { !has && granted[me] -> has = true; granted[me] = false } /* SEM2 */
		:: !has && may_give_up ->
			lock();
			if
			:: queued[me] ->
				leave(me);
				start();
				gave_up = true
			:: else
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
	byte me = _pid, chosen = NONE, seen_held, turn, place;
	bool has, gave_up, seen_waiters;
	do
	:: turn < 2 ->
		turn++;
		acquire(me == 0);
		if
		:: atomic { has -> assert(out <= held); has = false }; /* SEM1: each is counted */
			turn = turn + 4 * NEED(me);
			do
			:: turn >= 4 -> turn = turn - 4; release()
			:: else -> break
			od
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
	start();
	unlock()
}

active proctype resizer()
{
	byte chosen = NONE, place, seen_held;
	set_capacity(0);
	set_capacity(2)
}
#endif

active proctype at_rest()
{
	at_work == 0;
	assert(held == 0 && out == 0 && !waiters && in_line == 0) /* 1, 3 */
}
