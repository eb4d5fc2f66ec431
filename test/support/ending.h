/* tw_group_close_then of a group of probes, and a completion that writes down what it saw. */
#ifndef TEST_SUPPORT_ENDING_H
#define TEST_SUPPORT_ENDING_H

#include "members.h"

/* A group with its completion, and what it saw. */
struct ending {
	struct rig *rig;
	tw_group group;
	struct probe *members;
	int member_count;
	int is_in_timer; /* says tw_current */
	int calls;
	int ended_members; /* at the call */
	int answer;        /* of close_then */
	uint64_t self;
	pthread_t called_on;
	void (*act)(struct ending *ending);
};

static inline void complete(void *arg)
{
	struct ending *ending = arg;
	ending->calls++;
	struct tw_run_info info = {.size = sizeof(info)};
	ending->self = tw_self().id;
	ending->is_in_timer = tw_current(&info);
	ending->called_on = pthread_self();
	for (int i = 0; i < ending->member_count; i++)
		ending->ended_members += ending->members[i].releases == 1;
	if (ending->act)
		ending->act(ending);
}

static inline struct ending ending_of(struct rig *rig)
{
	return (struct ending){.rig = rig, .group = group_of(rig)};
}

static inline int end(struct ending *ending)
{
	return tw_group_close_then(ending->rig->service, ending->group, complete, ending);
}

static inline void add_members(struct ending *ending, struct probe *members, int n,
			       uint64_t delay_ns)
{
	ending->members = members;
	ending->member_count = n;
	for (int i = 0; i < n; i++) {
		members[i] = PROBE(ending->rig, i);
		expect_eq(schedule_in(&members[i], ending->group, delay_ns, true), 0);
	}
}

/* It was called once, after all members had been released. */
static inline void expect_complete(const struct ending *ending)
{
	expect_eq(ending->calls, 1);
	expect_eq(ending->ended_members, ending->member_count);
	expect_eq(ending->self, 0);
	expect_eq(ending->is_in_timer, 0);
}

#endif
