#include "members.h"

tw_group group_of(struct rig *rig)
{
	tw_group group = {0};
	expect_eq(tw_group_create(&group, rig->service), 0);
	cr_assert(group.id != 0);
	return group;
}

int schedule_in(struct probe *probe, tw_group group, uint64_t delay_ns, bool released)
{
	struct tw_task task = {
	    .size = sizeof(task),
	    .fn = probe_run,
	    .arg = probe,
	    .when_ns = delay_ns,
	    .release = released ? probe_release : NULL,
	    .group = group,
	};
	return tw_schedule_task(probe->rig->service, &task, &probe->timer);
}

int schedule_series_in(struct probe *probe, tw_group group, struct tw_period period)
{
	struct tw_task task = {
	    .size = sizeof(task),
	    .fn = probe_run,
	    .arg = probe,
	    .period = &period,
	    .release = probe_release,
	    .group = group,
	};
	return tw_schedule_task(probe->rig->service, &task, &probe->timer);
}

struct tw_group_stats gauges(struct rig *rig, tw_group group)
{
	struct tw_group_stats stats = {.size = sizeof(stats)};
	expect_eq(tw_group_stats(rig->service, group, &stats), 0);
	return stats;
}
