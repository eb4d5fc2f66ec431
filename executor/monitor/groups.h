/* The largest groups of a service, for viewers. */
#ifndef TW_EXECUTOR_MONITOR_GROUPS_H
#define TW_EXECUTOR_MONITOR_GROUPS_H

#include "wheel/core/service.h"

enum { TW__GROUPS_SHOWN = 16 };

struct tw__seen_group {
	uint32_t index;
	bool closed;
	uint64_t members; /* timers that have not ended */
	uint64_t running; /* of these: callbacks under way */
	uint64_t due_ns;  /* when the next member is due; UINT64_MAX: all run */
	const char *name; /* of the member that is due next, or of any; NULL: it has none */
	tw_fn *fn;        /* its callback, or NULL */
};

/*
 * Looks at each slot in use, and writes the groups with the most members, the largest first. Groups
 * without members are left out. Any thread. Returns their number, or -ENOMEM.
 */
int tw__groups_largest(tw_service *service, struct tw__seen_group out[TW__GROUPS_SHOWN]);

#endif
