/* The config of a service: defaults and checks. */
#include "wheel/service/config.h"

#include <errno.h>
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

static int workers_check(const struct tw_service_config *c)
{
	if (c->executor && (c->workers || c->max_workers))
		return tw__misuse(-EINVAL, "tw_service_create: workers %u, max_workers %u: must be 0 with an executor",
				  c->workers, c->max_workers);
	if (c->workers > TW__WORKERS_MAX)
		return tw__misuse(-EINVAL, "tw_service_create: workers %u: must be 1 to %u", c->workers,
				  TW__WORKERS_MAX);
	if (c->max_workers && (c->max_workers < c->workers || c->max_workers > TW__WORKERS_MAX))
		return tw__misuse(-EINVAL, "tw_service_create: max_workers %u: must be %u (workers) to %u",
				  c->max_workers, c->workers ? c->workers : 1, TW__WORKERS_MAX);
	if (c->reserved)
		return tw__misuse(-EINVAL, "tw_service_create: reserved %u: must be 0", c->reserved);
	return 0;
}

static int config_check(const struct tw_service_config *c)
{
	int r = workers_check(c);
	if (r)
		return r;
	if (c->tick_ns < 50000 || c->tick_ns > 1000000000)
		return -EINVAL;
	if (!power_of_two(c->buckets) || c->buckets < 64 || c->buckets > 65536)
		return -EINVAL;
	if (c->max_timers > 1u << TW__SLOT_BITS || c->lane_entries < 1024 || c->lane_entries > 1u << 30)
		return -EINVAL;
	if ((unsigned)c->drive > TW_DRIVE_MANUAL || (unsigned)c->on_refused > TW_REFUSED_DROP)
		return -EINVAL;
	if ((c->stuck_ns == 0) != (c->on_stuck == NULL))
		return -EINVAL;
	if ((c->executor && !tw__executor_is_sound(c->executor)) || !c->clock->ops)
		return -EINVAL;
	if (tw__clock_inherited(c->clock))
		return -EPERM;
	if ((c->affinity == NULL) != (c->affinity_size == 0))
		return -EINVAL;
	if ((c->sched_policy == SCHED_OTHER) != (c->sched_priority == 0))
		return -EINVAL;
	if (c->sched_policy != SCHED_OTHER && c->sched_policy != SCHED_FIFO && c->sched_policy != SCHED_RR)
		return -EINVAL;
	return 0;
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
	memset(out, 0, sizeof *out);
	int r = cfg ? tw__config_copy(out, sizeof *out, offsetof(struct tw_service_config, buckets), cfg) : 0;
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
