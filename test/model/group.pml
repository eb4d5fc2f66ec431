/*
 * A group's cancel against arm, claim, re-arm, reap and wait: wheel/group/group.h, group.c, reap.c;
 * wheel/timer/member.h.
 *
 * Modelled: one group of two members; both are armed by somebody, the second step by step. The
 * group is cancelled (CANCEL) or cancelled and waited for (WAIT), while somebody cancels the first
 * member alone. A worker claims what is armed; the callback of the first may re-arm itself once.
 * The cancel raises `queued`, pushes the group onto the stack and looks at the gate; the driver
 * takes the stack, says that it sleeps, and looks again; a reaper lowers `queued` and walks the
 * list under the lock.
 *
 * With CACHED the second member's record was cached: its bias owner arms it without the lock, and
 * the store waits in a buffer until the processor empties it, the bias owner's next atomic
 * operation, or somebody's barrier. With CACHE it is the first member's cancel that caches it, if
 * nobody waits.
 *
 * With COMPLETE the cancel closes the group and leaves a completion: whoever leaves the list last
 * queues the group again, and the reaper calls the completion when it finds nobody left. CLOSE is a
 * close of the service, which calls it too. CACHE then caches a member that has run. With EARLIER a
 * reap for an earlier cancel is under way, which came from the bias owner: it passes no barrier of
 * its own.
 *
 * Left out: pieces of a walk (one walk takes all), birth and end of the group (GROUP7), releases,
 * the word's generations (word.pml), store buffers at the gate (gate.pml).
 *
 * Holds:
 *   GROUP1  a member whose cancel answered "gone" is not run afterwards (G4)
 *   GROUP2 GROUP3 GROUP4 GROUP5  at rest no member of a cancelled group is left: each has ended,
 *                                once (G3)
 *   GROUP10 the completion of a group is called once, when no member is armed or runs; none runs or
 *   ends afterwards GROUP6  when the wait returns no callback of an older member is under way or
 *   comes, and it does return (1.3)
 *
 *   run: CANCEL         GROUP2 GROUP4 GROUP5, with an arm and two cancels
 *   run: CANCEL REARM   GROUP3 GROUP4 GROUP5, with a worker and one cancel
 *   run: WAIT     GROUP1 GROUP2 GROUP3 GROUP6
 *   run: CANCEL CACHED    GROUP4 GROUP5 GROUP8, with two cancels by another thread
 *   run: WAIT CACHED      GROUP1 GROUP6 GROUP8
 *   run: WAIT CACHE      GROUP1 GROUP6 GROUP9
 *   run: CANCEL COMPLETE   GROUP4 GROUP5 GROUP10, with an arm
 *   run: CANCEL REARM COMPLETE CLOSE   GROUP3 GROUP4 GROUP5 GROUP10, with a worker
 *   run: CANCEL REARM CACHE COMPLETE   GROUP9 GROUP10, with a worker that caches
 *   run: CANCEL CACHED COMPLETE   GROUP8 GROUP10
 *   run: CANCEL CACHED COMPLETE EARLIER   GROUP8 GROUP10, with a reap under way
 *   mutant: CANCEL REARM COMPLETE FORGET_LAST   the last to leave does not queue the group
 *   mutant: CANCEL REARM COMPLETE CLOSE TAKE_UNLOCKED   the completion is taken without the lock
 *   mutant: CANCEL REARM COMPLETE IGNORE_RUNNING   a member that runs does not hold the completion
 *                                                  up
 *   mutant: CANCEL REARM CACHE COMPLETE WAITERS_FIRST   the bias owner looks before it ends the
 *                                                       timer
 *   mutant: CANCEL CACHED COMPLETE NO_RETRACT   the bias owner's timer ends as a member, though the
 *                                               group has closed
 *   mutant: CANCEL CACHED COMPLETE NO_BARRIER   the reaper passes no barrier
 *   mutant: CANCEL CACHED COMPLETE EARLIER LOOK_LATE   the reaper looks for a completion after its
 *                                                      walk, not before its barrier
 *   mutant: CANCEL CACHED NO_BARRIER    the reaper passes no barrier
 *   mutant: CANCEL CACHED NO_LOOK       the bias owner does not look at the serial number again
 *   mutant: WAIT CACHED NO_BARRIER      the waiting thread passes no barrier
 *   mutant: WAIT CACHE WAITERS_FIRST   the bias owner looks for waiters before it ends the timer
 *   mutant: WAIT GONE_ARMED      a cancel of a stale member says "gone" and leaves it armed
 *   mutant: CANCEL TAG_UNLOCKED     an arm reads the serial number before it has the lock
 *   mutant: CANCEL REARM FORGET_MOVED     a re-arm does not look at the serial number
 *   mutant: WAIT REAP_ONCE       a re-arm that ends its timer gives up when a cancel has made it
 *                                CANCEL_PENDING meanwhile
 *   mutant: CANCEL LOWER_LATE       the reaper lowers `queued` after its walk
 *   mutant: CANCEL LOOK_BEFORE_PARK  the driver looks at the stack before it says that it sleeps
 *   mutant: WAIT FORGET_MOVED       a re-arm does not look at the serial number
 *   mutant: WAIT BELL_LATE          the bell is read after the list, without its lock
 */
#define UNBORN 0
#define ARMED 1
#define RUNNING 2
#define CANCEL_PENDING 3
#define ENDED 4
#if defined(CANCEL) && !defined(REARM) && !defined(COMPLETE)
#define CANCELS 2
#else
#define CANCELS 1
#endif

byte word[2], tag[2];
bool linked[2], gone[2], inside[2];
byte ends[2];
byte serial, waited_for; /* the wait for members older than this is over */
bool accepted; /* the bias owner has armed it, and saw no cancel */
bool buffered; /* the bias owner's store of ARMED is on its way */
bool remote, waiters;
bool closed, pending, completed; /* the group's completion */
bool lock, on_stack, parked, bell, asleep;
#ifdef EARLIER
bool queued = true, reap_entry = true;
#else
bool queued, reap_entry;
#endif
byte finish_bell;
#if defined(REARM) && defined(CLOSE)
byte at_work = 3;
#elif defined(REARM)
byte at_work = 2;
#elif defined(CANCEL)
byte at_work = 3;
#else
byte at_work = 4;
#endif
byte busy;

#define FLUSH if :: buffered -> buffered = false; word[1] = ARMED :: else fi
#ifdef NO_BARRIER
#define BARRIER skip
#else
#define BARRIER atomic { FLUSH }
#endif
#define OLDER(m) (linked[m] && tag[m] < mine && word[m] != ENDED)
#define STALE(m) (tag[m] != serial)
#define LOCK atomic { !lock -> lock = true }
#define UNLOCK lock = false

#define LEFT(m) (linked[m] && word[m] != ENDED)
#ifdef IGNORE_RUNNING
#define IS_COMPLETE (pending && !(LEFT(0) && word[0] != RUNNING) && \
	!(LEFT(1) && word[1] != RUNNING))
#else
#define IS_COMPLETE (pending && !LEFT(0) && !LEFT(1))
#endif

/* tw__group_reap_soon */
inline queue_group()
{
	atomic { was = queued; queued = true }; /* GROUP4 */
	if
	:: !was ->
		on_stack = true; /* GROUP5 */
		if
		:: parked -> atomic { was = bell; bell = true;
			if :: !was -> asleep = false :: else fi }
		:: else
		fi
	:: else
	fi
}

inline leave(m)
{
	LOCK;
	linked[m] = false;
	last = IS_COMPLETE; /* GROUP10 */
	UNLOCK;
	finish_bell++; /* GROUP6 */
#ifndef FORGET_LAST
	if
	:: last -> queue_group()
	:: else
	fi;
#endif
	atomic { last = false; was = false }
}

/* tw__group_complete */
inline complete()
{
#ifdef TAKE_UNLOCKED
	last = IS_COMPLETE;
	if
	:: last -> pending = false
	:: else
	fi;
#else
	LOCK; /* GROUP10 */
	last = IS_COMPLETE;
	if
	:: last -> atomic { pending = false; waiters = false }
	:: else
	fi;
	UNLOCK;
#endif
	if
	:: last ->
		atomic {
			assert(!completed && !inside[0] && !inside[1]); /* GROUP10 */
			assert(!(linked[0] && word[0] == ARMED) &&
				!(linked[1] && word[1] == ARMED && !STALE(1)));
			assert(!(accepted && buffered));
			completed = true
		}
	:: else
	fi;
	last = false
}

inline cas(m, from, to)
{
	if
	:: atomic { word[m] == from -> word[m] = to; won = true }
	:: atomic { word[m] != from -> won = false }
	fi
}

/* end_rest, which comes to tw__group_leave */
inline end_rest(m)
{
	atomic { ends[m]++; assert(ends[m] == 1) }; /* G3 */
	leave(m)
}

/* take_some: those found are ended after the lock has been given up */
inline walk()
{
	LOCK; /* GROUP2 */
	m = 0;
	do
	:: m < 2 ->
		taken[m] = false;
		if
		:: linked[m] && STALE(m) ->
			if
			:: atomic { word[m] == ARMED || word[m] == CANCEL_PENDING ->
				word[m] = ENDED; taken[m] = true }
			:: atomic { word[m] != ARMED && word[m] != CANCEL_PENDING }
			fi
		:: else
		fi;
		m++
	:: else -> break
	od;
	UNLOCK;
	if
	:: taken[0] -> end_rest(0)
	:: else
	fi;
	if
	:: taken[1] -> end_rest(1)
	:: else
	fi;
	atomic { m = 0; taken[0] = false; taken[1] = false }
}

init
{
	atomic {
		!lock ->
		if
		:: closed
		:: !closed -> word[0] = ARMED; linked[0] = true; tag[0] = serial
		fi;
		at_work--
	}
}

#ifdef CACHED
/* arms the second member, whose record it has cached from before the first cancel */
active proctype bias_owner()
{
	bool stale, last, was;
	atomic { !lock -> if :: closed -> goto over :: else fi; linked[1] = true; tag[1] = serial;
		word[1] = ENDED };
	if
	:: serial == tag[1] ->
		buffered = true;
#ifndef NO_LOOK
		atomic { stale = STALE(1); accepted = !stale }; /* GROUP8 */
		if
		:: stale ->
#if defined(COMPLETE) && !defined(NO_RETRACT)
			do
			:: atomic { buffered || word[1] == ARMED -> buffered = false;
				word[1] = ENDED }; leave(1); break
			:: atomic { !buffered && word[1] != ARMED -> break }
			od
#else
			do
			:: atomic { buffered || word[1] == ARMED -> buffered = false;
				word[1] = ENDED; assert(!completed) };
			   end_rest(1); break
			:: atomic { !buffered && word[1] == CANCEL_PENDING -> word[1] = ENDED };
				end_rest(1); break
			:: atomic { !buffered && (word[1] == ENDED || word[1] == RUNNING) -> break }
			od
#endif
		:: else
		fi
#endif
	:: serial != tag[1]
	fi;
over:	at_work--
}

active proctype processor()
{
end:	do
	:: atomic { buffered -> FLUSH }
	od
}
#elif !defined(REARM)
active proctype armer() /* of the second member */
{
	byte read;
#ifdef TAG_UNLOCKED
	read = serial;
	LOCK;
#else
	LOCK;
	read = serial; /* GROUP2 */
#endif
	if
	:: !closed -> atomic { tag[1] = read; linked[1] = true }; word[1] = ARMED
	:: else
	fi;
	UNLOCK;
	at_work--
}
#endif

#ifndef CANCEL
active proctype alone() /* tw_cancel of the first */
{
	bool stale, won, last, was;
	if
	:: word[0] == ARMED ->
		stale = STALE(0); /* GROUP1 */
		if
		:: stale ->
#ifdef GONE_ARMED
			gone[0] = true
#else
			cas(0, ARMED, CANCEL_PENDING);
			if
			:: won -> gone[0] = true
			:: else
			fi
#endif
		:: else ->
#ifdef WAITERS_FIRST
			stale = waiters;
#endif
			cas(0, ARMED, ENDED);
			if
			:: won ->
				gone[0] = true;
#ifdef CACHE
#ifndef WAITERS_FIRST
				stale = waiters; /* GROUP9 */
#endif
				if
				:: stale -> end_rest(0)
				:: else -> ends[0]++ /* stays on the list */
				fi
#else
				end_rest(0)
#endif
			:: else
			fi
		fi
	:: word[0] != ARMED
	fi;
	at_work--
}
#endif

active proctype canceller()
{
	byte m, n, mine, heard;
	bool taken[2], was, older, won, last;
#ifdef COMPLETE
	LOCK;
	serial++;
	closed = true;
	remote = true; /* GROUP8 */
	pending = true; /* GROUP10 */
	waiters = true; /* GROUP9 */
	UNLOCK;
	queue_group();
#elif defined(CANCEL)
	do
	:: n < CANCELS ->
		n++;
		serial++; /* GROUP1, GROUP2, GROUP3 */
		remote = true; /* GROUP8 */
		queue_group()
	:: else -> break
	od;
#else
	atomic { serial++; mine = serial };
	waiters = true; /* GROUP9 */
	BARRIER;        /* GROUP8 */
	do
	:: true ->
		LOCK;
		older = OLDER(0);
		older = older || OLDER(1); /* GROUP9 */
#ifdef BELL_LATE
		UNLOCK;
		walk();
		heard = finish_bell;
#else
		heard = finish_bell; /* GROUP6 */
		UNLOCK;
#endif
		if
		:: !older -> break
		:: else
		fi;
#ifndef BELL_LATE
		walk();
#endif
		finish_bell != heard
	od;
	assert(!(inside[0] && tag[0] < mine) && !(inside[1] && tag[1] < mine)); /* GROUP6 */
	assert(!(accepted && tag[1] < mine && (buffered || word[1] == ARMED))); /* GROUP8 */
	waited_for = mine;
#endif
	at_work--
}

/* run_entry of member w */
inline run_entry(w)
{
	if
	:: word[w] == ARMED ->
		stale = STALE(w); /* GROUP1 */
		if
		:: stale ->
			cas(w, ARMED, ENDED);
			if
			:: won -> end_rest(w)
			:: else
			fi
		:: else ->
			cas(w, ARMED, RUNNING);
			if
			:: won ->
				atomic {
					assert(!gone[w] && ends[w] == 0); /* GROUP1 */
					assert(!completed);               /* GROUP10 */
					assert(tag[w] >= waited_for);     /* GROUP6 */
					inside[w] = true
				};
				again = false;
				if
				/* tw_reset of its own */
				:: w == 0 && !rearmed && !STALE(w) -> again = true; rearmed = true
				:: skip
				fi;
				inside[w] = false;
				if
				:: again ->
					word[w] = ARMED;
#ifndef FORGET_MOVED
					if
					:: STALE(w) -> /* GROUP3: leave_armed */
						do
						:: atomic { word[w] == ARMED -> word[w] = ENDED };
							end_rest(w); break
#ifndef REAP_ONCE
						:: atomic { word[w] == CANCEL_PENDING ->
							word[w] = ENDED }; end_rest(w); break
						:: word[w] == ENDED -> break
#else
						:: word[w] != ARMED -> break
#endif
						od
					:: else
					fi
#endif
				:: else ->
#if defined(CACHE) && defined(COMPLETE)
#ifdef WAITERS_FIRST
					again = !STALE(w) && !waiters;
					word[w] = ENDED;
#else
					word[w] = ENDED;
					again = !STALE(w) && !waiters; /* GROUP9 */
#endif
					if
					:: again -> atomic { again = false; ends[w]++;
						assert(ends[w] == 1) }
					:: else -> end_rest(w)
					fi
#else
					word[w] = ENDED; end_rest(w)
#endif
				fi
			:: else
			fi
		fi
	:: word[w] != ARMED
	fi;
	atomic { won = false; again = false; stale = false }
}

#if defined(WAIT) || defined(REARM)
/* Their time comes at any moment, or never. */
active proctype worker()
{
	bool stale, won, again, rearmed, last, was;
end:	do
	:: atomic { word[0] == ARMED -> busy++ }; run_entry(0); busy--
	:: atomic { word[1] == ARMED -> busy++ }; run_entry(1); busy--
	od
}

#endif

#ifdef CANCEL
active proctype reaper()
{
	byte m;
	bool taken[2], won, was, last, completes;
end:	do
	:: atomic { reap_entry -> reap_entry = false; busy++ };
#ifdef LOWER_LATE
		walk();
		queued = false;
#else
		queued = false; /* GROUP4 */
#if defined(COMPLETE) && !defined(LOOK_LATE)
		completes = pending; /* GROUP10 */
#endif
		atomic { was = remote; remote = false }; /* GROUP8 */
		if
		:: was || completes -> BARRIER
		:: else
		fi;
		walk();
#endif
#ifdef COMPLETE
#if defined(LOOK_LATE) || defined(LOWER_LATE)
		completes = true;
#endif
		if
		:: completes -> complete()
		:: else
		fi;
		completes = false;
#endif
		busy--
	od
}

#ifdef CLOSE
active proctype closing() /* tw__groups_complete, at any moment */
{
	bool last;
	complete();
	at_work--
}
#endif

active proctype driver()
{
	bool more;
turn:	parked = false;
	atomic {
		if
		/* GROUP5; lent with the next batch */
		:: on_stack -> on_stack = false; reap_entry = true
		:: else
		fi
	};
	bell = false;
#ifdef LOOK_BEFORE_PARK
	more = on_stack;
	parked = true;
#else
	parked = true;
	more = on_stack; /* GROUP5 */
#endif
	if
	:: more -> goto turn
	:: else
	fi;
	if
	:: atomic { !bell -> asleep = true }
	:: bell -> goto turn
	fi;
	if
	:: !asleep -> goto turn
	:: atomic {
		asleep && at_work == 0 && busy == 0 && !reap_entry && !buffered ->
		/* GROUP2 GROUP3 GROUP4 GROUP5 GROUP8 */
		assert(!(linked[0] && STALE(0) && word[0] != ENDED) &&
			!(linked[1] && STALE(1) && word[1] != ENDED));
		assert(completed == closed) /* GROUP10 */
	   }
	fi
}
#endif
