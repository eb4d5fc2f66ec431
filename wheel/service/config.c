/* The config of a service: defaults and checks. */
#include "wheel/service/config.h"

#include <inttypes.h>
#include <sched.h>
#include <string.h>
#include <sys/random.h>

#include "wheel/base/clock.h"
#include "wheel/base/struct_read.h"
#include "wheel/base/thread.h"
#include "wheel/timer/timing.h"
#include "wheel/base/misuse.h"

static bool power_of_two(uint32_t n)
{
	return n && !(n & (n - 1));
}

#define refuse(...) tw__refuse(-EINVAL, "tw_service_create", __VA_ARGS__)

static int workers_check(const struct tw_service_config *c)
{
	if (c->executor && (c->workers || c->max_workers))
		return refuse("workers %u, max_workers %u: must be 0 with an executor", c->workers,
			      c->max_workers);
	if (c->workers > TW__WORKERS_MAX)
		return refuse("workers %u: must be 1 to %u", c->workers, TW__WORKERS_MAX);
	if (c->max_workers && (c->max_workers < c->workers || c->max_workers > TW__WORKERS_MAX))
		return refuse("max_workers %u: must be %u (workers) to %u", c->max_workers,
			      c->workers ? c->workers : 1, TW__WORKERS_MAX);
	return 0;
}

static int wheel_check(const struct tw_service_config *c)
{
	if (c->tick_ns < 50000 || c->tick_ns > 1000000000)
		return refuse("tick_ns %" PRIu64 ": must be 50000 to 1000000000", c->tick_ns);
	if (!power_of_two(c->buckets) || c->buckets < 64 || c->buckets > 65536)
		return refuse("buckets %u: must be a power of two, 64 to 65536", c->buckets);
	if (c->max_timers > 1u << TW__SLOT_BITS)
		return refuse("max_timers %u: must be 1 to %u", c->max_timers, 1u << TW__SLOT_BITS);
	if (c->lane_entries < 1024 || c->lane_entries > 1u << 30)
		return refuse("lane_entries %u: must be 1024 to %u", c->lane_entries, 1u << 30);
	return 0;
}

static int thread_check(const struct tw_service_config *c)
{
	if ((c->affinity == NULL) != (c->affinity_size == 0))
		return refuse("affinity and affinity_size: set both, or neither");
	if (c->sched_policy != SCHED_OTHER && c->sched_policy != SCHED_FIFO &&
	    c->sched_policy != SCHED_RR)
		return refuse("sched_policy %d: must be SCHED_OTHER, SCHED_FIFO or SCHED_RR",
			      c->sched_policy);
	if ((c->sched_policy == SCHED_OTHER) != (c->sched_priority == 0))
		return refuse("sched_priority %d: must be 0 with SCHED_OTHER, and not 0 otherwise",
			      c->sched_priority);
	return 0;
}

static int config_check(const struct tw_service_config *c)
{
	int r = workers_check(c);
	if (r)
		return r;
	r = wheel_check(c);
	if (r)
		return r;
	if ((unsigned)c->drive > TW_DRIVE_MANUAL)
		return refuse("drive %u is not an enum tw_drive", (unsigned)c->drive);
	if (c->executor && !tw__executor_is_sound(c->executor))
		return refuse(TW__UNSOUND);
	if (!c->clock->ops)
		return refuse("clock is not a clock");
	r = tw__clock_check(c->clock);
	return r ? r : thread_check(c);
}

static uint64_t random_seed(void)
{
	uint64_t seed;
	if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == (ssize_t)sizeof seed)
		return seed;
	return tw__random_mix(tw_clock_now(tw_clock_monotonic()));
}

int tw__config_read(struct tw_service_config *out, const struct tw_service_config *cfg)
{
	int r = TW__CONFIG_READ(tw_service_config, out, buckets, cfg);
	if (r)
		return r;
	if (!out->tick_ns)
		out->tick_ns = 1000000;
	if (!out->buckets)
		out->buckets = 4096;
	if (!out->max_timers)
		out->max_timers = 16u << 20;
	if (!out->lane_entries)
		out->lane_entries = 1u << 20;
	if (!out->clock)
		out->clock = tw__clock_default();
	if (!out->thread_name)
		out->thread_name = "tw";
	while (!out->seed)
		out->seed = random_seed();
	return config_check(out);
}
