/*
 * Close against schedule: wheel/service/close.c (close_finish and its steps); arm, after_push and
 * retract in wheel/timer/schedule.c; continues in wheel/run/run.c.
 *
 * Modelled: two threads schedule a timer each; a run under way may arm its timer again; the driver
 * turns and hands over; a closing thread ends all with DROP or RUN. A thread's store of its word
 * and then of its lane's tail may stay in its store buffer (`visible` follows `stored`, in order)
 * until memory takes them, membarrier comes, or the thread does a locked operation.
 *
 * Left out: DRAIN (RUN whose polls come by themselves), timeouts, several calls of close, a close
 * that does not wait, membarrier refused late, releases (word.pml), the executor (batch.pml): a
 * claim is one step by the driver; and who wakes the driver (gate.pml).
 *
 * Holds:
 *   G3  what was accepted (0) ends once, and before close returns; none is left behind
 *   1.7  -ESHUTDOWN: as if it had never been; never lost, never both (gate.h, GATE2)
 *
 *   run: DROP MEMBARRIER   G3 1.7
 *   run: DROP SEQ_CST      G3 1.7
 *   run: RUN MEMBARRIER    G3 1.7
 *   mutant: DROP MEMBARRIER NO_BARRIER         the end of ACCEPTING is published without the heavy
 *                                              barrier
 *   mutant: DROP SEQ_CST LIGHT_PUSH            the push is a mere release store
 *   mutant: DROP MEMBARRIER NO_SECOND_LOOK     a schedule does not look at the gate after its push
 *   mutant: RUN MEMBARRIER RETRACT_BY_STORE    a schedule takes its timer back without a
 *                                              compare-and-swap
 *   mutant: DROP MEMBARRIER DROP_ONCE          close does not look again after the runs under way
 *                                              are over
 *   mutant: RUN MEMBARRIER HAND_OVER_TO_THE_LAST  the driver hands over until it is stopped
 *   mutant: RUN MEMBARRIER KEEP_ON_CLOSED      a schedule that sees the gate closed leaves its
 *                                              timer, and refuses
 */
#define THREADS 2
#define SELF_ARMED 2 /* the timer whose run is under way */
#define TIMERS 3

mtype = { FREE, ARMED, RUNNING, OVER };
mtype word[TIMERS] = FREE;
byte stored[TIMERS], visible[TIMERS]; /* 1: the word; 2: the lane's tail as well */
bool met[TIMERS];                     /* by the driver, in the lane */
byte fates[TIMERS];
bool closing, closed, close_ended, turn_wanted;
bool running_out; /* closing == RUN, and not yet DROP */
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
	:: atomic { !IN_MEMORY(1) -> take_in(1) }
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
#if defined(SEQ_CST) && !defined(LIGHT_PUSH)
	IN_MEMORY(t);
#endif
#ifndef NO_SECOND_LOOK
	sees_closed = closed; /* GATE2 */
#endif
	if
	:: sees_closed ->
#ifndef KEEP_ON_CLOSED
		IN_MEMORY(t);
		atomic { /* retract */
			won = (word[t] == ARMED);
			if
			:: won -> word[t] = FREE
			:: else
			fi
		};
#ifdef RETRACT_BY_STORE
		word[t] = FREE;
		won = true;
#endif
		if
		:: won -> answer_with(REFUSED)
		:: else -> answer_with(ACCEPTED)
		fi
#else
		answer_with(REFUSED)
#endif
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
	:: !closed ->
		word[t] = ARMED; /* a locked operation */
		visible[t] = 2
	:: closed -> atomic { end_timer(t) }
	fi;
	batches_out--
}

inline meet(t) /* drain, and perhaps hand over and claim */
{
	if
	:: visible[t] == 2 -> met[t] = true
	:: else
	fi;
	atomic {
		if
		/* due, or RUN's flag */
		:: met[t] && word[t] == ARMED && (!closed || forced) -> end_timer(t)
		:: !forced || !met[t] || word[t] != ARMED
		fi
	}
}

active proctype driver()
{
	bool forced, asked;
end:	do
	:: atomic { !close_ended -> asked = turn_wanted };
		if
		:: closing && !closed -> /* tw__driver_publish_closed */
			closed = true;
#if defined(MEMBARRIER) && !defined(NO_BARRIER)
			atomic {
				do
				:: !IN_MEMORY(0) -> take_in(0)
				:: !IN_MEMORY(1) -> take_in(1)
				:: IN_MEMORY(0) && IN_MEMORY(1) -> break
				od
			};
#endif
		:: else
		fi;
		forced = closed && running_out;
		meet(0);
		meet(1);
		meet(2);
		if
		:: asked -> turn_wanted = false
		:: else
		fi
	od
}

inline turn()
{
	turn_wanted = true;
	!turn_wanted
}

inline drop(t)
{
	atomic {
		if
		:: word[t] == ARMED -> end_timer(t)
		:: else
		fi
	}
}

#define ANY_ARMED (word[0] == ARMED || word[1] == ARMED || word[2] == ARMED)

active proctype closing_thread()
{
#ifdef RUN
	running_out = true;
#endif
	closing = true;
	turn();
#ifdef RUN
	do /* run_the_last */
	:: ANY_ARMED -> turn()
	:: !ANY_ARMED -> break
	od;
#ifndef HAND_OVER_TO_THE_LAST
	running_out = false;
	turn();
#endif
#endif
	do
	:: drop(0);
		drop(1);
		drop(2);
		batches_out == 0;
		turn();
		if
#ifndef DROP_ONCE
		:: ANY_ARMED
#endif
		:: !ANY_ARMED -> break
#ifdef DROP_ONCE
		:: else -> break
#endif
		fi
	od;
	atomic {
		close_ended = true;
		assert(answer[0] != ACCEPTED || fates[0] == 1); /* G3 */
		assert(answer[1] != ACCEPTED || fates[1] == 1);
		assert(fates[SELF_ARMED] == 1)
	}
}
