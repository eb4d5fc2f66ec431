/*
 * A strand's runner: executor/strand/internal.h (the word's transition table), strand/run.c (take,
 * leave, go_idle), strand/cancel.c (close), strand.c (submit, destroy, submit_batch).
 *
 * Modelled: submitters with a task each, under the lock; the driver with one batch, and the timer
 * with one delayed task, which touch nothing but the word; a closing thread; and the executor,
 * which has two threads and may run the work as often as it was submitted. One step stands for each
 * access of the word, and for each change under the lock. With DESTROY the strand is destroyed, by
 * a thread that may wait or may not, while a layer that stood on it, and was destroyed before it,
 * still brings its work: at any time, as the driver its batch.
 *
 * Left out: the order in the queue, cancels, releases, waiting for them; that the timer comes at
 * all; the list on which memory stays that the driver may still look at: the model knows only that
 * nobody changes what has gone.
 *
 * Holds:
 *   one runner: the work is out at most once, whoever makes the strand active nothing is left
 *   behind: in the end each thing that was accepted has run, or was cancelled by close, once; the
 *   strand is idle (2 of the
 *       specification: never lost; 4.2)
 *   nothing begins to run once the strand is closed, but work of layers, which has its run, on the
 *   strand or by the driver, once S5  who destroys, or the last runner, makes it go, once; nobody
 *   changes it afterwards, and no runner, timer or closing thread looks at it (strand.h,
 *       "who may look", and tw_strand_destroy)
 *   DUE without ACTIVE is nothing but gone
 *
 *   run: LIVE   one runner, nothing left behind
 *   run: CLOSE   the same, against a close
 *   run: DESTROY   the same, and S5, against a destroy
 *   mutant: LIVE IDLE_BY_STORE       the runner goes idle by a store, whatever has come meanwhile
 *   mutant: LIVE ALWAYS_SUBMIT       whoever brings something submits the work, active or not
 *   mutant: LIVE GATHER_LATE         the runner gathers the inbox, and then takes off what is in
 *                                    the word
 *   mutant: LIVE FORGET_OVERDUE      the runner goes idle though a piece of what is due is left in
 *                                    the heap
 *   mutant: LIVE SUBMIT_UNLOCKED     a submitter looks whether the strand is active before it takes
 *                                    the lock
 *   mutant: CLOSE RUN_ON             the runner does not ask whether the strand is closed before it
 *                                    moves what is due
 *   mutant: CLOSE APPEND_ALL         the runner does not ask whether the strand is closed after it
 *                                    has reversed the inbox
 *   mutant: CLOSE NOT_TAKEN          close leaves the queue to the runner
 *   mutant: DESTROY APPEND_ASLEEP    close appends work of a layer, and the runner has gone idle
 *                                    while close reversed the inbox
 *   mutant: DESTROY INBOX_AFTER_END   the driver looks whether the strand is closed, and then
 *                                     pushes
 *   mutant: DESTROY IDLE_ONLY        who makes it go leaves it idle, as if it were to be used again
 *   mutant: DESTROY GO_BY_STORE      who destroys finds it quiet, and then makes it go by a store
 *   mutant: DESTROY FORGET_TIMER     the last runner does not ask whether the timer is still to
 *                                    come
 *   mutant: DESTROY LEAVE_UNTOLD     who destroys finds it busy, and does not say so
 *   mutant: DESTROY WORK_ENDED       work of a layer is ended like a batch once the strand is
 *                                    closed
 */
#ifdef LIVE
#define BRINGERS 4
#else
#define BRINGERS 5
#endif
/* things: 0, 1 the submitters' tasks (with DESTROY the second is the layer's work) */
#define BATCH 2
#define DELAYED 3
#define THINGS 4

#ifdef DESTROY
#define IS_WORK(thing) (thing == 1)
#define AT_REST freed
#else
#define IS_WORK(thing) false
#define AT_REST true
#endif

/* The word. */
bool is_active, due, closed, inbox, work_inbox;

/* Gone: nobody's any more. */
#define GONE (closed && due && !is_active)

bool locked;
bool queued[THINGS];
bool in_heap = true;
byte ran[THINGS], cancelled[THINGS], refused[THINGS];
byte out;     /* how often the work is out on the executor */
byte runners; /* that are inside */
byte sent_home; /* the layer's work, by the driver */
bool timer_set = true; /* delays->timer */
bool overdue;          /* what is due is moved in pieces, and some is left */
bool postponed;
bool timer_claimed;
bool left;    /* DESTROYED: whoever makes it idle frees it */
bool freed;
bool submitted; /* destroy comes after submits: who uses the strand sees to that */
byte over;    /* bringers that are done */

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
	:: closed -> refused[thing]++
	:: !closed ->
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
	atomic { over++; submitted = true; wakes = false }
}

/* One compare-and-swap: the look at CLOSED, and the push. */
proctype driver()
{
	bool wakes, gone;
#ifdef INBOX_AFTER_END
	gone = closed;
	atomic {
		if
		:: !gone -> assert(!freed); inbox = true; wakes = !is_active; is_active = true
		:: gone
		fi
	};
#else
	atomic {
		gone = closed;
		if
		:: !gone -> assert(!freed); inbox = true; wakes = !is_active; is_active = true
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

/* A layer's work: only what is gone does not take it. */
proctype layer()
{
	bool wakes;
	atomic {
		if
		:: !GONE -> assert(!freed); work_inbox = true; wakes = !is_active; is_active = true
		:: GONE -> sent_home++
		fi
	};
	if
	:: wakes -> submit_work()
	:: !wakes
	fi;
	atomic { over++; wakes = false }
}

/* Claimed before a cancel came, or not at all. */
proctype timer()
{
	bool wakes;
	atomic { timer_claimed = timer_set };
	if
	:: timer_claimed ->
		atomic { assert(!freed); wakes = !is_active; is_active = true; due = true };
		if
		:: wakes -> submit_work()
		:: !wakes
		fi
	:: !timer_claimed
	fi;
	atomic { over++; wakes = false }
}

/* The lock is held, and free while the inbox is reversed. Moves the inbox and what is due. */
inline gather()
{
#ifdef GATHER_LATE
	atomic { had_mail = inbox; had_work = work_inbox };
	had_due = due;
	atomic { inbox = false; work_inbox = false; due = false };
#else
	atomic { had_mail = inbox; had_work = work_inbox; had_due = due; inbox = false;
		work_inbox = false; due = false };
#endif
	if
	:: had_mail || had_work -> unlock(); lock()
	:: else
	fi;
	atomic {
		if
#ifdef APPEND_ALL
		:: had_mail -> queued[BATCH] = true
#else
		:: had_mail && !closed -> queued[BATCH] = true
		:: had_mail && closed -> cancelled[BATCH]++
#endif
		:: else
		fi;
		if
#ifdef WORK_ENDED
		:: had_work && closed -> cancelled[1]++
		:: had_work && !closed -> queued[1] = true
#else
		:: had_work -> queued[1] = true
#endif
		:: else
		fi;
		if
		:: had_due -> timer_set = false
		:: else
		fi;
		had_due = had_due || overdue;
		overdue = false;
		if
#ifdef RUN_ON
		:: had_due && in_heap -> in_heap = false; queued[DELAYED] = true
#else
		:: had_due && in_heap && !closed -> in_heap = false; queued[DELAYED] = true
#endif
		/* the piece was full */
		:: had_due && in_heap && !closed && !postponed -> overdue = true; postponed = true
		:: else
		fi;
		had_mail = false;
		had_work = false;
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
	bool had_mail, had_work, had_due, idle, last;
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
			assert(!closed || IS_WORK(thing));
			unlock();
			ran[thing]++;
			lock()
		:: budget == 0 -> break
		od;
		atomic {
#ifdef FORGET_OVERDUE
			idle = !(queued[0] || queued[1] || queued[2] || queued[3]);
#else
			idle = !(queued[0] || queued[1] || queued[2] || queued[3] || overdue);
#endif
#ifdef FORGET_TIMER
			last = left
#else
			last = left && !timer_set
#endif
		};
		if
		:: idle ->
#ifdef IDLE_BY_STORE
			atomic { is_active = false; runners-- }
#else
			atomic {
				idle = !inbox && !work_inbox && !due;
				if
				:: idle ->
					is_active = false;
#ifndef IDLE_ONLY
					due = last
#endif
				:: else
				fi;
				/*
				 * idle: another may come, and waits for the lock; else it is this
				 * one that submits the work
				 */
				runners--
			}
#endif
		:: else -> runners--
		fi;
		unlock();
		if
		:: !idle -> submit_work()
		:: idle && last -> assert(!freed); freed = true
		:: idle && !last
		fi;
		atomic { thing = 0; budget = 0; idle = false; last = false }
	:: over == BRINGERS && out == 0 && runners == 0 -> break
	od
}

/* The lock is held, and given up for the releases between the queue and the heap. */
inline close_strand()
{
	closed = true;
	overdue = false;
	atomic { timer_set = timer_set && timer_claimed }; /* a cancel */
#ifndef NOT_TAKEN
	atomic {
		t = 0;
		do
		:: t < THINGS ->
			if
			:: queued[t] && !IS_WORK(t) -> queued[t] = false; cancelled[t]++
			:: else
			fi;
			t++
		:: t == THINGS -> break
		od;
		t = 0
	};
#endif
	unlock();
	lock();
	gather();
#ifndef APPEND_ASLEEP
	atomic { wakes = queued[1] && !is_active; is_active = is_active || wakes };
#endif
	atomic {
		if
		:: in_heap -> in_heap = false; cancelled[DELAYED]++
		:: else
		fi
	};
	if
	:: wakes -> unlock(); submit_work(); lock()
	:: !wakes
	fi
}

/* Work is left in the queue only if the strand is active: it came by the inbox. */
#define QUIET (!is_active && !timer_set)

inline go()
{
#ifdef GO_BY_STORE
	goes = QUIET;
	if
	:: goes -> atomic { due = true; is_active = false; inbox = false; work_inbox = false }
	:: !goes
	fi
#else
	atomic {
		goes = QUIET && !due && !inbox && !work_inbox;
#ifndef IDLE_ONLY
		if
		:: goes -> due = true
		:: else
		fi
#endif
	}
#endif
}

proctype closing_thread()
{
	bool had_mail, had_work, had_due, goes, wakes;
	byte t;
#ifdef DESTROY
	submitted;
#endif
	lock();
	close_strand();
#ifdef DESTROY
	do
	:: QUIET -> break
	:: !QUIET -> break /* it may not wait */
	:: !QUIET -> unlock(); QUIET; lock()
	od;
	go();
#ifndef LEAVE_UNTOLD
	left = !goes;
#endif
	unlock();
	if
	:: goes -> assert(!freed); freed = true
	:: !goes
	fi;
#else
	unlock();
#endif
	over++
}

init {
	atomic {
		run submitter(0);
#ifdef DESTROY
		run layer();
#else
		run submitter(1);
#endif
		run driver();
		run timer();
		run runner();
		run runner();
#ifndef LIVE
		run closing_thread()
#endif
	};
	/* Left to itself the executor brings all to its end. */
	atomic {
		over == BRINGERS && out == 0 && runners == 0 && !is_active && AT_REST ->
		assert(!inbox && !work_inbox);
#ifdef DESTROY
		assert(GONE);
		assert(ran[1] + sent_home == 1);
#else
		assert(!due);
		assert(ran[1] + cancelled[1] + refused[1] == 1);
#endif
		assert(ran[0] + cancelled[0] + refused[0] == 1);
		assert(ran[2] + cancelled[2] == 1);
		assert(ran[3] + cancelled[3] == 1)
	}
}
