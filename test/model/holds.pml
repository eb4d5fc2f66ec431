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
 *       /pushers++/d; /pushers--/d
 *   mutant: HOLDS COUNTED_LATE       a submitter counts itself when it has pushed
 *       /stack++/d; /pushers++/s/^/atomic { LOOK; stack++ }; /
 *   mutant: HOLDS UNCOUNTED_EARLY    a submitter is out of the count before it looks whether to
 *                                    ring
 *       /pushers--/d; /and/s/^/atomic { LOOK; pushers-- }; /
 *   mutant: HOLDS PUSHERS_FIRST      close looks at the submitters before it has forbidden holds
 *       /0;/d; /CAS;/s/^/pushers == 0; /
 *   mutant: HOLDS HOLD_BLINDLY       a hold is given by an addition, without a look whether the
 *                                    service is closed
 *       /{ !closed/s/.\+/:: !closed -> holders++; held = true/
 *   mutant: HOLDS CLOSE_IN_STEPS     close looks whether anybody holds, and then says that it is
 *                                    closed
 *       /CAS;/s/.\+/holders == 0; closed = true;/
 */
byte holders, pushers, stack, ran, refused;
bool closed, gone, driving = true;

#define LOOK assert(!gone)

inline submit()
{
	atomic { LOOK; pushers++ }; /* CLOSE1 */
	atomic { LOOK; stack++ };
	LOOK; /* WORK2, and perhaps the bell */
	atomic { LOOK; pushers-- } /* CLOSE1 */
}

active [2] proctype owner()
{
	bool held;
	/* Whether the service is there at all when it asks is the owner's affair. */
	if
	:: atomic { !closed -> LOOK; holders++; held = true } /* WORK3: CAS */
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
	atomic { holders == 0 -> closed = true }; /* WORK3: CAS; until then it answers -EBUSY */
	pushers == 0; /* CLOSE1 */
	driving = false;
	atomic { gone = true; assert(stack == 0 && holders == 0 && ran + refused <= 2) }
}
