/*
 * A group's list against arm, claim, re-arm, cancels, waits, completion and destroy:
 * wheel/timer/group.h, group.c; wheel/run/work.c.
 *
 * Modelled: one group. The first member is armed, the second is armed step by step. A worker claims
 * what is armed; the callback of the first may re-arm itself once. With RELEASED the first has a
 * release. A walk ends one member a hold. A slot that is given back is lost: only the list must not
 * name it. What a process does besides:
 *   CANCEL      two cancels of the group, with DESTROY one; somebody cancels the first member
 *               alone
 *   WAIT        a cancel that waits, beside one that does not
 *   COMPLETE    the group is closed with a completion. The driver brings its work to somebody
 *   CLOSE       a close of the service calls the completion if it is due
 *   DESTROY     the group is destroyed, and another one is born at its index, with a member
 *
 * Left out: far serial numbers; the word's generations and marks (word.pml); the stack of works and
 * the gate (works.pml, gate.pml).
 *
 * Holds:
 *   GROUP1  after a cancel has returned no member that had entered before it is claimed, and its
 *           release has returned if the cancel ended it (1.6)
 *   GROUP2  when a wait returns, no callback or release of an older member is under way or comes,
 *           and each of their words is free; it does return
 *   GROUP3  the completion is called once, when no member is left; its work comes back
 *           Each member ends once (G3), and has left the list when its slot goes back. The index
 *           goes to another group once, when it is dead and empty and no work is out. No cancel of
 *           an earlier group ends a member of a later one.
 *
 *   run: CANCEL           GROUP1
 *   run: CANCEL RELEASED  GROUP1
 *   run: WAIT             GROUP1 GROUP2
 *   run: WAIT RELEASED    GROUP1 GROUP2
 *   run: COMPLETE         GROUP3
 *   run: COMPLETE RELEASED CLOSE   GROUP3
 *   run: COMPLETE CLOSE DESTROY    GROUP3, and births
 *   run: CANCEL RELEASED DESTROY   GROUP1, and births
 *   mutant: CANCEL ENTER_UNLOCKED  the word is stored after the lock was given up
 *       /= read };/{n;N;s/.\+/UNLOCK; word[1] = ARMED/}
 *   mutant: CANCEL SERIAL_EARLY    an entering reads the serial number before it has the lock
 *   mutant: CANCEL FORGET_RUNNING  a walk does not mark a member that runs
 *       /!= ARMED ->/{n;N;N;N;N;d}
 *   mutant: CANCEL LOOK_ONCE       a walk whose compare-and-swap fails goes on to the next member
 *       /!= ARMED ->/s/$/ break/
 *   mutant: CANCEL LEAVE_LATE      the slot is given back before it leaves the list
 *       /inline leave(m)/{n;s/$/ give_back(m);/}; /^\tgive_back(m)$/d
 *   mutant: CANCEL RELEASED WALK_LATER   a member with a release stays in the first list while it
 *                                        is owed, and the next cancel takes it for one of its own
 *       s/listed\[m\] = ENDING; ended/ended/
 *       /seen == RUNNING/s/^/:: seen == RELEASING -> atomic { ended = !owed; owed = true }; break /
 *   mutant: WAIT LEAVE_EARLY       a member leaves before its word is free
 *       /word\[m\] = FREE;/{N;s/.\+/leave(m); word[m] = FREE/}
 *       /leave(w)/s/.\+/leave(w); word[w] = FREE/
 *   mutant: WAIT RELEASED OWED_LEAVES   a member whose release is owed has left the group
 *       s/ENDING;/UNLISTED;/
 *   mutant: WAIT BELL_LATE         the bell is read without the lock
 *       s/heard =/UNLOCK; &/; /^\t\tUNLOCK;$/d
 *   mutant: COMPLETE FORGET_LAST   the member that leaves last does not look for a completion
 *       /= (EMPTY/s/$/ completes = completes \&\& tag[0] == 0;/
 *   mutant: COMPLETE OPEN          close_then does not close the group
 *       /= GIVEN;/{n;d}
 *   mutant: COMPLETE CLOSE TAKE_UNLOCKED   the work's run and a close look without the lock
 *       /was_called =/d; /end:.out;/s/$/ was_called = (completion == CALLED);/; /== DUE);/d
 *       /bool due;/s/$/ due = (completion == DUE);/
 *   mutant: COMPLETE CLOSE DESTROY WORK_OUT   the index goes back though the work is out
 *   mutant: CANCEL DESTROY ANY_LEFT   the index goes back though members are left
 *   mutant: CANCEL RELEASED DESTROY SET_BACK   the serial number is set back for the next group
 *       s/serial + 1/1/
 */
#define FREE 0
#define ARMED 1
#define RUNNING 2
#define RUNNING_ENDED 3
#define RELEASING 4

#define NONE 0
#define GIVEN 1
#define DUE 2
#define CALLED 3
#define OVER 4

#define UNLISTED 0
#define LISTED 1
#define ENDING 2

/* The third is a member of the next group. */
byte word[3], listed[3], tag[3], ends[3];
bool inside[3]; /* its callback or release is under way */
byte serial = 1, cancelled_upto, waited_for;
byte completion, calls, births, waiters, bell;
bool lock, closed, dead, out;
byte at_work = 3;

#define LOCK atomic { !lock -> lock = true }
#define UNLOCK lock = false
#define LEFT_UPTO(s) ((listed[0] && tag[0] <= s) || (listed[1] && tag[1] <= s) || \
	(listed[2] && tag[2] <= s))
#define EMPTY (!listed[0] && !listed[1] && !listed[2])
#ifdef RELEASED
#define RELEASES(m) (m == 0)
#else
#define RELEASES(m) false
#endif

/* tw__group_left_slowly: gives the lock up */
inline left(s)
{
	atomic {
		assert(lock);
		tells = (waiters > 0 && !LEFT_UPTO(s));
		completes = (EMPTY && completion == GIVEN);
		if
		:: completes -> completion = DUE
		:: else
		fi;
#ifdef ANY_LEFT
		vacates = (dead && (completion == NONE || completion == OVER));
#elif defined(WORK_OUT)
		vacates = (dead && EMPTY && completion != GIVEN && completion != DUE);
#else
		vacates = (dead && EMPTY && (completion == NONE || completion == OVER));
#endif
		serial = (vacates -> serial + 1 : serial);
		completion = (vacates -> NONE : completion);
		UNLOCK
	};
	if
	:: tells -> bell++ /* GROUP2 */
	:: else
	fi;
	if
	:: vacates -> atomic { births++; assert(births == 1) }
	:: else
	fi;
	if
	:: completes -> atomic { assert(!out); out = true }
	:: else
	fi;
	atomic { tells = false; completes = false; vacates = false }
}

inline give_back(m)
{
	atomic { ends[m]++; assert(ends[m] == 1); assert(!listed[m]) }
}

/* tw__group_leave, of a member whose word the process has made free, or makes free here */
inline leave(m)
{
	LOCK;
	listed[m] = UNLISTED;
	left(tag[m]);
	give_back(m)
}

/* tw__release */
inline release(m)
{
	atomic { assert(!inside[m]); inside[m] = true };
	inside[m] = false;
	word[m] = FREE;
	leave(m)
}

/* One member of a hold. */
inline look(m)
{
	if
	:: !ended && listed[m] && (listed[m] == LISTED) && tag[m] <= mine ->
		seen = word[m];
		do
		:: seen == ARMED ->
			if
			:: atomic { word[m] == ARMED && !RELEASES(m) -> word[m] = FREE };
				atomic { listed[m] = UNLISTED; ended = true; freed = m + 1 }; break
			:: atomic { word[m] == ARMED && RELEASES(m) -> word[m] = RELEASING };
				atomic { listed[m] = ENDING; ended = true; owed = true }; break
			:: atomic { word[m] != ARMED -> seen = word[m] };
			fi
		:: seen == RUNNING ->
			if
			:: atomic { word[m] == RUNNING -> word[m] = RUNNING_ENDED }; break
			:: atomic { word[m] != RUNNING -> seen = word[m] }
			fi
		:: else -> break
		od
	:: else
	fi
}

/* the holds of tw__group_cancel */
inline walk()
{
	more = true;
	do
	:: more ->
		LOCK; /* GROUP1 */
		look(0);
		look(1);
		look(2);
		more = ended;
		if
		:: freed -> left(tag[freed - 1])
		:: else -> UNLOCK
		fi;
		if
		:: freed -> give_back(freed - 1)
		:: else
		fi;
		atomic { ended = false; freed = 0; seen = 0 }
	:: else -> break
	od;
	if
	:: owed -> release(0); owed = false
	:: else
	fi
}

/* tw__group_cancel */
inline cancel_group(dies)
{
	LOCK;
	atomic {
		alive = (!dead && births == 0);
		if
		:: alive ->
			mine = serial; serial++; closed = closed || dies; dead = dies
		:: else -> UNLOCK
		fi
	};
	if
	:: alive ->
		left(mine);
		walk();
		atomic {
			if
			:: mine > cancelled_upto -> cancelled_upto = mine
			:: else
			fi;
			assert(word[0] != ARMED || tag[0] > mine); /* GROUP1 */
			assert(word[1] != ARMED || tag[1] > mine)
		}
	:: else
	fi
}

#define LOCALS bool tells, completes, vacates, more, ended, owed, alive; byte freed, seen, mine

init
{
	atomic { word[0] = ARMED; listed[0] = LISTED; tag[0] = serial; }
}

active proctype armer() /* of the second member */
{
	byte read = serial;
	tag[0] > 0;
	LOCK;
#ifndef SERIAL_EARLY
	read = serial; /* GROUP1 */
#endif
	if
	:: !closed && births == 0 ->
		atomic { assert(!listed[1]); listed[1] = LISTED; tag[1] = read };
		word[1] = ARMED;
		UNLOCK
	:: else -> UNLOCK
	fi;
	at_work--
}

/* run_entry of member w */
inline run_entry(w)
{
	if
	:: atomic { word[w] == ARMED -> word[w] = RUNNING;
		assert(tag[w] > cancelled_upto);   /* GROUP1 */
		assert(calls == 0 && ends[w] == 0); /* GROUP3 */
		inside[w] = true };
		inside[w] = false;
		if
		:: w == 0 && !rearmed ->
			rearmed = true;
			if
			:: atomic { word[w] == RUNNING -> word[w] = ARMED }; goto again
			:: atomic { word[w] != RUNNING }
			fi
		:: true
		fi;
		if
		:: RELEASES(w) -> word[w] = RELEASING; release(w)
		:: else ->
			word[w] = FREE; leave(w)
		fi
	:: atomic { word[w] != ARMED }
	fi
}

/* Their time comes at any moment, or never. */
active proctype worker()
{
	bool rearmed;
	LOCALS;
again:
end:	do
	:: word[0] == ARMED -> run_entry(0)
	:: word[1] == ARMED -> run_entry(1)
	od
}

#ifdef CANCEL
active proctype alone() /* tw_cancel of the first */
{
	LOCALS;
	if
	:: atomic { word[0] == ARMED && !RELEASES(0) -> word[0] = FREE }; leave(0)
	:: atomic { word[0] == ARMED && RELEASES(0) -> word[0] = RELEASING }; release(0)
	:: true
	fi;
	at_work--
}

#ifdef DESTROY
active proctype canceller()
#else
active [2] proctype canceller()
#endif
{
	LOCALS;
	tag[0] > 0;
	cancel_group(false);
	at_work--
}
#endif

#ifdef WAIT
active proctype canceller()
{
	LOCALS;
	tag[0] > 0;
	cancel_group(false);
	at_work--
}

active proctype waiter()
{
	byte heard;
	LOCALS;
	tag[0] > 0;
	cancel_group(false);
	LOCK;
	waiters++;
	do
	:: LEFT_UPTO(mine) ->
		heard = bell; /* GROUP2 */
		UNLOCK;
		bell != heard;
		LOCK
	:: else -> break
	od;
	waiters--;
	UNLOCK;
	atomic {
		assert(!(tag[0] <= mine && inside[0]) && !(tag[1] <= mine && inside[1]));
		assert(!(tag[0] <= mine && word[0] != FREE)); /* GROUP2 */
		assert(!(tag[1] && tag[1] <= mine && word[1] != FREE))
	};
	at_work--
}
#endif

#ifdef COMPLETE
inline call()
{
	atomic {
		calls++;
		assert(calls == 1); /* GROUP3 */
		assert(word[0] == FREE && word[1] == FREE && !inside[0] && !inside[1])
	}
}

active proctype closer() /* tw_group_close */
{
	LOCALS;
	tag[0] > 0;
	LOCK;
	atomic {
		alive = (!dead && births == 0);
		if
		:: alive -> completion = GIVEN; mine = serial; serial++;
			closed = true
		:: else -> UNLOCK
		fi
	};
	if
	:: alive -> left(mine); walk()
	:: else
	fi;
	at_work--
}

active proctype executor() /* completion_run */
{
	bool was_called;
	LOCALS;
end:	out;
	LOCK; /* GROUP3 */
	was_called = (completion == CALLED);
	atomic { assert(completion == DUE || completion == CALLED);
		completion = OVER; out = false };
	left(serial);
	if
	:: was_called
	:: else -> call()
	fi
}

#ifdef CLOSE
active proctype close() /* complete_here, at any moment */
{
	bool due;
	LOCK; /* GROUP3 */
	due = (completion == DUE);
	if
	:: due -> completion = CALLED
	:: else
	fi;
	UNLOCK;
	if
	:: due -> call()
	:: else
	fi
}
#endif
#endif

#ifdef DESTROY
active proctype destroyer()
{
	LOCALS;
	tag[0] > 0;
	cancel_group(true)
}

active proctype next_group()
{
end:	births == 1;
	atomic {
		assert(EMPTY && !out && dead && completion == NONE);
		dead = false; closed = false
	};
	LOCK;
	atomic { listed[2] = LISTED; tag[2] = serial };
	word[2] = ARMED;
	UNLOCK;
	/* no cancel of its own comes: the others' handles are void */
}
#endif

active proctype rest()
{
end:	timeout;
	assert(EMPTY || listed[2] == LISTED || word[0] == ARMED || word[1] == ARMED);
	assert(ends[0] <= 1 && ends[1] <= 1 && ends[2] == 0);
	assert(!listed[0] || word[0] == ARMED);
	assert(!listed[1] || word[1] == ARMED);
	assert(!(listed[0] && tag[0] <= cancelled_upto));
	assert(!(listed[1] && tag[1] <= cancelled_upto));
#ifdef COMPLETE
	assert(!out && (calls == 1 || completion == NONE)) /* GROUP3 */
#endif
#ifdef DESTROY
	assert(births == 1 && word[2] == ARMED)
#endif
}
