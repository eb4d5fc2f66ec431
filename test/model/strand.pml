/*
 * A strand's runner: executor/strand.h (the word's transition table), strand_run.c (take, leave, go_idle), strand.c (submit, dispose,
 * submit_batch).
 *
 * Modelled: two submitters with a task each, under the lock; the driver with one batch, and the timer with one delayed task, which
 * touch nothing but the word; a disposer; and the executor, which has two threads and may run the work as often as it was submitted. One
 * step stands for each access of the word, and for each change under the lock.
 *
 * Left out: the order in the queue, cancels, releases, the memory of a destroyed strand, waiting; that the timer comes at all.
 *
 * Holds:
 *   one runner: the work is out at most once, whoever makes the strand active
 *   nothing is left behind: in the end each thing that was accepted has run, or was cancelled by dispose, once; the strand is idle
 *   nothing begins to run once the strand is disposed of
 *   nobody makes it active once it is disposed of, idle, and its timer has come: then it may be destroyed
 *
 *   run: LIVE   one runner, nothing left behind
 *   run: DISPOSE   the same, against a dispose
 *   mutant: LIVE IDLE_BY_STORE       the runner goes idle by a store, whatever has come meanwhile
 *   mutant: LIVE ALWAYS_SUBMIT       whoever brings something submits the work, active or not
 *   mutant: LIVE GATHER_LATE         the runner gathers the mail, and then takes off what is in the word
 *   mutant: DISPOSE MAIL_AFTER_END   the driver looks whether the strand is disposed of, and then pushes
 *   mutant: DISPOSE RUN_ON           the runner does not ask whether the strand is disposed of
 *   mutant: LIVE SUBMIT_UNLOCKED     a submitter looks whether the strand is active before it takes the lock
 */
#ifdef DISPOSE
#define BRINGERS 5
#else
#define BRINGERS 4
#endif
#define BATCH 2 /* things: 0, 1 the submitters' tasks */
#define DELAYED 3
#define THINGS 4

/* The word. */
bool is_active, due, disposed, mail;

bool locked;
bool queued[THINGS];
bool in_heap = true;
byte ran[THINGS], cancelled[THINGS], refused[THINGS];
byte out;     /* how often the work is out on the executor */
byte runners; /* that are inside */
bool timer_over, destroyed;
byte over;    /* bringers that are done */

inline lock()
{
	atomic { !locked -> locked = true }
}

inline unlock()
{
	locked = false
}

inline submit_work()
{
	atomic { out++; assert(out + runners <= 1) }
}

proctype submitter(byte thing)
{
	bool wakes;
#ifdef SUBMIT_UNLOCKED
	wakes = !is_active;
#endif
	lock();
	if
	:: disposed -> refused[thing]++
	:: !disposed ->
		queued[thing] = true;
#ifdef SUBMIT_UNLOCKED
		is_active = true
#else
		atomic { wakes = !is_active; is_active = true }
#endif
	fi;
	unlock();
	if
#ifdef ALWAYS_SUBMIT
	:: !refused[thing] -> submit_work()
	:: refused[thing]
#else
	:: wakes -> submit_work()
	:: !wakes
#endif
	fi;
	atomic { over++; wakes = false }
}

/* One compare-and-swap: the look at DISPOSED, and the push. */
proctype driver()
{
	bool wakes, gone;
#ifdef MAIL_AFTER_END
	gone = disposed;
	atomic {
		if
		:: !gone -> assert(!destroyed); mail = true; wakes = !is_active; is_active = true
		:: gone
		fi
	};
#else
	atomic {
		gone = disposed;
		if
		:: !gone -> assert(!destroyed); mail = true; wakes = !is_active; is_active = true
		:: gone
		fi
	};
#endif
	if
	:: gone -> cancelled[BATCH]++ /* passed on, ended as cancelled */
	:: !gone
	fi;
	if
	:: wakes -> submit_work()
	:: !wakes
	fi;
	atomic { over++; wakes = false; gone = false }
}

proctype timer()
{
	bool wakes;
	atomic { wakes = !is_active; is_active = true; due = true; timer_over = true };
	if
	:: wakes -> submit_work()
	:: !wakes
	fi;
	atomic { over++; wakes = false }
}

/* The lock is held. Moves mail and what is due. */
inline gather()
{
#ifdef GATHER_LATE
	had_mail = mail;
	had_due = due;
	atomic { mail = false; due = false };
#else
	atomic { had_mail = mail; had_due = due; mail = false; due = false };
#endif
	atomic {
		if
		:: had_mail -> queued[BATCH] = true
		:: else
		fi;
		if
		:: had_due && in_heap -> in_heap = false; queued[DELAYED] = true
		:: else
		fi;
		had_mail = false;
		had_due = false
	}
}

inline take(thing)
{
	if
	:: atomic { queued[0] -> thing = 0; queued[0] = false }
	:: atomic { queued[1] -> thing = 1; queued[1] = false }
	:: atomic { queued[2] -> thing = 2; queued[2] = false }
	:: atomic { queued[3] -> thing = 3; queued[3] = false }
	:: atomic { !queued[0] && !queued[1] && !queued[2] && !queued[3] -> thing = THINGS }
	fi
}

proctype runner()
{
	byte thing, budget;
	bool had_mail, had_due, idle, end;
loop:	do
	:: atomic { out > 0 -> out--; runners++; assert(runners == 1) };
		budget = 2;
		lock();
		do
		:: budget > 0 ->
			budget--;
			gather();
			take(thing);
			if
			:: thing == THINGS -> break
			:: else
			fi;
#ifdef RUN_ON
			end = false;
#else
			end = disposed;
#endif
			assert(end || !disposed);
			unlock();
			if
			:: end -> cancelled[thing]++
			:: else -> ran[thing]++
			fi;
			lock()
		:: budget == 0 -> break
		od;
		atomic { idle = !(queued[0] || queued[1] || queued[2] || queued[3]) };
		if
		:: idle ->
#ifdef IDLE_BY_STORE
			atomic { is_active = false; runners-- }
#else
			atomic {
				idle = !mail && !due;
				if
				:: idle -> is_active = false
				:: else
				fi;
				runners-- /* idle: another may come, and waits for the lock; else it is this one that submits the work */
			}
#endif
		:: else -> runners--
		fi;
		unlock();
		if
		:: !idle -> submit_work()
		:: idle
		fi;
		atomic { thing = 0; budget = 0; idle = false; end = false }
	:: over == BRINGERS && out == 0 && runners == 0 -> break
	od
}

proctype disposer()
{
	bool had_mail, had_due;
	lock();
	disposed = true;
	gather();
	atomic {
		byte t;
		t = 0;
		do
		:: t < THINGS ->
			if
			:: queued[t] -> queued[t] = false; cancelled[t]++
			:: else
			fi;
			t++
		:: t == THINGS -> break
		od;
		t = 0
	};
	unlock(); /* for the releases */
	lock();
	atomic {
		if
		:: in_heap -> in_heap = false; cancelled[DELAYED]++
		:: else
		fi
	};
	unlock();
	atomic { !is_active && timer_over && !locked -> destroyed = true }; /* its executor may be gone from here on */
	over++
}

init {
	atomic {
		run submitter(0);
		run submitter(1);
		run driver();
		run timer();
		run runner();
		run runner();
#ifdef DISPOSE
		run disposer()
#endif
	};
	/* Left to itself the executor brings all to its end. */
	atomic {
		over == BRINGERS && out == 0 && runners == 0 && !is_active ->
		assert(!mail && !due);
		assert(ran[0] + cancelled[0] + refused[0] == 1);
		assert(ran[1] + cancelled[1] + refused[1] == 1);
		assert(ran[2] + cancelled[2] == 1);
		assert(ran[3] + cancelled[3] == 1)
	}
}
