/*
 * Simulation: a simulated service and pool, played on one thread and a virtual clock, from a seed.
 * Nothing sleeps. The same program with the same seed sees all events in the same order.
 *
 *     tw_sim *sim;
 *     struct tw_sim_config config = TW_INIT(tw_sim_config);
 *     config.seed = seed;
 *     tw_sim_create(&sim, &config);
 *     tw_schedule(tw_sim_service(sim), 30 * TW_SECOND, on_timeout, connection, &timeout);
 *     tw_sim_run(sim, 60 * TW_SECOND);
 *     ... look at what has happened ...
 *     tw_sim_destroy(sim);
 *
 * Threads: one at a time, for all calls. Call nothing that blocks in a simulated callback or
 * between the runs: nobody would end the wait. tickwheel_sim(7) has what is drawn, and what is not
 * simulated.
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

/* Kinds of events, and what their value is. */
enum tw_sim_event_kind {
	TW_SIM_TURN = 0,    /* the service was driven; value: 0 */
	TW_SIM_HANDED = 1,  /* runs came into the queue; value: how many */
	TW_SIM_REFUSED = 2, /* runs were refused (refuse_percent); value: how many */
	TW_SIM_TAKEN =
	    3, /* a worker took a run; value: its number, counted in the order of handing over */
	TW_SIM_RAN = 4,    /* a callback or a work has returned; value: its number */
	TW_SIM_SKIPPED = 5 /* it had been cancelled or moved meanwhile; value: its number */
};

/* An event of a simulation. */
struct tw_sim_event {
	size_t size;    /* the library's */
	uint64_t at_ns; /* virtual time */
	enum tw_sim_event_kind kind;
	uint32_t worker; /* 0 .. workers - 1; UINT32_MAX: none's */
	uint64_t value;
};

/*
 * Called for each event, on the simulation's thread, which it may block. It may call only
 * tw_sim_trace.
 */
typedef void tw_sim_event_fn(void *event_arg, const struct tw_sim_event *event);

/* -------------------------------------------------------------- birth and end */

/* Knobs of a simulation. */
struct tw_sim_config {
	size_t size;
	uint64_t seed;           /* any number */
	uint32_t workers;        /* 1 .. 1024; default 4 */
	uint32_t refuse_percent; /* of all hand-overs: 0 .. 90 */
	uint64_t start_ns;       /* the clock's first reading: 0 .. INT64_MAX */
	uint64_t max_late_ns;    /* of a worker or the tick thread: 0 .. TW_MAX_DELAY_NS */
	uint64_t max_steps; /* at one instant, before a run gives up with -ELOOP; default 16 Mi */

	/* The service's knobs; NULL: defaults. No clock, executor, drive, (max_)workers, seed. */
	const struct tw_service_config *service;

	tw_sim_event_fn *on_event; /* may be NULL */
	void *event_arg;
};

/*
 * Creates a simulation: clock, executor and service. cfg may be NULL.
 *
 * Returns:
 *   0         *out is the simulation
 *   -EINVAL   a knob is out of range, also of the service's
 *   -ENOMEM   no memory
 */
TW_API int tw_sim_create(tw_sim **out, const struct tw_sim_config *cfg);

/*
 * Closes the service with TW_CLOSE_DROP if it is open, and frees all. NULL is allowed.
 *
 * Threads: the simulation's.
 * Returns:
 *   0          freed
 *   -EDEADLK   called from inside
 *   -EBUSY     layers use the service: destroy them first
 */
TW_API int tw_sim_destroy(tw_sim *sim);

/*
 * Closes the simulated service with TW_CLOSE_DROP or TW_CLOSE_RUN, and plays the workers until all
 * rests; tw_service_close would wait without end. For a drain, call tw_sim_run before.
 *
 * Threads: the simulation's.
 * Returns:
 *   0          closed
 *   -EINVAL    another mode
 *   -EDEADLK   called from inside
 *   -EBUSY     as tw_service_close
 *   -ELOOP     max_steps events at one instant
 *   -ENOMEM    no memory: call again; what TW_CLOSE_RUN could not run was dropped
 */
TW_API int tw_sim_close(tw_sim *sim, enum tw_close_mode mode);

/*
 * Returns the simulated service.
 *
 * Returns: the service; NULL if sim is NULL.
 */
TW_API tw_service *tw_sim_service(tw_sim *sim);

/* ------------------------------------------------------------------- running */

/*
 * Plays one event: a worker takes a run or carries one out, or the clock goes on to the next
 * instant with something to do.
 *
 * Threads: the simulation's.
 * Returns:
 *   1          played
 *   0          nothing waits and nothing is pending
 *   -EDEADLK   called from inside
 *   -ENOMEM    call again
 */
TW_API int tw_sim_step(tw_sim *sim);

/*
 * Plays all events of the next ns nanoseconds, and moves the clock there. TW_FOREVER: plays until
 * nothing waits and nothing is pending, and the clock stays there. An endless series needs a bound.
 *
 * Threads: the simulation's.
 * Returns:
 *   1          something waits or is pending
 *   0          nothing waits and nothing is pending
 *   -ERANGE    the instant is above INT64_MAX
 *   -EDEADLK   called from inside
 *   -ELOOP     max_steps events at one instant; may be called again
 *   -ENOMEM    call again
 */
TW_API int tw_sim_run(tw_sim *sim, uint64_t ns);

/*
 * Keeps the simulated worker that runs this callback busy for ns of virtual time; outside of a
 * callback it does nothing.
 *
 * Threads: the simulation's.
 */
TW_API void tw_sim_spend(tw_sim *sim, uint64_t ns);

/* --------------------------------------------------------------------- trace */

/*
 * Returns a number for all events so far. Runs with equal numbers had the same events in the same
 * order.
 *
 * Threads: the simulation's.
 * Returns: the number; 0 if sim is NULL.
 */
TW_API uint64_t tw_sim_trace(const tw_sim *sim);

#ifdef __cplusplus
}
#endif
#endif
