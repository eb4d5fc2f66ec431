/*
 * Jobs of a pool: executor/pool/jobs.c, the limit of workers inside jobs.
 *
 * Modelled: a bringer pushes jobs, one after the other, and calls for help if a worker may take the
 * job. Workers look, take, run, leave and look again. A worker that finds nothing shows itself as
 * idle, looks once more, and sleeps until it is called.
 *
 * Left out: who calls whom (pool.pml; here all idle workers are called), other work of the pool,
 * growth (grow.pml). All operations are sequentially consistent in the code, so they interleave
 * here.
 *
 * Holds:
 *   JOBS1  no job waits while a worker that may take it sleeps: else this would stand still
 *   and one worker is never inside a job
 *
 *   run: TWO      JOBS1, with one job at a time
 *   run: THREE    JOBS1, with two
 *   mutant: TWO NO_LIMIT       each worker takes jobs
 *   mutant: TWO NO_LOOP        a worker that has counted itself and found no job does not look
 *                              again
 *   mutant: TWO LOOK_INSIDE    a worker leaves its job only after its last look before it sleeps
 *   mutant: TWO COUNT_EARLY    the bringer looks at the number of workers inside jobs before its
 *                              push
 */
#ifdef THREE
#define WORKERS 3
#define JOBS 3
#else
#define WORKERS 2
#define JOBS 3
#endif
#ifdef NO_LIMIT
#define LIMIT WORKERS
#else
#define LIMIT (WORKERS - 1)
#endif

byte queued, ran, in_jobs, inside;
bool idle[3];

inline leave()
{
	atomic { in_jobs-- } /* JOBS1 */
}

/* found: a job is taken, and the worker is counted */
inline take()
{
	found = false;
	do
	:: queued == 0 -> break
	:: else ->
		if
		:: atomic { in_jobs < LIMIT -> in_jobs++ }; /* JOBS1 */
			atomic {
				if
				:: queued > 0 -> queued--; found = true
				:: else
				fi
			};
			if
			:: found -> break
			:: else -> leave()
			fi;
#ifdef NO_LOOP
			break
#endif
		:: in_jobs >= LIMIT -> break
		fi
	od
}

inline work_on()
{
	atomic { inside++; assert(inside < WORKERS) };
	atomic { inside--; ran++ };
#ifdef LOOK_INSIDE
	late = true
#else
	leave()
#endif
}

active [WORKERS] proctype worker()
{
	byte me = _pid;
	bool found, late;
end:	do
	:: true ->
		take();
		if
		:: !found ->
			idle[me] = true;
			take();
			if
			:: late -> leave(); late = false
			:: else
			fi;
			if
			:: found -> idle[me] = false
			:: else ->
end_asleep:			!idle[me]
			fi
		:: found
		fi;
		if
		:: found -> work_on()
		:: else
		fi
	od
}

active proctype bringer()
{
	byte n;
	bool help;
	do
	:: n < JOBS ->
		n++;
#ifdef COUNT_EARLY
		help = in_jobs < LIMIT;
		queued++;
#else
		queued++;
		help = in_jobs < LIMIT; /* JOBS1 */
#endif
		if
		:: help -> atomic { idle[0] = false; idle[1] = false; idle[2] = false }
		:: else
		fi
	:: else -> break
	od;
	ran == JOBS
}
