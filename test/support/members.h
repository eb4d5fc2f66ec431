/* Probes that are members of groups. */
#ifndef TEST_SUPPORT_MEMBERS_H
#define TEST_SUPPORT_MEMBERS_H

#include "rig.h"

/* A new group of the rig's service. */
tw_group group_of(struct rig *rig);

/* Schedule a probe as a member; what tw_schedule_task answers. A series always has a release. */
int schedule_in(struct probe *probe, tw_group group, uint64_t delay_ns, bool released);
int schedule_series_in(struct probe *probe, tw_group group, struct tw_period period);

struct tw_group_stats gauges(struct rig *rig, tw_group group);

#endif
