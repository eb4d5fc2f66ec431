/*
 * Persistent timers: wheel/slot/word.h ("Persistent timers", WORD6); wheel/timer/reset.c;
 * persist in wheel/run/series.c; tw__unfile, tw__entry_is_armed in wheel/slot/slots.h;
 * tw__far_read, tw__far_move in wheel/slot/slots.c.
 *
 * Modelled: one timer that two threads arm for any of two ticks, and one disarms, while the driver
 * passes the ticks, meets entries and runs the callback. The word is one byte: state, mark,
 * deadline; each compare-and-swap is one step. An arming that needs an entry puts it after its
 * compare-and-swap. Each look at the word is a step of its own.
 *
 * Left out: where an entry stands (lane, wheel, batch) and which of several counts (location.pml):
 * an entry is met when its tick has come; the end of the timer (word.pml); far deadlines (pairs.c).
 * What is published with the word is not seen here.
 *
 * Holds:
 *   G3  an armed timer is not lost: when all ticks have passed and no entry is left, it is not
 *       armed
 *   G4  a run only of a timer that is armed and due; none of an arming that a disarming has taken
 *       back
 *   WORD6  a timer that is armed during its run is armed for the deadline of the last such call
 *
 *   run: ALL   G3 G4 WORD6
 *   mutant: ALL DROP_PROMISED    an entry of a FILED timer is dropped, and the promise stays
 *       /FILED &&/{N;N;N;N;N;s/.\+/:: STATE(w) == FILED \&\& BITS(w) <= now -> break/}
 *   mutant: ALL RUN_PROMISES     after a run the timer is FILED
 *       /&& !(w &/s/UNFILED,/WORD(FILED, now),/
 *   mutant: ALL FINISH_BLIND     the finish does not look whether the deadline is what it has read
 *       /won = !(w/s/.\+/won = true;/
 *   mutant: ALL REARM_UNLOCKED   an arming during the run takes no lock
 *       /far_move(new,/{n;n;s/.\+/if :: new \& REARMED :: else -> lock() fi;/}
 *       /:: won &&/{n;n;n;s/.\+/if :: new \& REARMED :: else -> far_lock = false fi/}
 *   mutant: ALL REARM_STAYS      a disarming during the run leaves REARMED
 *       s/cas(w, RUNNING, 0)/atomic { wanted = 0; break }/
 */
#define UNFILED 0
#define FILED 1
#define ARMED 2
#define RUNNING 3
#define REARMED 4
#define STATE(w) ((w) & 3)
#define BITS(w) ((w) >> 3)
#define WORD(state, tick) ((state) | (tick) << 3)
#define LAST_TICK 2

byte word = UNFILED, far_tick, now, entries[3];
bool far_lock;
byte wanted; /* the deadline of the last arming; 0: disarmed, or it has run */
byte at_work = 3;
bool driver_busy;

inline cas(old, new, then)
{
	atomic {
		if
		:: word == old -> word = new; won = true; wanted = then
		:: else -> old = word; won = false
		fi
	}
}

inline lock()
{
	atomic { !far_lock -> far_lock = true }
}

/* tw__far_read of a REARMED word: won, and was */
inline far_read()
{
	lock();
	atomic { won = word == w; w = word };
	was = far_tick;
	far_lock = false
}

/* tw__far_move */
inline far_move(new, then)
{
	lock();
	won = !(w & REARMED) || far_tick == was;
	if
	:: won -> cas(w, new, then)
	:: else -> w = word
	fi;
	if
	:: won && (new & REARMED) -> far_tick = tick
	:: else
	fi;
	far_lock = false
}

/* rearm_persistent */
inline rearm()
{
	won = true;
	if
	:: w & REARMED -> far_read()
	:: else
	fi;
	if
	:: won -> far_move(w | REARMED, tick)
	:: else
	fi
}

#define NEEDS_ENTRY(w) (STATE(w) == UNFILED || tick < BITS(w))

inline arm()
{
	won = false;
	w = word;
	do
	:: won -> break
	:: !won && STATE(w) == RUNNING -> rearm()
	:: !won && STATE(w) != RUNNING && NEEDS_ENTRY(w) ->
		cas(w, WORD(ARMED, tick), tick);
		if
		:: won -> entries[tick]++ /* the lane entry */
		:: else
		fi
	:: !won && STATE(w) != RUNNING && !NEEDS_ENTRY(w) -> cas(w, WORD(ARMED, tick), tick)
	od
}

proctype armer(byte times)
{
	byte w, tick, was, n;
	bool won;
	do
	:: n == times -> break
	:: n < times ->
		if
		:: tick = 1
		:: tick = 2
		fi;
		arm();
		n++
	od;
	at_work--
}

proctype disarmer()
{
	byte w, n;
	bool won;
	do
	:: n == 2 -> break
	:: n < 2 ->
		won = false;
		w = word;
		do
		:: won -> break
		:: !won && STATE(w) == ARMED -> cas(w, WORD(FILED, BITS(w)), 0)
		:: !won && STATE(w) == RUNNING && (w & REARMED) -> cas(w, RUNNING, 0)
		:: !won && STATE(w) != ARMED && !(STATE(w) == RUNNING && (w & REARMED)) -> break
		od;
		n++
	od;
	at_work--
}

/* persist */
inline finish()
{
	won = false;
	w = word;
	do
	:: won -> break
	:: !won && (w & REARMED) ->
		far_read();
		if
		:: won -> tick = was; far_move(WORD(ARMED, tick), wanted)
		:: else
		fi;
		if
		:: won -> entries[tick]++
		:: else
		fi
	:: !won && !(w & REARMED) -> cas(w, UNFILED, wanted)
	od
}

inline meet()
{
	won = false;
	w = word;
	do
	/* filed again */
	:: (STATE(w) == ARMED || STATE(w) == FILED) && BITS(w) > now -> entries[BITS(w)]++; break
	:: STATE(w) == ARMED && BITS(w) <= now ->
		atomic {
			if
			:: word == w ->
				/* G4, WORD6 */
				assert(wanted != 0 && wanted == BITS(w) && wanted <= now);
				word = RUNNING;
				wanted = 0;
				won = true
			:: else -> w = word
			fi
		};
		if
		:: won -> finish(); break
		:: else
		fi
	:: STATE(w) == FILED && BITS(w) <= now ->
		cas(w, UNFILED, wanted); /* tw__unfile */
		if
		:: won -> break
		:: else
		fi
	:: STATE(w) == UNFILED || STATE(w) == RUNNING -> break
	od
}

proctype driver()
{
	byte w, tick, was;
	bool won;
end:	do
	:: now < LAST_TICK -> now++
	:: atomic { entries[1] > 0 && now >= 1 -> entries[1]--; driver_busy = true }; meet();
		driver_busy = false
	:: atomic { entries[2] > 0 && now >= 2 -> entries[2]--; driver_busy = true }; meet();
		driver_busy = false
	od
}

active proctype in_the_end()
{
	atomic {
		at_work == 0 && !driver_busy && now == LAST_TICK && entries[1] + entries[2] == 0 ->
		assert(STATE(word) != ARMED && wanted == 0) /* G3 */
	}
}

init
{
	atomic {
		run armer(2);
		run armer(1);
		run disarmer();
		run driver()
	}
}
