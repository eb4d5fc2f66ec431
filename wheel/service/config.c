/* The config of a service: defaults and checks. */
#include "wheel/service/config.h"

#include <sched.h>

#include "mpsc/base/clock.h"
#include "mpsc/base/random.h"
#include "mpsc/base/struct_read.h"
#include "mpsc/base/thread.h"
#include "mpsc/base/misuse.h"
#include "wheel/slot/slots.h"

static bool power_of_two(uint32_t n)
{
	return n && !(n & (n - 1));
}

static int config_check(const struct tw_service_config *c)
{
	const char *bad = NULL;
	uint32_t most = c->max_workers ? c->max_workers : TW__WORKERS_MAX;
	bool is_plain = c->sched_policy == SCHED_OTHER;
	tw__need(&bad, c->workers <= (c->executor ? 0 : TW__WORKERS_MAX), "workers");
	tw__need(&bad,
		 c->executor ? !c->max_workers : c->workers <= most && most <= TW__WORKERS_MAX,
		 "max_workers");
	tw__need(&bad, c->tick_ns >= 50000 && c->tick_ns <= 1000000000, "tick_ns");
	tw__need(&bad, power_of_two(c->buckets) && c->buckets >= 64 && c->buckets <= 65536,
		 "buckets");
	tw__need(&bad, c->max_timers <= 1u << TW__SLOT_BITS, "max_timers");
	tw__need(&bad, c->lane_entries >= 1024 && c->lane_entries <= 1u << 30, "lane_entries");
	tw__need(&bad, (unsigned)c->drive <= TW_DRIVE_MANUAL, "drive");
	tw__need(&bad, tw__executor_is_sound(c->executor), "executor");
	tw__need(&bad, c->clock->ops, "clock");
	tw__need(&bad, (c->affinity == NULL) == (c->affinity_size == 0), "affinity");
	tw__need(&bad, is_plain || c->sched_policy == SCHED_FIFO || c->sched_policy == SCHED_RR,
		 "sched_policy");
	tw__need(&bad, is_plain == (c->sched_priority == 0), "sched_priority");
	int r = tw__bad_member(-EINVAL, "tw_service_create", "tw_service_config", bad);
	return r ? r : tw__clock_check(c->clock);
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
		out->seed = tw__random_bits();
	return config_check(out);
}
