#include "actions.h"

#include "executor/action/internal.h"

int work_run(tw_action *action, void *state)
{
	struct work *work = state;
	if (work->log && work->log->count < LOG_MOST) {
		work->log->ids[work->log->count] = work->id;
		work->log->at_ns[work->log->count++] = tw__actions_now(work->scheduler);
	}
	work->runs++;
	if (work->rearms > 0) {
		work->rearms--;
		work->error = tw_action_schedule(action, work, 0);
	}
	if (work->act)
		work->act(work);
	return work->answer;
}

void work_schedule(struct work *work, tw_action_scheduler *scheduler, uint64_t delay_ns)
{
	work->scheduler = scheduler;
	expect_eq(tw_action_create(&work->action, scheduler, work_run, NULL), 0);
	expect_eq(tw_action_schedule(work->action, work, delay_ns), 0);
}

tw_action_scheduler *scheduler_of(const struct tw_action_scheduler_config *config)
{
	tw_action_scheduler *scheduler = NULL;
	expect_eq(tw_action_scheduler_create(&scheduler, config), 0);
	return scheduler;
}

tw_action_scheduler *scheduler_on(tw_service *service, enum tw_action_kind kind)
{
	return scheduler_of(&(struct tw_action_scheduler_config){
	    .size = sizeof(struct tw_action_scheduler_config), .kind = kind, .service = service});
}

struct tw_action_scheduler_stats action_stats(tw_action_scheduler *scheduler)
{
	struct tw_action_scheduler_stats stats = {.size = sizeof(stats)};
	expect_eq(tw_action_scheduler_stats(scheduler, &stats), 0);
	return stats;
}

void expect_log_is(const struct log *log, const int *ids, int count)
{
	for (int i = 0; i < count && i < log->count; i++)
		cr_assert_eq(log->ids[i], ids[i], "run %d is of %d, not %d", i, log->ids[i],
			     ids[i]);
	expect_eq(log->count, count);
}
