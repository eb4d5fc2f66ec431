#include "wheel/base/thread_misuse.h"

#include <sched.h>
#include <stdbool.h>

#include "wheel/base/misuse.h"
#include "wheel/base/thread.h"

static void *end_immediately(void *arg)
{
	return arg;
}

/* Whether the system calls a tick thread with only these knobs invalid. */
static bool is_refused(struct tw_service_config only)
{
	pthread_t thread;
	only.thread_name = "tw";
	int r = tw__spawn(&thread, &only, "", true, end_immediately, NULL);
	if (!r)
		pthread_join(thread, NULL);
	return r == -EINVAL;
}

int tw__thread_misuse(const char *call, int error, const struct tw_service_config *config)
{
	struct tw_service_config stack = {.stack_size = config->stack_size}, processors = stack,
				 policy = stack;
	processors.affinity = config->affinity;
	processors.affinity_size = config->affinity_size;
	policy.sched_policy = config->sched_policy;
	policy.sched_priority = config->sched_priority;
	if (error != -EINVAL)
		return error;
	if (is_refused(stack))
		return tw__refuse(error, call, "stack_size %zu: the system refuses such a stack",
				  config->stack_size);
	if (is_refused(processors))
		return tw__refuse(error, call,
				  "affinity: the process may use none of its processors");
	if (is_refused(policy))
		return tw__refuse(error, call, "sched_priority %d: must be %d to %d",
				  config->sched_priority,
				  sched_get_priority_min(config->sched_policy),
				  sched_get_priority_max(config->sched_policy));
	return error;
}
