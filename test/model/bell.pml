/*
 * The bell of a driver that waits on a descriptor: mpsc/gate.h, GATE3; tw__gate_ring and
 * tw__gate_arm_bell in mpsc/gate.c; wheel/driver/loop_fd.c.
 *
 * Modelled: threads that push something and ring, twice each: the first to find the bell quiet
 * writes to the descriptor, after a while. The driver wakes when the descriptor is readable, arms
 * the bell, looks at what was pushed, and sleeps again. One step stands for each access of the
 * bell, each call of the system, and the driver's look.
 *
 * Left out: the futex, plans and whether one has to ring (gate.pml); deadlines, which would wake
 * the driver by and by.
 *
 * Holds:
 *   G2  when all have rung, and the driver sleeps, it has seen all that was pushed: nothing is
 *       slept through
 *   G9  it is not woken without end: what wakes it, it reads
 *
 *   run: BELL   G2 G9
 *   mutant: BELL ONE_EXCHANGE  the bell is not cleared once more after the descriptor was read
 *       /^\tif$/,+3d
 *   mutant: BELL FORGET_OWED   a write that comes late is not expected any more
 *       /^\tif$/s/^/atomic { if :: owed > 0 -> owed = 0 :: else fi }; /
 *   mutant: BELL LOOK_FIRST    the driver looks at what was pushed, and then arms the bell
 *       /unseen = 0/d; s/arm();/unseen = 0; &/
 */
#define RINGERS 3
#define ROUNDS 2

bool rung;
byte written;  /* the descriptor's count */
short owed;    /* the driver's: writes of rings that it has cleared, still to be read */
byte unseen;   /* pushed, and not looked at */
byte done;     /* ringers */

active [RINGERS] proctype ringer()
{
	byte round;
	bool first;
	do
	:: round < ROUNDS ->
		unseen++; /* the push */
		atomic { first = !rung; rung = true };
		if
		:: first -> written++
		:: else
		fi;
		atomic { first = false; round++ }
	:: round == ROUNDS -> break
	od;
	done++
}

inline clear()
{
	atomic {
		if
		:: rung -> rung = false; owed++
		:: else
		fi
	}
}

inline take_written()
{
	atomic { owed = owed - written; written = 0 }
}

inline arm()
{
	clear();
	atomic {
		reads = (owed != 0 && written > 0);
		if
		:: reads -> take_written()
		:: else
		fi
	};
	if
	:: reads -> clear()
	:: !reads
	fi;
	reads = false
}

active proctype driver()
{
	bool reads;
	do
	:: atomic { written > 0 -> assert(owed != 0 || rung) /* G9: it will be read */ };
		arm();
		unseen = 0
	:: atomic { done == RINGERS && written == 0 -> assert(unseen == 0) /* G2 */ }; break
	od
}
