/*
 * The end of a service that layers above hold: WORK3 in wheel/run/work.h, CLOSE1 in
 * wheel/service/close.c; tw__service_hold, tw__work_push_and_ring, and close.
 *
 * Modelled: two owners take a hold and submit a piece of work each; the driver runs it, and its run
 * gives up the hold. A closing thread, which is refused while somebody holds, closes when nobody
 * does, waits for those in the middle of a submit, stops the driver, and frees the service.
 *
 * Left out: that the driver sleeps and is rung (works.pml, gate.pml): here it never does; the ring
 * is a last look at the service. Program order stands for release and acquire.
 *
 * Holds:
 *   WORK3  who has a hold has a service: none is given once it is closed, and it is not closed
 *          while one is out
 *   CLOSE1  nobody looks at a service that is gone; and all work that was submitted has run by then
 *          (4.2 of the specification)
 *
 *   run: HOLDS   WORK3 CLOSE1
 *   mutant: HOLDS NOT_COUNTED        close does not know who is in the middle of a submit
 *   mutant: HOLDS COUNTED_LATE       a submitter counts itself when it has pushed
 *   mutant: HOLDS UNCOUNTED_EARLY    a submitter is out of the count before it looks whether to
 *                                    ring
 *   mutant: HOLDS PUSHERS_FIRST      close looks at the submitters before it has forbidden holds
 *   mutant: HOLDS HOLD_BLINDLY       a hold is given by an addition, without a look whether the
 *                                    service is closed
 *   mutant: HOLDS CLOSE_IN_STEPS     close looks whether anybody holds, and then says that it is
 *                                    closed
 */
byte holders, pushers, stack, ran, refused;
bool closed, gone, driving = true;

#define LOOK assert(!gone)

inline submit()
{
#if !defined(NOT_COUNTED) && !defined(COUNTED_LATE)
	atomic { LOOK; pushers++ }; /* CLOSE1 */
#endif
	atomic { LOOK; stack++ };
#ifdef COUNTED_LATE
	atomic { LOOK; pushers++ };
#endif
#ifdef UNCOUNTED_EARLY
	atomic { LOOK; pushers-- };
#endif
	LOOK; /* WORK2, and perhaps the bell */
#if !defined(NOT_COUNTED) && !defined(UNCOUNTED_EARLY)
	atomic { LOOK; pushers-- } /* CLOSE1 */
#endif
}

active [2] proctype owner()
{
	bool held;
	/* Whether the service is there at all when it asks is the owner's affair. */
	if
#ifdef HOLD_BLINDLY
	:: !closed -> holders++; held = true
#else
	:: atomic { !closed -> LOOK; holders++; held = true } /* WORK3: CAS */
#endif
	:: atomic { closed -> refused++ }
	fi;
	if
	:: held -> submit()
	:: else
	fi
}

active proctype driver()
{
end:	do
	:: atomic { stack > 0 -> LOOK; stack-- };
		atomic { ran++; LOOK };
		atomic { LOOK; holders-- } /* WORK3: the last look of the owner's */
	:: atomic { !driving && stack == 0 -> break }
	od
}

active proctype closing()
{
#ifdef PUSHERS_FIRST
	pushers == 0;
#endif
#ifdef CLOSE_IN_STEPS
	holders == 0;
	closed = true;
#else
	atomic { holders == 0 -> closed = true }; /* WORK3: CAS; until then it answers -EBUSY */
#endif
#ifndef PUSHERS_FIRST
	pushers == 0; /* CLOSE1 */
#endif
	driving = false;
	atomic { gone = true; assert(stack == 0 && holders == 0 && ran + refused <= 2) }
}
