/*
 * The limiter's inbox: executor/limiter_inbox.c, limiter_queue.c.
 *
 * Modelled: two submitters with two jobs and one job, a limit of one, which another thread raises to two and lowers again, or one who pauses and
 * resumes; runners that look for jobs until there are none. The lock's holders go step by step, since submitters come in without it.
 *
 * Left out: priorities, options, what is told to users; the stack's links (a counter stands for it: who takes, takes all).
 *
 * Holds:
 *   I1  no job is lost: at rest each has run, once (1.2)
 *   I2  no more run at once than the limit allows; after a pause has returned none starts
 *
 *   run: LIMIT   I1 I2
 *   run: PAUSE   I1 I2
 *   mutant: LIMIT SHUT_BLIND     who shuts the inbox does not look whether a job came
 *   mutant: LIMIT NO_DISPATCH    what comes in as the inbox is shut is sent no runner
 *   mutant: LIMIT OPEN_EARLY     the inbox is opened though a permit is there
 *   mutant: LIMIT LAZIER         a runner never looks into the inbox, and leaves it open as it goes home
 */
#define JOBS 3
byte inbox;     /* jobs there */
bool open;      /* ATTENDED, in the word */
bool attended;  /* the lock's */
bool lock, paused, pause_holds;
byte line, running, searching, sent, limit = 1, done, to_submit = JOBS, others = 1, most = 1;

#define LOCK atomic { !lock -> lock = true }
#define UNLOCK lock = false
#define ALL_OUT (!paused && running + searching >= limit)

inline take() { atomic { line = line + inbox; inbox = 0 } }

inline look()
{
	if
	:: attended && inbox > 0 -> take()
	:: else
	fi
}

inline dispatch()
{
	do
	:: !paused && running + searching < limit && line > searching -> atomic { searching++; sent++ }
	:: else -> break
	od
}

inline attend()
{
	if
	:: attended && !ALL_OUT ->
#ifdef SHUT_BLIND
		atomic { open = false; inbox = 0 };
#else
		do
		:: atomic { inbox == 0 -> open = false }; break
		:: atomic { inbox > 0 -> line = line + inbox; inbox = 0 }
		od;
#endif
		attended = false;
#ifndef NO_DISPATCH
		dispatch()
#endif
	:: else
	fi;
	if
#ifdef OPEN_EARLY
	:: !attended && !paused -> attended = true; open = true
#else
	:: !attended && ALL_OUT -> attended = true; open = true
#endif
	:: else
	fi
}

inline submit()
{
	if
	:: atomic { open -> inbox++ } /* leave */
	:: atomic { !open } ->
		LOCK;
		look();
		line++;
		dispatch();
		attend();
		UNLOCK
	fi;
	to_submit--
}

active proctype submitter() { submit(); submit() }
active proctype another() { submit() }

active [2] proctype runner()
{
	bool goes;
end:	do
	:: atomic { sent > 0 -> sent-- };
		LOCK;
#ifndef LAZIER
		look();
#endif
		searching--;
		goes = false;
		do
		:: !goes ->
#ifndef LAZIER
			if
			:: line == 0 -> look()
			:: else
			fi;
#endif
			if
			:: line > 0 && !paused && running < limit ->
				atomic { line--; running++ };
				assert(!pause_holds && running <= most); /* I2 */
				dispatch();
				attend();
				UNLOCK;
				skip; /* it runs */
				LOCK;
#ifndef LAZIER
				if
				:: line == 0 -> look() /* lazily */
				:: else
				fi;
#endif
				atomic { running--; done++ };
			:: else -> goes = true
			fi
		:: goes -> break
		od;
		dispatch();
#ifndef LAZIER
		attend();
#endif
		UNLOCK
	od
}

#ifdef PAUSE
active proctype pauser()
{
	LOCK;
	look();
	paused = true;
	dispatch();
	attend();
	atomic { pause_holds = true; UNLOCK };
	LOCK;
	look();
	atomic { paused = false; pause_holds = false };
	dispatch();
	attend();
	UNLOCK;
	others--
}
#else
active proctype limiter()
{
	LOCK;
	look();
	atomic { limit = 2; most = 2 };
	dispatch();
	attend();
	UNLOCK;
	LOCK;
	look();
	limit = 1;
	dispatch();
	attend();
	UNLOCK;
	others--
}
#endif

active proctype rest()
{
end:	atomic { to_submit == 0 && others == 0 && !lock && sent == 0 && searching == 0 && running == 0 -> assert(done == JOBS) } /* I1 */
}
