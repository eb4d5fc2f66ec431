/*
 * Simulation: a service, and a pool of so many workers, played on one thread and a virtual clock, from a seed.
 *
 * For tests of what a program does with its timeouts: nothing sleeps, a virtual day takes milliseconds, and what threads might do to each
 * other is drawn from the seed instead of left to chance. The same program with the same seed sees the same order of all events; another
 * seed gives another order that the guarantees allow as well. So a test runs over many seeds, and one that fails fails
 * again with its seed.
 *
 *     tw_sim *sim;
 *     tw_sim_create(&sim, &(struct tw_sim_config){.size = sizeof(struct tw_sim_config), .seed = seed, .workers = 4});
 *     tw_schedule(tw_sim_service(sim), 30 * TW_SECOND, on_timeout, connection, &timeout);
 *     tw_sim_run_for(sim, 60 * TW_SECOND);
 *     ... look at what has happened ...
 *     tw_sim_destroy(sim);
 *
 * What is drawn. A worker takes a run off the queue, and begins it later: each that holds one may be overtaken by all the others, as by
 * a thread that the system has not let run. Which worker moves next, which service's queue it takes from, in which turn several services on the
 * clock are driven: that is drawn. On demand, how late workers and tick thread are (max_late_ns), and whether a hand-over is
 * refused (refuse_percent). What is not drawn is what G6 fixes: with one worker all runs come in the order of handing over.
 *
 * What is not simulated: two callbacks at once. Each runs to its end before the next one begins, and takes no virtual time, but as
 * tw_sim_spend says. Nothing that waits for another thread ends: in a simulated callback, and between the runs of a simulation, call
 * nothing that blocks.
 *
 * tw_sim_executor may be the executor of more services, and tw_sim_clock their clock (with TW_DRIVE_MANUAL); strands, schedulers, limiters
 * and whatever else stands on a service and an executor work on it alike. Strands and schedulers may be destroyed at any time. To end a limiter
 * or a semaphore in the middle: close it with timeout 0, let
 * the simulation run on (tw_sim_run_for; a tick is enough unless workers are late, busy or refuse), and only then destroy it: a destroy
 * that waits for the workers would wait in vain, since the waiting thread is the one that plays them.
 *
 * Threads: one at a time. (The executor takes submits from any thread, but then the order is chance.) In a forked child all
 * calls that can fail answer -EPERM, but destroy, which frees the memory.
 *
 * In the order of events addresses, handles and real time have no part, so that a trace is the same in each process; it may change with the
 * version of the library.
 */
#ifndef TICKWHEEL_SIM_H
#define TICKWHEEL_SIM_H

#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "executor.h"
#include "service.h"
#include "version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_sim tw_sim;

/* ------------------------------------------------------------------- events */

enum tw_sim_event_kind {
	TW_SIM_TURN = 0,    /* the services were driven; value: 0 */
	TW_SIM_HANDED = 1,  /* runs came into the queue; value: how many */
	TW_SIM_REFUSED = 2, /* runs were refused (refuse_percent); value: how many */
	TW_SIM_TAKEN = 3,   /* a worker took a run; value: its number, counted in the order of handing over */
	TW_SIM_RAN = 4,     /* a callback, a work or a plain task has returned; value: its number */
	TW_SIM_SKIPPED = 5, /* it had been cancelled or moved meanwhile; value: its number */
	TW_SIM_NOTE = 6     /* tw_sim_note; value: the note */
};

struct tw_sim_event {
	size_t size;    /* sizeof(struct tw_sim_event), the library's */
	uint64_t at_ns; /* virtual time */
	enum tw_sim_event_kind kind;
	uint32_t worker; /* 0 .. workers - 1; UINT32_MAX: none's */
	uint64_t value;
};

/* Told of each event as it happens. It must call nothing of the simulation's but tw_sim_now and tw_sim_trace. */
typedef void tw_sim_event_fn(void *event_arg, const struct tw_sim_event *event);

/* -------------------------------------------------------------- birth and end */

/* Zero means default for each knob. */
struct tw_sim_config {
	size_t size;             /* sizeof(struct tw_sim_config); 0 only if all else is 0 too */
	uint64_t seed;           /* any number; 0 is one too */
	uint32_t workers;        /* 1 .. 1024; default 4 */
	uint32_t refuse_percent; /* of all hand-overs, drawn; 0 .. 90 */
	uint64_t start_ns;       /* what the clock shows at first; default 0 */
	uint64_t
	    max_late_ns; /* how much later than it could a worker begins, and the tick thread turns, at most; drawn; default 0 */
	uint64_t max_steps; /* at one instant, before a run gives up with -ELOOP; default 16 Mi */

	/* The service's knobs, read during the call. NULL: defaults. Clock, executor, drive, workers and seed are the simulation's: 0 there. */
	const struct tw_service_config *service;

	tw_sim_event_fn *on_event; /* may be NULL */
	void *event_arg;
};

/*
 * Makes a simulation: clock, executor and service. cfg may be NULL. *out is written on success only. -EINVAL: out NULL, a knob out of range,
 * also of the service's; -E2BIG, as for services. -ENOMEM. Whatever fails, nothing is left behind.
 */
TW_API int tw_sim_create(tw_sim **out, const struct tw_sim_config *cfg);

/*
 * Closes the service with TW_CLOSE_DROP if it is open, and frees all; plain tasks that have not run are dropped. NULL is allowed. 0. -EDEADLK:
 * from inside. -EBUSY: another service stands on the clock, or strands and the like use the service. Nothing has changed then.
 */
TW_API int tw_sim_destroy(tw_sim *sim);

/*
 * Closes the simulated service, with TW_CLOSE_DROP or TW_CLOSE_RUN, and plays the workers until all has come to rest: what a
 * tw_service_close on the simulation's thread would wait for in vain. (Instead of TW_CLOSE_DRAIN: tw_sim_run_until_idle first.) 0; -EINVAL: NULL,
 * another mode; -EDEADLK: from inside; -EBUSY as tw_service_close; -ENOMEM; -EPERM; -ELOOP: max_steps.
 */
TW_API int tw_sim_close(tw_sim *sim, enum tw_close_mode mode);

/* The parts; NULL if sim is. The clock is moved by the simulation only. */
TW_API tw_service *tw_sim_service(tw_sim *sim);
TW_API tw_executor *tw_sim_executor(tw_sim *sim);
TW_API tw_clock *tw_sim_clock(tw_sim *sim);

/* ------------------------------------------------------------------- running */

/*
 * One event: a worker takes a run, or carries one out, or the clock goes on to the next instant at which something is to be done and the
 * services are driven. What is due at once comes with the next tick. 1: done. 0: nothing waits and nothing is pending, the clock stands still.
 * -EINVAL: NULL. -EDEADLK: from inside. -ENOMEM: call again. -EPERM.
 */
TW_API int tw_sim_step(tw_sim *sim);

/*
 * All events up to an instant, that included, where the clock then stands; of the next ns nanoseconds. 0. -ERANGE: in the past, or beyond
 * INT64_MAX. -ELOOP: max_steps at one instant, as of tasks that submit each other for ever; may be called again. Else as tw_sim_step.
 */
TW_API int tw_sim_run_until(tw_sim *sim, uint64_t at_ns);
TW_API int tw_sim_run_for(tw_sim *sim, uint64_t ns);

/*
 * Until nothing waits and nothing is pending, but no longer than most_ns of virtual time (TW_FOREVER). 0: idle. -ETIMEDOUT: something is left,
 * as always with an endless series. Else as tw_sim_run_until.
 */
TW_API int tw_sim_run_until_idle(tw_sim *sim, uint64_t most_ns);

/* The virtual time. 0 if NULL. */
TW_API uint64_t tw_sim_now(const tw_sim *sim);

/* A plain task for the workers, as tw_pool_submit for a pool; from anywhere. 0; -EINVAL: sim or fn NULL; -ENOMEM; -EPERM. */
TW_API int tw_sim_submit(tw_sim *sim, tw_fn *fn, void *arg);

/* In a simulated callback: its worker will not be free again before so much virtual time has passed; adds up, to 292 years at most. Elsewhere nothing. */
TW_API void tw_sim_spend(tw_sim *sim, uint64_t ns);

/* In a simulated callback: its worker's number. -1 elsewhere. */
TW_API int tw_sim_worker(const tw_sim *sim);

/* --------------------------------------------------------------------- trace */

/* A number that stands for all events so far, notes included: two runs that have the same saw the same. 0 if NULL. */
TW_API uint64_t tw_sim_trace(const tw_sim *sim);

/* Takes what the program under test has done into the trace. */
TW_API void tw_sim_note(tw_sim *sim, uint64_t note);

/* 0 .. bound - 1, from the seed, apart from what the simulation draws itself: for the test's own choices. 0 if sim is NULL or bound 0. */
TW_API uint64_t tw_sim_random(tw_sim *sim, uint64_t bound);

#ifdef __cplusplus
}
#endif
#endif
