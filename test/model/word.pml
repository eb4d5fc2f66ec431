/*
 * The control word of one timer: wheel/slot/word.h; claim, finish, arm_again in wheel/run/run.c;
 * wheel/timer/cancel.c; wheel/timer/reset.c.
 *
 * Modelled: a slot that is scheduled twice in turn; of the first timer (generation 0) two entries
 * are about, as after a reset to earlier. One thread cancels it, one waits for its end
 * (tw_cancel_wait) or, with RESET, moves it to later; two workers claim, run and finish; the
 * callback may reset or cancel its own timer. With EXT the timers have a release. The word is one
 * byte: generation, state, marks or LATER in the place of the deadline; each compare-and-swap is
 * one step.
 *
 * Left out: deadlines are "now" and "later", and the second timer's is later; the driver and its
 * filing (location.pml): an entry is handed over when its time has come; close (close.pml). What
 * one variable's modification order gives is the same in C11; what is published with it (WORD1 to
 * WORD4) is not seen here.
 *
 * Holds:
 *   G1  no run before its time, not by a stale entry either (G5)
 *   G3  each timer ends just once, and none is lost
 *   G4  no run after TW_CANCELLED, nor before the time that a reset to later has promised
 *   1.3  after tw_cancel_wait no callback and no release is under way, and it does return (RUN5)
 *
 *   run: PLAIN    G1 G3 G4 1.3
 *   run: EXT   G1 G3 G4 1.3
 *   run: RESET    G1 G3 G4
 *   mutant: PLAIN CLAIM_BY_STORE         the claim is a store, not a compare-and-swap
 *       /claim/s/.\+/won = true; word = WORD(g, RUNNING);/
 *   mutant: PLAIN NO_GENERATION          the claim does not look at the generation
 *       s/ARMED && GENERATION(w) == g)/ARMED)/
 *   mutant: PLAIN FORGET_ENDED           a re-arm does not look at ENDED
 *       /!won && (w/{N;s/.\+/:: !won ->/}
 *   mutant: PLAIN WAITED_ALONE           the waiter does not end the timer as well
 *       /WAITED);/s/.\+/cancel_or_mark(WAITED);/
 *   mutant: PLAIN BELL_AFTER_WORD        the waiter reads the bell after the word
 *       /:: outcome/s/$/ w = word;/; /:: outcome/{n;n;d}
 *   mutant: PLAIN RING_FIRST             the bell is moved before the word is
 *       /= WORD(g/s/^/if :: word \& WAITED -> ring_finish() :: else fi; /; /= WORD(g/{n;n;N;N;N;d}
 *   mutant: RESET NO_DEADLINE            the claim does not look at the deadline
 *       /& LATER)/,+2d
 *   mutant: EXT RELEASE_BY_STORE       marks that come while the timer is releasing are lost
 *       /WAITED)))/s/.\+/:: word = WORD(g, RELEASING | (w \& WAITED)); won = true/
 *   mutant: EXT FREE_BEFORE_RELEASE   the generation moves on before the release has returned
 *       /releasing\[g\] = false;/{N;s/.\+/tw__set_free(g); releasing[g] = false/}
 */
#define FREE 0
#define ARMED 8
#define RUNNING 16
#define RELEASING 24
#define STATE(w) ((w) & 24)
#define LATER 1 /* of ARMED: in the place of the deadline */
#define ENDED 1  /* of RUNNING */
#define WAITED 2 /* and of RELEASING */
#define GENERATION(w) ((w) >> 5)
#define WORD(g, state) ((g) << 5 | (state))
#ifdef EXT
#define SETTLED_BY_WINNER WORD(g, RELEASING)
#else
#define SETTLED_BY_WINNER WORD(g + 1, FREE)
#endif

byte word, bell;
bool time_has_come, slot_free = true;
/* by generation: to be handed over now, and when the time has come */
byte entries[2], later_entries[2];
byte ends[2];                      /* how often a timer has ended */
bool cancelled[2], promised, running[2], releasing[2];
byte at_work = 3, workers_busy;

inline cas(old, new)
{
	atomic {
		if
		:: word == old -> word = new; won = true
		:: else -> old = word; won = false
		fi
	}
}

inline ring_finish()
{
	bell++ /* RUN5; the futex's sleepers look at it */
}

inline tw__set_free(g)
{
	atomic { w = word; word = WORD(g + 1, FREE) }; /* exchange: WORD2, RUN5 */
	slot_free = true; /* tw__slot_put */
	if
	:: w & WAITED -> ring_finish()
	:: else
	fi
}

inline release_and_free(g)
{
	releasing[g] = true;
	releasing[g] = false;
	tw__set_free(g)
}

inline count_end(g)
{
	ends[g]++;
	assert(ends[g] == 1) /* G3 */
}

active proctype owner()
{
	byte g;
	do
	:: g < 2 ->
		atomic { slot_free -> slot_free = false };
		assert(STATE(word) == FREE && GENERATION(word) == g);
		if
		:: g == 0 -> word = WORD(0, ARMED); entries[0] = 2
		:: else -> word = WORD(1, ARMED | LATER); later_entries[1] = 1
		fi;
		g++
	:: else -> break
	od;
	at_work--
}

/* cancel_or_mark on the first timer. */
inline cancel_or_mark(marks)
{
	w = word;
	do
	:: GENERATION(w) != g || STATE(w) == FREE -> outcome = GONE; break
	:: GENERATION(w) == g && STATE(w) == ARMED ->
		atomic {
			cas(w, SETTLED_BY_WINNER);
			if
			:: won -> cancelled[g] = true; count_end(g)
			:: else
			fi
		};
		if
		:: won ->
#ifdef EXT
			release_and_free(g);
#else
			slot_free = true;
#endif
			outcome = CANCELLED;
			break
		:: else
		fi
	:: GENERATION(w) == g && STATE(w) == RELEASING && !(marks & WAITED) ->
		outcome = IS_RUNNING;
		break
	:: GENERATION(w) == g &&
	   (STATE(w) == RUNNING || (STATE(w) == RELEASING && marks & WAITED)) ->
		cas(w, w | (STATE(w) == RELEASING -> marks & WAITED : marks));
		if
		:: won -> outcome = IS_RUNNING; break
		:: else
		fi
	od
}

mtype = { GONE, CANCELLED, IS_RUNNING };

active proctype canceller()
{
	byte w, g = 0;
	bool won;
	mtype outcome;
	STATE(word) != FREE || GENERATION(word) > 0; /* the handle exists */
	cancel_or_mark(ENDED);
	w = 0;
	at_work--
}

#ifndef RESET
active proctype waiter()
{
	byte w, g = 0, heard;
	bool won;
	mtype outcome;
	STATE(word) != FREE || GENERATION(word) > 0;
	cancel_or_mark(ENDED | WAITED);
	do
	:: outcome == IS_RUNNING -> /* wait_for_end */
		heard = bell; /* RUN5 */
		w = word;
		if
		:: GENERATION(w) != g -> break
		:: else -> bell != heard /* futex */
		fi
	:: else -> break
	od;
	assert(!running[g] && !releasing[g] && ends[g] == 1); /* 1.3: arg may be freed */
	at_work--
}
#else
active proctype resetter()
{
	byte w, g = 0;
	bool won;
	STATE(word) != FREE || GENERATION(word) > 0;
	w = word;
	do
	:: GENERATION(w) == g && STATE(w) == ARMED ->
		atomic {
			cas(w, WORD(g, ARMED | LATER));
			if
			:: won -> promised = true; break
			:: else
			fi
		}
	:: else -> break /* -ENOENT, -EBUSY */
	od;
	at_work--
}
#endif

/* arm_again: the callback has moved its own timer to now. */
inline arm_again()
{
	w = word;
	won = false;
	do
	:: !won && (w & ENDED) -> break
	:: !won && !(w & ENDED) ->
		cas(w, WORD(g, ARMED))
	:: won -> entries[g]++; break
	od
}

inline finish()
{
	atomic { running[g] = false; won = false }; /* the callback has returned */
	if
	:: rearm -> arm_again()
	:: else
	fi;
	if
	:: won
	:: else ->
		count_end(g);
#ifdef EXT
		w = word;
		do
		:: !won -> cas(w, WORD(g, RELEASING | (w & WAITED)))
		:: won -> break
		od;
		release_and_free(g)
#else
		tw__set_free(g)
#endif
	fi
}

#define MINE(w) (STATE(w) == ARMED && GENERATION(w) == g)

inline run_entry()
{
	w = word;
	do
	:: !MINE(w) -> break
	:: MINE(w) && (w & LATER) && !time_has_come ->
		later_entries[g]++; /* push_back */
		break
	:: else ->
		atomic {
			cas(w, WORD(g, RUNNING)); /* the claim */
			if
			:: won ->
				/* G3, G4 */
				assert(!cancelled[g] && !running[g] && ends[g] == 0);
				/* G1, G4 */
				assert(time_has_come || (g == 0 && (!promised || rearmed)));
				running[g] = true
			:: else
			fi
		};
		if
		:: won ->
			w = word; /* the callback */
			if
			/* tw_reset on itself */
			:: !(w & ENDED) && !rearmed && g == 0 -> rearm = true; rearmed = true
			:: cas(w, w | ENDED) /* tw_cancel on itself; tries again elsewhere */
			:: skip
			fi;
			finish();
			break
		:: else
		fi
	od;
	rearm = false;
	won = false;
	w = 0
}

bool rearmed; /* once is enough; and from then on its time is now */

active [2] proctype worker()
{
	byte w, g;
	bool won, rearm;
end:	do
	:: atomic { entries[0] > 0 -> entries[0]--; g = 0; workers_busy++ }; run_entry();
		atomic { workers_busy--; g = 0 }
	:: atomic { time_has_come && later_entries[0] > 0 -> later_entries[0]--; g = 0;
		workers_busy++ };
		run_entry();
		atomic { workers_busy--; g = 0 }
	:: atomic { time_has_come && later_entries[1] > 0 -> later_entries[1]--; g = 1;
		workers_busy++ };
		run_entry();
		atomic { workers_busy--; g = 0 }
	od
}

active proctype clock()
{
	time_has_come = true
}

active proctype in_the_end()
{
	atomic {
		at_work == 0 && workers_busy == 0 && time_has_come &&
		    entries[0] + later_entries[0] + later_entries[1] == 0 ->
		assert(ends[0] == 1 && ends[1] == 1) /* G3 */
	}
}
