/* The config of a scheduler: defaults and checks. */
#include "executor/scheduler/config.h"

#include <errno.h>

#include "executor/base/handles.h"
#include "wheel/base/misuse.h"
#include "wheel/base/struct_read.h"

static const int64_t usual_timeout_ns[TW_PRIORITIES] = {
    [TW_PRIORITY_IMMEDIATE] = -INT64_C(1000000),
    [TW_PRIORITY_USER_BLOCKING] = INT64_C(250000000),
    [TW_PRIORITY_NORMAL] = INT64_C(5000000000),
    [TW_PRIORITY_LOW] = INT64_C(10000000000),
    [TW_PRIORITY_IDLE] = INT64_C(1073741823000000),
};

enum { MOST_EVENTS = 1 << 24 };
#define MOST_NS (INT64_C(1) << 62)

static bool timeouts_are_good(const struct tw_scheduler_config *config)
{
	for (int i = 0; i < TW_PRIORITIES; i++)
		if (config->timeout_ns[i] > MOST_NS || config->timeout_ns[i] < -MOST_NS)
			return false;
	return config->timeout_ns[TW_PRIORITY_NONE] == 0;
}

#define refuse(...) tw__refuse(-EINVAL, "tw_scheduler_create", __VA_ARGS__)

static int check_host(const struct tw_scheduler_config *config)
{
	bool is_manual = config->host == TW_HOST_MANUAL;
	if ((unsigned)config->host > TW_HOST_MANUAL)
		return refuse("host %u is not an enum tw_scheduler_host", (unsigned)config->host);
	if (is_manual && config->executor)
		return refuse("executor must be NULL with TW_HOST_MANUAL");
	if (config->executor && !tw__executor_is_sound(config->executor))
		return refuse(TW__UNSOUND);
	if (!is_manual && (config->wanted || config->wanted_arg))
		return refuse("wanted must be NULL without TW_HOST_MANUAL");
	return 0;
}

static int check_config(const struct tw_scheduler_config *config)
{
	if (config->max_tasks > TW__NODES_MAX)
		return refuse("max_tasks %u: must be 1 to %u", config->max_tasks,
			      (unsigned)TW__NODES_MAX);
	if (config->slice_ns > (uint64_t)MOST_NS)
		return refuse("slice_ns is above 2^62");
	if (config->log_events > MOST_EVENTS)
		return refuse("log_events %u: must be 0 to %u", config->log_events,
			      (unsigned)MOST_EVENTS);
	if (config->reserved)
		return refuse("reserved %u: must be 0", config->reserved);
	if (!timeouts_are_good(config))
		return refuse("timeout_ns: each must be -2^62 to 2^62, and 0 for TW_PRIORITY_NONE");
	return check_host(config);
}

int tw__scheduler_config_read(struct tw_scheduler_config *config,
			      const struct tw_scheduler_config *cfg)
{
	int r = TW__CONFIG_READ(tw_scheduler_config, config, executor, cfg);
	if (!r)
		r = check_config(config);
	if (r)
		return r;
	if (!config->max_tasks)
		config->max_tasks = 1 << 20;
	if (!config->slice_ns)
		config->slice_ns = 5000000;
	for (int i = 0; i < TW_PRIORITIES; i++)
		if (!config->timeout_ns[i])
			config->timeout_ns[i] = usual_timeout_ns[i];
	return 0;
}
