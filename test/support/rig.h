/*
 * A service on a clock that the test moves by hand, and probes: timers that write down what became
 * of them.
 *
 * By default the test's thread drives the service and runs the callbacks inline, so that a test is
 * one thread and exact.
 */
#ifndef TEST_SUPPORT_RIG_H
#define TEST_SUPPORT_RIG_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "expect.h"
#include "random.h"

#define MS TW_MILLISECOND
#define SECOND TW_SECOND
#define MINUTE (60 * TW_SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

/*
 * Where the clocks of rigs start: a multiple of each tick that tests use, so that ticks fall on
 * round numbers.
 */
#define RIG_START_NS (1000 * TW_SECOND)

/* One run of a probe. */
struct event {
	int id;
	uint64_t at_ns;
	uint64_t overruns;
	uint64_t self; /* tw_self().id */
	bool closing;
	uint64_t late_ns;
	pthread_t thread;
};

struct rig {
	tw_clock *clock;
	tw_service *service;
	uint64_t tick_ns;
	bool is_real; /* on the monotonic clock, with a tick thread or not */

	pthread_mutex_t lock; /* for what follows; callbacks may come from several threads */
	struct event *events;
	size_t ran; /* events so far */
	size_t room;
};

/* Manual drive, inline, default tick, on a manual clock. */
struct tw_service_config rig_config(void);

/* cfg NULL: rig_config(). A clock in cfg is not used: the rig has its own. */
void rig_open(struct rig *rig, const struct tw_service_config *cfg);

/* On the monotonic clock; cfg as it is. */
void rig_open_real(struct rig *rig, struct tw_service_config cfg);

/* The rig must be quiet: it is checked, then all is destroyed. */
void rig_close(struct rig *rig);

/* Maps the slots of n timers, so that later schedules ask the system for none. */
void rig_map_slots(const struct rig *rig, int n);

uint64_t rig_now(const struct rig *rig);
void rig_advance(struct rig *rig, uint64_t ns);
void rig_advance_to(struct rig *rig, uint64_t ns);

/* The tick in which an instant falls: the first one not before it. */
uint64_t rig_tick_of(const struct rig *rig, uint64_t ns);

/* ------------------------------------------------------------------ probes */

/* Must stay where it is while its timer lives. */
struct probe {
	struct rig *rig;
	int id;
	tw_timer timer;
	/* done inside the callback; it records, and asserts nothing */
	void (*act)(struct probe *probe);
	void (*act_in_release)(struct probe *probe);
	struct probe *other; /* for act */
	int answer;          /* for act */
	atomic_int runs;
	atomic_int releases;
	atomic_int fate; /* an enum tw_fate */
	pthread_t released_on;
	uint64_t ran_at_ns;
	uint64_t overruns; /* over all runs */
};

#define PROBE(rig_, id_) ((struct probe){.rig = (rig_), .id = (id_)})

void probe_run(void *arg);
void probe_release(void *arg, enum tw_fate fate);

/* Schedule it, which must succeed. */
void probe_schedule(struct probe *probe, uint64_t delay_ns);
void probe_schedule_at(struct probe *probe, uint64_t deadline_ns);
void probe_schedule_released(struct probe *probe, uint64_t delay_ns); /* with a release */
void probe_schedule_every(struct probe *probe, struct tw_period period);

/* The full form: a task for the probe, with a release, to be filled in; and its scheduling. */
struct tw_task probe_task(struct probe *probe);
void probe_schedule_task(struct probe *probe, const struct tw_task *task);

struct tw_period rate_of(uint64_t first_ns, uint64_t period_ns, uint64_t count);
struct tw_period delay_of(uint64_t first_ns, uint64_t period_ns, uint64_t count);

/* The probe has run once, at this instant. */
void expect_ran_at(const struct probe *probe, uint64_t at_ns);

/* Its release was called once, with this fate. */
void expect_released(const struct probe *probe, enum tw_fate fate);

/* All events so far came in ascending order of their probes' ids. */
void expect_ids_ascend(const struct rig *rig);

#endif
