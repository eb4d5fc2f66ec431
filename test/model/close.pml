/*
 * Close against schedule, and against other closes: wheel/service/close.c (service_end and its
 * looks); arm, after_push and retract in wheel/timer/schedule.c; tw__continues in
 * wheel/run/series.c; tw__poll.
 *
 * Modelled: threads schedule a timer each; a run in progress may arm its timer again; the driver
 * polls and hands over; a thread closes with DROP, RUN or DRAIN. With OTHER a second thread closes
 * too, with DROP or that mode, and may run out of time wherever it waits. In a drain a run in
 * progress goes on arming its timer, and deadlines pass at any time. A thread's store of its word
 * and then of its lane's tail may stay in its store buffer (`visible` follows `stored`, in order)
 * until memory takes them, membarrier comes, or the thread does a locked operation.
 *
 * Left out: resets of armed timers (word.pml: they stay armed), background timers, membarrier
 * refused late, releases (word.pml), the executor (batch.pml): a claim is one step by the driver;
 * the end of the threads; and who wakes the driver (gate.pml).
 *
 * Holds:
 *   G3  what was accepted (0) ends once, and before a close answers 0; none is left behind
 *   1.7  -ESHUTDOWN: as if it had never been; never lost, never both (gate.h, GATE2)
 *   LAST  after -ETIMEDOUT no run starts, and no run in progress arms its timer
 *   PHASE  a drain that no other close ends, and no timeout, drops nothing that a run has armed
 *
 *   run: DROP MEMBARRIER         G3 1.7
 *   run: DROP SEQ_CST            G3 1.7
 *   run: RUN MEMBARRIER          G3 1.7
 *   run: RUN MEMBARRIER OTHER    G3 1.7 LAST
 *   run: DRAIN MEMBARRIER        G3 1.7 PHASE
 *   run: DRAIN MEMBARRIER OTHER  G3 1.7 LAST PHASE
 *   mutant: DROP MEMBARRIER NO_BARRIER         the end of ACCEPTING is published without the heavy
 *                                              barrier
 *       /MEMBARRIER/,+10d
 *   mutant: DROP SEQ_CST LIGHT_PUSH            the push is a mere release store
 *       /#ifdef SEQ_CST/,+2d
 *   mutant: DROP MEMBARRIER NO_SECOND_LOOK     a schedule does not look at the gate after its push
 *       /GATE2/d
 *   mutant: RUN MEMBARRIER RETRACT_BY_STORE    a schedule takes its timer back without a
 *                                              compare-and-swap
 *       /word\[t\] = FREE/{n;n;n;s/$/ word[t] = FREE; won = true;/}
 *   mutant: DROP MEMBARRIER NO_BAR             close bars no run in progress
 *       /barred =/d
 *   mutant: RUN MEMBARRIER HAND_OVER_TO_THE_LAST  the driver hands over until it is stopped
 *       /^\t\tod;$/s/$/ goto dropping;/
 *   mutant: RUN MEMBARRIER KEEP_ON_CLOSED      a schedule that sees the gate closed leaves its
 *                                              timer, and refuses
 *       /= closed;/{n;n;n;N;N;N;N;N;N;N;N;N;N;N;s/.\+/answer_with(REFUSED)/}
 *   mutant: RUN MEMBARRIER OTHER RAISE         a close sets its mode, which may be the higher one
 *       s/lower(mode);/closing = mode;/
 *   mutant: RUN MEMBARRIER OTHER DROPS_LATE    the driver learns of DROP with its next poll only
 *       /(closing/d; /^\t\t\tskip$/s/.\+/hands_over = (closing != CLOSING_DROP)/
 *   mutant: RUN MEMBARRIER OTHER NO_BAR        a close bars no run in progress
 *       /barred =/d
 *   mutant: RUN MEMBARRIER OTHER DROPS_BESIDE_END  a close drops though another has found nothing
 *                                              left
 *   mutant: RUN MEMBARRIER OTHER LEAVES_ARMED  a close that is out of time only lowers the mode
 *       /out_of_time:/{n;n;N;N;N;N;N;N;N;N;N;N;N;d}
 *   mutant: DRAIN MEMBARRIER WAITS_FOR_ARMED   a drain does not wait for runs in progress
 *   mutant: DRAIN MEMBARRIER OTHER NO_BAR      a close bars no run in progress that has seen the
 *                                              drain
 *       /barred =/d
 */
#ifdef OTHER
#define THREADS 1
#define CLOSERS 2
#define SELF_ARMED 1 /* the timer whose run is in progress */
#else
#define THREADS 2
#define CLOSERS 1
#define SELF_ARMED 2
#endif
#define TIMERS (THREADS + 1)
#define FIRST_CLOSER (THREADS + 3) /* its process */

#define CLOSING_DROP 1
#define CLOSING_RUN 2
#define CLOSING_DRAIN 3
#ifdef DRAIN
#define HIGHER CLOSING_DRAIN
#else
#define HIGHER CLOSING_RUN
#endif

mtype = { FREE, ARMED, RUNNING, OVER };
mtype word[TIMERS] = FREE;
byte stored[TIMERS], visible[TIMERS]; /* 1: the word; 2: the lane's tail as well */
bool met[TIMERS];                     /* by the driver, in the lane */
byte fates[TIMERS];
byte closing;            /* 0, or a mode */
bool closed;             /* the gate accepts nothing more */
bool close_ended;        /* a close has answered 0 */
bool timed_out;          /* a close has answered -ETIMEDOUT */
bool cut;                /* a drain has not come to its own end */
bool poll_wanted[CLOSERS];
bool barred;             /* SELF_ARMED's word */
byte droppers;           /* calls in drop_all */
bool ending;             /* a call has found nothing left */
byte batches_out = 1;

mtype = { UNDECIDED, ACCEPTED, REFUSED };
mtype answer[TIMERS] = UNDECIDED;

#define IN_MEMORY(t) (visible[t] == stored[t])

inline take_in(t) /* the oldest store of a thread */
{
	visible[t]++;
	if
	:: visible[t] == 1 -> word[t] = ARMED
	:: else
	fi
}

active proctype memory()
{
end:	do
	:: atomic { !IN_MEMORY(0) -> take_in(0) }
#ifndef OTHER
	:: atomic { !IN_MEMORY(1) -> take_in(1) }
#endif
	od
}

inline end_timer(t)
{
	word[t] = OVER;
	fates[t]++;
	assert(fates[t] == 1 && answer[t] != REFUSED && !close_ended) /* G3, 1.7 */
}

inline answer_with(what)
{
	atomic {
		answer[t] = what;
		assert(what == ACCEPTED || fates[t] == 0);           /* 1.7 */
		assert(what == REFUSED || !close_ended || fates[t] == 1) /* G3 */
	}
}

active [THREADS] proctype scheduler()
{
	byte t = _pid - 1;
	bool won, sees_closed;
	if
	:: closed -> answer_with(REFUSED); goto done
	:: else
	fi;
	stored[t] = 1; /* the word */
	stored[t] = 2; /* tw__publish */
#ifdef SEQ_CST
	IN_MEMORY(t);
#endif
	sees_closed = closed; /* GATE2 */
	if
	:: sees_closed ->
		IN_MEMORY(t);
		atomic { /* retract */
			won = (word[t] == ARMED);
			if
			:: won -> word[t] = FREE
			:: else
			fi
		};
		if
		:: won -> answer_with(REFUSED)
		:: else -> answer_with(ACCEPTED)
		fi
	:: else -> answer_with(ACCEPTED)
	fi;
done:	skip
}

active proctype worker() /* of a series: continues, arm_again, finish */
{
	byte t = SELF_ARMED;
	answer[t] = ACCEPTED;
	word[t] = RUNNING;
	if
	:: !closed || closing == CLOSING_DRAIN -> /* tw__draining */
		if
		:: atomic { !barred -> /* a locked operation */
			assert(!timed_out); /* LAST */
			word[t] = ARMED;
			visible[t] = 2
		}
		:: atomic { barred -> end_timer(t) }
		fi
	:: closed && closing != CLOSING_DRAIN -> atomic { end_timer(t) }
	fi;
	batches_out--
}

inline drain(t)
{
	if
	:: visible[t] == 2 -> met[t] = true
	:: else
	fi
}

inline hand_over(t) /* and claim, if it is due, or RUN's flag is set */
{
	atomic {
		if
		:: hands_over && met[t] && word[t] == ARMED ->
			assert(!timed_out); /* LAST */
			end_timer(t)
		:: !hands_over || !closed || closing != CLOSING_RUN || !met[t] || word[t] != ARMED
		fi
	}
}

active proctype driver()
{
	bool hands_over, wanted, wanted_too;
end:	do
	:: atomic { !close_ended ->
			wanted = poll_wanted[0];
#ifdef OTHER
			wanted_too = poll_wanted[1];
#endif
			skip
		};
		if
		:: atomic { closing && !closed -> closed = true }; /* tw__driver_publish_closed */
#ifdef MEMBARRIER
			atomic {
				do
				:: !IN_MEMORY(0) -> take_in(0)
#ifndef OTHER
				:: !IN_MEMORY(1) -> take_in(1)
#endif
				:: else -> break
				od
			}
#endif
		:: else
		fi;
		drain(0);
		drain(1);
#ifndef OTHER
		drain(2);
#endif
		hands_over = (closing != CLOSING_DROP); /* tw__dropping */
		hand_over(0);
		hand_over(1);
#ifndef OTHER
		hand_over(2);
#endif
		atomic {
			poll_wanted[0] = poll_wanted[0] && !wanted;
#ifdef OTHER
			poll_wanted[1] = poll_wanted[1] && !wanted_too;
#endif
			wanted = false;
			wanted_too = false
		}
	od
}

inline drop(t)
{
	atomic {
		if
		:: word[t] == ARMED ->
			end_timer(t)
		:: else
		fi
	}
}

inline drop_or_bar()
{
	atomic {
		if
		:: word[SELF_ARMED] == ARMED ->
			assert(cut); /* PHASE */
			end_timer(SELF_ARMED)
		:: word[SELF_ARMED] == RUNNING -> barred = true
		:: else
		fi
	}
}

inline drop_all()
{
	drop(0);
#ifndef OTHER
	drop(1);
#endif
	drop_or_bar()
}

inline lower(to)
{
	atomic {
		if
		:: !closing || to < closing -> closing = to; cut = (to != CLOSING_DRAIN)
		:: else
		fi
	}
}

#ifdef OTHER
#define ANY_ARMED (word[0] == ARMED || word[1] == ARMED)
#else
#define ANY_ARMED (word[0] == ARMED || word[1] == ARMED || word[2] == ARMED)
#endif
#if defined(DRAIN) && !defined(WAITS_FOR_ARMED)
#define HELD_UP (ANY_ARMED || word[SELF_ARMED] == RUNNING)
#else
#define HELD_UP ANY_ARMED
#endif

active [CLOSERS] proctype closing_thread()
{
	byte me, mode;
	me = _pid - FIRST_CLOSER;
	word[SELF_ARMED] != FREE; /* the run is in progress */
	mode = CLOSING_DROP;
	if
#if defined(RUN) || defined(DRAIN)
	:: mode = HIGHER
#endif
#if !(defined(RUN) || defined(DRAIN)) || defined(OTHER)
	:: skip
#endif
	fi;
	lower(mode);
again:	mode = closing;
	poll_wanted[me] = true;
	do
	:: atomic { !poll_wanted[me] || close_ended -> break }
	:: me == 1 -> goto out_of_time
	od;
	if
	:: mode != CLOSING_DROP ->
		do /* run_out */
#ifndef DRAIN
		:: atomic { closing == mode && HELD_UP -> skip };
			poll_wanted[me] = true;
			do
			:: atomic { !poll_wanted[me] || close_ended -> break }
			:: me == 1 -> goto out_of_time
			od
#endif
		:: atomic { closing != mode || !HELD_UP -> break }
		:: me == 1 -> goto out_of_time
		od;
		atomic {
			if
			:: closing == mode -> closing = CLOSING_DROP
			:: else
			fi
		};
		goto again
	:: else
	fi;
dropping:
#ifndef DROPS_BESIDE_END
	atomic {
		if
		:: ending -> goto done /* await_end */
		:: else -> droppers++
		fi
	};
#endif
	drop_all();
#ifndef DROPS_BESIDE_END
	droppers--;
#endif
	do
	:: batches_out == 0 -> break
	:: me == 1 -> goto out_of_time
	od;
	if
	:: atomic { !droppers && !ending -> ending = true }
	:: droppers -> goto again
	:: ending -> goto done
	fi;
	atomic {
		close_ended = true;
		assert(answer[0] != ACCEPTED || fates[0] == 1); /* G3 */
#ifndef OTHER
		assert(answer[1] != ACCEPTED || fates[1] == 1);
#endif
		assert(fates[SELF_ARMED] == 1)
	}
	goto done;
out_of_time:
	lower(CLOSING_DROP);
#ifndef DROPS_BESIDE_END
	atomic {
		if
		:: ending -> goto answers
		:: else -> droppers++
		fi
	};
#endif
	drop_all();
#ifndef DROPS_BESIDE_END
	droppers--;
#endif
answers:
	timed_out = true;
done:	skip
}
