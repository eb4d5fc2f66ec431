/*
 * A destroyed group's cached extension records: wheel/group/reap.c (throw_out_if_dead), group.c;
 * wheel/timer/member.h; group.h, GROUP8.
 *
 * Modelled: one group, in whose list is one record, ended and cached. Its bias owner arms a member
 * in it without the lock; the store waits in a buffer until the processor empties it, the bias
 * owner's next atomic operation, or somebody's barrier. Another thread destroys the group. A reap
 * for an earlier cancel is under way: so the group may be seen dead before the destroy has said so
 * to the next reap. When the index is vacant another group is born there, with a cached record of
 * its own.
 *
 * Left out: who runs, waits, or cancels alone (group.pml).
 *
 * Holds:
 *   GROUP8  at rest no member of the dead group is armed (G3); its index is vacant, or was; nobody
 *           unlinks what is cached of the next group
 *
 *   run: DESTROY  GROUP8
 *   mutant: DESTROY NO_BARRIER  no barrier between the look that sees the group dead and the walk
 *   mutant: DESTROY NO_LIFE     who throws out does not look whether it is the same group
 *   mutant: DESTROY NO_LOOK     the bias owner does not look at the serial number again
 *   mutant: DESTROY NO_REMOTE  the reap that follows passes no barrier, nor does who throws out
 *   mutant: DESTROY STAYS_CACHED       nothing is thrown out, and the bias owner comes no more
 */
#define ENDED 0
#define ARMED 1
#define TAG 1

byte word = ENDED, serial = TAG;
bool dead, vacant, vacated, linked = true, linked_next;
bool buffered, lock;
bool queued = true, remote = true, entry = true; /* of the earlier cancel */
byte at_work = 2, busy;

#define FLUSH if :: buffered -> buffered = false; word = ARMED :: else fi
#define LOCK atomic { !lock -> lock = true }
#define UNLOCK lock = false

/* tw__group_unlock_and_vacate */
inline unlock_and_vacate()
{
	atomic {
		if
		:: !linked && !linked_next && !vacant && dead -> vacant = true; vacated = true
		:: else
		fi;
		UNLOCK
	}
}

inline leave()
{
	LOCK;
	linked = false;
	unlock_and_vacate()
}

active proctype bias_owner()
{
	bool is_linked, stale;
	if
#ifndef STAYS_CACHED
	:: serial != TAG -> leave() /* tw__cached_take lets it go */
#endif
	:: serial == TAG ->
		is_linked = linked;
		if
		:: is_linked ->
			buffered = true;
#ifndef NO_LOOK
			stale = (serial != TAG); /* GROUP8 */
			if
			:: stale ->
				atomic { FLUSH };
				if
				:: atomic { word == ARMED -> word = ENDED }; leave()
				:: atomic { word == ENDED } /* reaped */
				fi
			:: else
			fi
#endif
		:: else
		fi
	:: true /* it comes no more */
	fi;
	at_work--
}

active proctype processor()
{
end:	do
	:: atomic { buffered -> FLUSH }
	od
}

active proctype destroyer()
{
	bool was, none;
	atomic { serial = TAG + 1; dead = true };
	remote = true;
	LOCK;
	none = !linked;
	UNLOCK;
	if
	:: !none ->
		atomic { was = queued; queued = true }; /* GROUP4 */
		if
		:: !was -> entry = true
		:: else
		fi
	:: else
	fi;
	LOCK;
	unlock_and_vacate();
	at_work--
}

active proctype reaper()
{
	bool was, taken, is_dead;
	byte seen;
end:	do
	:: atomic { entry -> entry = false; busy++ };
		queued = false;
		atomic { was = remote; remote = false };
		if
#ifndef NO_REMOTE
		:: was -> atomic { FLUSH }
#endif
		:: else
		fi;
		LOCK;
		taken = false;
		if
		:: atomic { linked && serial != TAG && word == ARMED -> word = ENDED; taken = true }
		:: atomic { !(linked && serial != TAG && word == ARMED) }
		fi;
		UNLOCK;
		if
		:: taken -> leave()
		:: else
		fi;
#ifndef STAYS_CACHED
		atomic { is_dead = dead; seen = serial };
		if
		:: is_dead ->
#if !defined(NO_BARRIER) && !defined(NO_REMOTE)
			atomic { FLUSH };
#endif
			LOCK;
#ifndef NO_LIFE
			if
			:: serial == seen ->
#endif
				if
				:: linked && word == ENDED -> linked = false
				:: else
				fi;
				assert(!linked_next); /* kept too */
#ifndef NO_LIFE
			:: else
			fi;
#endif
			unlock_and_vacate()
		:: else
		fi;
#endif
		busy--
	od
}

active proctype next_group()
{
end:	vacant;
	LOCK;
	atomic { vacant = false; dead = false; serial++; linked_next = true };
	UNLOCK
}

active proctype rest()
{
end:	atomic {
		at_work == 0 && busy == 0 && !entry && !buffered ->
		assert(word != ARMED); /* GROUP8 */
		assert(vacated)
	}
}
