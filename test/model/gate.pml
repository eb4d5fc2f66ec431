/*
 * Sleep and wake of the tick thread: mpsc/gate.h, mpsc/gate.c; park and sleep_until in
 * wheel/driver/park.c; arm in wheel/timer/schedule.c.
 *
 * Modelled: two producers, of which one pushes twice, somebody who asks for a turn (close, a
 * manual clock), and the driver: turn, arm the bell, plan, publish PARKED, heavy barrier, look
 * at lanes and requests, sleep on the futex. What a thread has stored but not yet in memory is
 * explicit: `stored` against `tail` for each producer, `plan_stored` against `plan` for the driver.
 * The process `memory` moves it there at any moment; an exchange and a sequentially consistent
 * store move the thread's own, membarrier everybody's. MEMBARRIER and SEQ_CST are the two ways of
 * GATE2.
 *
 * With YOUNG, the lanes are young ones (wheel/core/service.h): the driver may leave them unread,
 * and plans by their `soonest`, which a push stores before its tail. A push that comes after all
 * was read sets it anew.
 *
 * Left out: keys are 1 and 2 (smaller is earlier) and NEVER; they stand for instants, since the
 * code only compares them. Time is left out: the sleeper may wake by itself at any moment, but must
 * not need to. The sequence number is left out: nobody compares it here. Loads are in program order
 * and stores of one thread stay in order, as on x86; the orders that weaker machines need are
 * argued in gate.h. Two stores of one tail may reach memory as one, which only adds behaviours.
 *
 * Holds:
 *   G2  asleep and nothing under way: no unread push is due before the plan, and no request is open
 *       (GATE2, GATE3).
 *
 *   run: MEMBARRIER           G2, by GATE1 GATE2 GATE5
 *   run: MEMBARRIER REQUEST   G2, by GATE1 GATE2 GATE3
 *   run: SEQ_CST              G2, by GATE1 GATE2
 *   run: SEQ_CST REQUEST      G2, by GATE1 GATE2 GATE3
 *   run: MEMBARRIER YOUNG     G2, by GATE1 GATE2, LANE1 LANE10
 *   run: MEMBARRIER YOUNG REQUEST   the same, and GATE3
 *   run: SEQ_CST YOUNG        G2, by GATE1 GATE2, LANE1 LANE10
 *   run: SEQ_CST YOUNG REQUEST      the same, and GATE3
 *   mutant: MEMBARRIER YOUNG ONE_LOOK    park does not ask the young lanes again after the
 *                                        barrier
 *   mutant: MEMBARRIER YOUNG REQUEST RAISE_UNREAD  soonest is raised though something is unread
 *       /== n - 1/s/.\+/:: true -> soon_stored[p] = mine/
 *   mutant: SEQ_CST YOUNG SOONEST_LAST      soonest is stored after the tail
 *   mutant: MEMBARRIER NO_BARRIER        park does without the heavy barrier
 *       /MEMBARRIER/,+11d
 *   mutant: MEMBARRIER COUNT_EARLY       owners are counted before PARKED is published
 *       s/bool sure;/& byte counted;/; s/^turn:/& counted = owners;/
 *       s/:: owners == 0/:: counted == 0/
 *   mutant: MEMBARRIER IGNORE_FAILURE    a membarrier that failed is trusted
 *   mutant: MEMBARRIER LOOK_BEFORE_PUSH  the look at the gate comes before the push
 *       /= parked;/d; /= mine +/{n;s/$/ sees_parked = parked;/}
 *   mutant: MEMBARRIER PLAN_LAST         the plan is stored after the barrier
 *   mutant: MEMBARRIER TRUST_ESTIMATE  a deadline counted from a published time is compared
 *                                        with the plan
 *       /= parked;/{n;N;N;N;N;d}
 *   mutant: MEMBARRIER REQUEST ARM_LAST  the bell is armed after the look at lanes and requests
 *   mutant: SEQ_CST LIGHT_PUSH           the push is a mere release store
 *       /^\t\t}$/{n;N;N;d}
 *   mutant: SEQ_CST PLAN_AFTER_WORD      the plan is stored after the word, and may still sit in
 *                                        the driver's buffer
 */
#ifdef REQUEST
#define PRODUCERS 1
#define PUSHES 2
#else
#define PRODUCERS 2
#define PUSHES 1
#endif
#define NEVER 9

byte stored[2], tail[2], head[2]; /* lanes: published by the thread, in memory, read */
/* of each push; visible with its tail (lane.h, LANE1) */
byte key[2];
byte soon_stored[2] = NEVER, soon[2] = NEVER;
byte plan_stored = NEVER, plan = NEVER;
bool parked, bell, asleep;
bool closing, closed; /* a request, and that the driver has seen it */
byte at_work = 2;
byte owners; /* of lanes, beside the driver */
bool filed[3]; /* the driver's: keys that stand in the wheel */

#define KEY(p, i) key[(p) * PUSHES + (i)]

/* It is stored first; that it is seen no earlier than with the tail is the worst case (LANE1). */
#ifdef SOONEST_LAST
#define SOON(p) skip
#else
#define SOON(p) soon[p] = soon_stored[p]
#endif

inline ring()
{
	atomic { rung = bell; bell = true } /* exchange-seq_cst (GATE3) */
	if
	:: !rung -> asleep = false /* futex wake */
	:: else
	fi;
	rung = false
}

active [PRODUCERS] proctype producer()
{
	byte p = _pid, n, mine, estimate;
	bool was_open, sees_parked, rung;
	owners++; /* attach: add acq_rel (QUEUE2) */
	do
	:: n < PUSHES ->
		atomic {
			was_open = !parked; /* tw__gate_look: which base to count from */
			if
			:: mine = 1
			:: mine = 2
			fi;
			/* counted from a tick's end it may be later than what the driver finds */
			estimate = mine + was_open
		};
		d_step {
			KEY(p, n) = mine;
			n++;
#ifdef YOUNG
			/* tw__lane_bring, after raise_soonest */
			if
			:: head[p] == n - 1 || mine < soon_stored[p] -> soon_stored[p] = mine
			:: else
			fi;
#endif
			stored[p] = n /* tw__publish */
		}
#ifdef SEQ_CST
		atomic { SOON(p); tail[p] = stored[p] } /* GATE2 */
#endif
		d_step {
			sees_parked = parked; /* tw__gate_look_after_push: GATE1, GATE2 */
			if
			/* the driver fell asleep meanwhile, and knows nothing of this */
			:: was_open -> estimate = 0
			:: else
			fi;
			was_open = false
		};
		if
		:: atomic { sees_parked && estimate < plan -> mine = 0; estimate = 0;
			sees_parked = false };
			/* the exchange waits until the thread's own stores are in memory */
			tail[p] == stored[p] && soon[p] == soon_stored[p];
			ring()
		:: atomic { else -> mine = 0; estimate = 0; sees_parked = false }
		fi
	:: else -> break
	od;
	/* a thread's last stores are in memory before it leaves */
	atomic { tail[p] == stored[p] && soon[p] == soon_stored[p]; owners--; at_work-- }
}

#ifdef REQUEST
active proctype requester()
{
	bool rung;
	closing = true; /* seq_cst */
	ring();
	at_work--
}
#endif

active proctype memory()
{
end:	do
	:: atomic { tail[0] != stored[0] -> SOON(0); tail[0] = stored[0] }
	:: atomic { tail[1] != stored[1] -> SOON(1); tail[1] = stored[1] }
#ifdef SOONEST_LAST
	:: tail[0] == stored[0] && soon[0] != soon_stored[0] -> soon[0] = soon_stored[0]
	:: tail[1] == stored[1] && soon[1] != soon_stored[1] -> soon[1] = soon_stored[1]
#endif
	:: plan != plan_stored -> plan = plan_stored
	od
}

#define UNREAD(p) (tail[p] != head[p])
#define QUIET (asleep && at_work == 0 && tail[0] == stored[0] && tail[1] == stored[1] && \
	soon[0] == soon_stored[0] && soon[1] == soon_stored[1] && plan == plan_stored)
#define IN_TIME(p, i) (i < head[p] || i >= tail[p] || KEY(p, i) >= plan)
#ifdef REQUEST
#define ALL_IN_TIME (IN_TIME(0, 0) && IN_TIME(0, 1))
#else
#define ALL_IN_TIME (IN_TIME(0, 0) && IN_TIME(1, 0))
#endif

inline read_lane(p)
{
	do
	:: UNREAD(p) -> filed[KEY(p, head[p])] = true; KEY(p, head[p]) = 0; head[p]++
	:: else -> break
	od
}

#define EARLIER(a, b) ((a) < (b) -> (a) : (b))

inline set_plan()
{
#ifdef YOUNG
	/* tw__young_plan: of each lane first the tail */
	if
	:: UNREAD(0) -> young = soon[0]
	:: else -> young = NEVER
	fi;
	if
	:: UNREAD(1) -> young = EARLIER(young, soon[1])
	:: else
	fi;
#endif
	d_step {
		plan_stored = (filed[1] -> 1 : (filed[2] -> 2 : NEVER));
		plan_stored = EARLIER(plan_stored, young)
	}
}

inline arm_bell()
{
	atomic { plan = plan_stored; bell = false } /* exchange-seq_cst (GATE3) */
}

active proctype driver()
{
	bool sure;
	byte young = NEVER;
turn:	closed = closing;
	atomic { plan = plan_stored; parked = false } /* publish OPEN: exchange-seq_cst (GATE1) */
#ifdef YOUNG
	young = NEVER;
	if
	:: atomic { true -> read_lane(0); read_lane(1) }
	:: skip /* nothing in them comes near */
	fi;
#else
	atomic { read_lane(0); read_lane(1) }
#endif
	if
	:: goto turn /* there is traffic: again in a tick */
	:: skip
	fi;
#ifndef ARM_LAST
	arm_bell();
#endif
#if !defined(PLAN_AFTER_WORD) && !defined(PLAN_LAST)
	set_plan();
#endif
	atomic { plan = plan_stored; parked = true } /* publish PARKED */
#ifdef PLAN_AFTER_WORD
	set_plan();
#endif
	sure = true;
#ifdef MEMBARRIER
	if
	:: owners == 0 /* GATE5 */
	/* tw__gate_barrier: GATE2 */
	:: d_step {
		tail[0] = stored[0]; tail[1] = stored[1];
		soon[0] = soon_stored[0]; soon[1] = soon_stored[1];
		plan = plan_stored
	   }
	:: sure = false
	fi;
#endif
#ifdef IGNORE_FAILURE
	sure = true;
#endif
#ifdef PLAN_LAST
	set_plan();
#endif
#ifndef YOUNG
	if
	:: UNREAD(0) -> goto turn
	:: else
	fi;
	if
	:: UNREAD(1) || closing != closed -> goto turn
	:: else
	fi;
#else
#ifndef ONE_LOOK
	if
	:: UNREAD(0) -> young = soon[0]
	:: else -> young = NEVER
	fi;
	if
	:: UNREAD(1) -> young = EARLIER(young, soon[1])
	:: else
	fi;
#endif
	if
	:: young < plan_stored || closing != closed -> goto turn
	:: else
	fi;
#endif
#ifdef ARM_LAST
	arm_bell();
#endif
	if
	:: !sure -> goto turn /* it sleeps no longer than a tick */
	:: else
	fi;
	/* tw__gate_sleep: the futex takes the sleeper only while the bell reads 0 */
	if
	:: atomic { !bell -> asleep = true }
	:: bell -> goto turn
	fi;
	if
	:: !asleep -> goto turn
	:: atomic {
		QUIET ->
		assert(ALL_IN_TIME);      /* G2, GATE2 */
		assert(closing == closed) /* GATE3 */
	   }
	:: atomic { /* the plan has come, or something else: no one may rely on it */
		plan != NEVER && asleep -> asleep = false;
		filed[plan] = false
	   };
	   goto turn
	fi
}
