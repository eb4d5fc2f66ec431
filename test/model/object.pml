/*
 * An object of the layers: executor/base/object.h (the word, users, the runner),
 * strand/run.c (delays, the runner), strand/strand.c (close, destroy).
 *
 * Modelled: the driver with a batch of timers, which comes at any time, as a submitter with a task
 * would before a destroy; the driver with the delay of another task; an object above, which brings
 * its work and then ends; a call that unlocks on its way; a thread that closes and destroys; and
 * the executor, with two threads, which may run the work as often as it was submitted. One step
 * stands for each access of the word, and for each change under the lock. What was taken from the
 * word is moved to the line in pieces, between which the lock is free. The memory of the word
 * stays, and is closed, when the object has been freed: a batch is refused then.
 *
 * Left out: the order in the inbox; releases; what a caller waits for (OBJECT3).
 *
 * Holds:
 *   one runner: the work is out at most once (OBJECT2)
 *   nothing is left behind: in the end each thing has run, was refused, or was cancelled, once
 *   no task begins to run once the object is closed; the work of the object above runs
 *   the object is freed once, by who drops the last user, and nobody touches it afterwards
 *   the node of a task is put once, and not while it is away
 *
 *   run: LIVE      one runner, nothing left behind
 *   run: END       the same, against a close and a destroy, and who frees
 *   mutant: LIVE REST_BY_STORE     the runner rests by a store, whatever has come meanwhile
 *       /!HAS_MAIL;/s/.\+/idle = !HAS_LINE;/
 *   mutant: LIVE REST_BY_WORD      the runner rests though a piece of what it took is not in line
 *       s/!HAS_MAIL;/!word[0] \&\& !word[1] \&\& !word[2];/
 *   mutant: LIVE ALWAYS_SUBMIT     who pushes submits the work, active or not
 *       /-> submit_work()/s/raised/!refused/
 *   mutant: LIVE RAISE_LATE        who pushes looks at ACTIVE first, and pushes then
 *   mutant: END CLOSED_LATE        who pushes looks at CLOSED first, and pushes then
 *   mutant: END RUN_ON             the runner does not ask whether the object is closed
 *       /run_thing(thing)/{n;n;N;N;d}; /&& !away);/{n;n;n;n;d}
 *   mutant: END ASIDE              close puts work of others back without raising ACTIVE
 *       /:: aside/{n;n;n;N;d}
 *   mutant: END REFUSE_USERS       a user's push is refused like any other
 *       /= true };/{n;n;n;s/.\+/refused = closed;/}
 *   mutant: END DELAY_IS_NO_USER   a delay does not count as a user
 *       /t == DELAYED/{n;n;n;d}; /:: timer_set/{n;n;n;d}; /init/{n;n;n;n;d}
 *   mutant: END UPPER_IS_NO_USER   an object above does not count as a user
 *       /ran\[WORK\]/{n;N;d}; /init/{n;n;n;n;d}
 *   mutant: END CALL_IS_NO_USER    a call that unlocks does not count as a user
 *       /^\tusers++;$/d; /^\tunlock();$/{n;n;s/drop(1,/drop(0,/}
 *   mutant: END ACTIVE_IS_NO_USER  who drops the last user does not ask whether there is a runner
 *       s/0 && !is_active;/0;/
 *   mutant: END LOOK_AFTER         who pushes looks at the object afterwards, though it has not
 *                                  raised ACTIVE
 *       /^\traised = false$/s/^/assert(!freed); /
 *   mutant: END PUT_AWAY           a task that ends while it is away is put immediately
 *       /!away ->/s/^/put = true /
 */
#ifdef LIVE
#define BRINGERS 3
#else
#define BRINGERS 5
#endif
#define TASK 0
#define DELAYED 1
#define WORK 2
#define THINGS 3

/* The word. */
bool is_active, closed, word[THINGS];

bool locked, freed;
byte users = 1; /* the creator */
bool coming[THINGS], line[THINGS];
byte ran[THINGS], ended[THINGS];
byte out, runners; /* the work: on the executor; threads that run it */
byte over;         /* bringers that are done */
bool timer_set = true, timer_claimed, delayed_ended, away = true, put;
bool called; /* before a destroy: its user sees to that */

#define HAS_MAIL (word[0] || word[1] || word[2] || coming[0] || coming[1] || coming[2])
#define HAS_LINE (line[0] || line[1] || line[2])

inline lock()
{
	atomic { !locked -> locked = true; assert(!freed) }
}

inline unlock()
{
	locked = false
}

inline submit_work()
{
	atomic { assert(!freed); out++; assert(out + runners <= 1) }
}

/* Drops n users and unlocks. */
inline drop(n, last)
{
	atomic {
		assert(!freed);
		users = users - n;
		last = users == 0 && !is_active;
		locked = false
	};
	if
	:: last -> atomic { assert(!freed); freed = true; last = false }
	:: else
	fi
}

/* One compare-and-swap. user: a closed object takes it too. */
inline push(thing, user, raised, refused)
{
#ifdef CLOSED_LATE
	refused = closed && !user;
	if
	:: !refused ->
		atomic {
			assert(!freed);
			word[thing] = true;
			raised = !is_active;
			is_active = true
		}
	:: else
	fi;
#else
#ifdef RAISE_LATE
	raised = !is_active;
	atomic { assert(!freed); word[thing] = true; is_active = true };
#else
	atomic {
		refused = closed && !user;
		if
		:: !refused ->
			assert(!freed);
			word[thing] = true;
			raised = !is_active;
			is_active = true
		:: else
		fi
	};
#endif
#endif
	if
	:: raised -> submit_work()
	:: else
	fi;
	raised = false
}

proctype batch()
{
	bool raised, refused;
	push(TASK, false, raised, refused);
	atomic {
		if
		:: refused -> ended[TASK]++
		:: else
		fi;
		over++
	}
}

/* The delay is claimed, or cancelled. */
proctype driver()
{
	bool raised, refused;
	atomic { timer_claimed = timer_set; timer_set = false };
	if
	:: timer_claimed -> push(DELAYED, true, raised, refused)
	:: else
	fi;
	atomic { over++ }
}

/* An object above: its work has run before it lets go. */
proctype upper()
{
	bool raised, refused, last;
	push(WORK, true, raised, refused);
	ran[WORK] == 1 || refused;
	lock();
	drop(1, last);
	atomic { over++ }
}

/* Takes a piece. The lock is held. */
inline gather(t)
{
	atomic {
		if
		:: !coming[0] && !coming[1] && !coming[2] ->
			coming[0] = word[0];
			coming[1] = word[1];
			coming[2] = word[2];
			word[0] = false;
			word[1] = false;
			word[2] = false
		:: else
		fi;
		t = 0;
		do
		:: t < THINGS && coming[t] ->
			coming[t] = false;
			if
			:: t == DELAYED ->
				assert(!put);
				away = false;
				users--;
				if
				:: delayed_ended -> put = true
				:: else -> line[t] = true
				fi
			:: else -> line[t] = true
			fi;
			break /* a piece: the rest comes later */
		:: t < THINGS && !coming[t] -> t++
		:: t == THINGS -> break
		od;
		t = 0
	}
}

/* The lock is held. */
inline end_thing(thing)
{
	atomic {
		ended[thing]++;
		if
		:: thing == DELAYED && away ->
			delayed_ended = true;
		:: thing == DELAYED && !away -> assert(!put); put = true
		:: else
		fi
	}
}

inline run_thing(thing)
{
	if
	:: closed && thing != WORK -> end_thing(thing)
	:: else ->
		assert(!closed || thing == WORK);
		unlock();
		ran[thing]++;
		lock();
		atomic {
			if
			:: thing == DELAYED -> assert(!put && !away); put = true
			:: else
			fi
		}
	fi
}

proctype runner()
{
	byte t, budget;
	bool idle, last;
	do
	:: atomic { out > 0 -> out--; runners++; assert(runners == 1) };
		lock();
		budget = 2;
		do
		:: budget > 0 && line[0] -> line[0] = false; budget--; run_thing(0)
		:: budget > 0 && line[1] -> line[1] = false; budget--; run_thing(1)
		:: budget > 0 && line[2] -> line[2] = false; budget--; run_thing(2)
		:: budget > 0 && !HAS_LINE && HAS_MAIL -> gather(t); unlock(); lock()
		:: else -> break
		od;
		atomic {
			idle = !HAS_LINE && !HAS_MAIL;
			if
			:: idle -> is_active = false
			:: else
			fi;
			runners--;
			budget = 0
		};
		if
		:: idle -> drop(0, last)
		:: else -> unlock(); submit_work()
		fi;
		idle = false
	:: over == BRINGERS && out == 0 && runners == 0 -> break
	od
}

/* A call that unlocks on its way: a wait, or a cancel with a release. */
proctype caller()
{
	bool last;
	lock();
	users++;
	called = true;
	unlock();
	lock();
	drop(1, last);
	over++
}

proctype closing_thread()
{
	byte t;
	bool last, aside, raised;
	called; /* no call begins beside a destroy */
	lock();
	closed = true;
	do
	:: line[TASK] -> line[TASK] = false; end_thing(TASK); unlock(); lock()
	:: line[DELAYED] -> line[DELAYED] = false; end_thing(DELAYED); unlock(); lock()
	:: line[WORK] -> line[WORK] = false; aside = true; unlock(); lock()
	:: !HAS_LINE && HAS_MAIL -> gather(t); unlock(); lock()
	:: !HAS_LINE && away && !delayed_ended && !coming[DELAYED] && !word[DELAYED] ->
		/* it is in the list of delayed ones */
		atomic {
			if
			:: timer_set ->
				timer_set = false;
				away = false;
				users--;
				ended[DELAYED]++;
				put = true
			:: else -> end_thing(DELAYED)
			fi
		};
		unlock();
		lock()
	:: else -> break
	od;
	atomic {
		if
		:: aside ->
			line[WORK] = true;
			aside = false;
			raised = !is_active;
			is_active = true
		:: else
		fi
	};
	if
	:: raised -> unlock(); submit_work(); lock(); raised = false
	:: else
	fi;
	drop(1, last);
	over++
}

init
{
	atomic {
		users++;
		users++;
		run batch();
		run driver();
		run upper();
#ifdef END
		run caller();
		run closing_thread();
#endif
		run runner();
		run runner()
	};
	_nr_pr == 1;
	byte i;
	for (i : 0 .. THINGS - 1) {
		assert(ran[i] + ended[i] == 1)
	}
	assert(put);
#ifdef END
	assert(freed && users == 0 && !is_active)
#else
	assert(!freed && users == 1 && !is_active)
#endif
}
