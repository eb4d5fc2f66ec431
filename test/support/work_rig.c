#include "test/support/work_rig.h"

#include <string.h>

static void count_wanted(void *arg)
{
	((struct work_rig *)arg)->wanted++;
}

struct tw_scheduler_config work_rig_config(struct work_rig *rig)
{
	return (struct tw_scheduler_config){
	    .size = sizeof(struct tw_scheduler_config),
	    .host = TW_HOST_MANUAL,
	    .wanted = count_wanted,
	    .wanted_arg = rig,
	};
}

void work_rig_open(struct work_rig *rig, const struct tw_scheduler_config *cfg)
{
	memset(rig, 0, sizeof *rig);
	rig_open(&rig->rig, NULL);
	struct tw_scheduler_config usual = work_rig_config(rig);
	expect_eq(tw_scheduler_create(&rig->scheduler, rig->rig.service, cfg ? cfg : &usual), 0);
}

void work_rig_close(struct work_rig *rig)
{
	expect_eq(tw_scheduler_destroy(rig->scheduler), 0);
	rig_close(&rig->rig);
}

struct tw_scheduler_stats work_rig_stats(struct work_rig *rig)
{
	struct tw_scheduler_stats stats = {.size = sizeof stats};
	expect_eq(tw_scheduler_stats(rig->scheduler, &stats), 0);
	return stats;
}

void work_rig_spend(struct work_rig *rig, uint64_t ns)
{
	tw_clock_manual_set(rig->rig.clock, rig_now(&rig->rig) + ns);
}

static int work_on(struct job *job, const struct tw_turn *turn)
{
	while (job->units && (turn->did_timeout || !tw_scheduler_should_yield(turn->scheduler))) {
		work_rig_spend(job->rig, job->unit_ns);
		job->units--;
	}
	return job->units ? TW_TURN_AGAIN : job->result;
}

int job_turn(struct tw_turn *turn, void *arg)
{
	struct job *job = arg;
	struct work_rig *rig = job->rig;
	if (rig->ran < WORK_RIG_RUNS)
		rig->order[rig->ran++] = job->id;
	job->timed_out += turn->did_timeout;
	job->turns++;
	int result = job->act ? job->act(job, turn) : work_on(job, turn);
	if (job->turns <= 16)
		job->left[job->turns - 1] = job->units;
	return result;
}

void job_done(void *arg, enum tw_fate fate, int result)
{
	struct job *job = arg;
	job->told++;
	job->fate = fate;
	job->told_result = result;
}

static void post(struct job *job, struct tw_scheduler_task post)
{
	post.size = sizeof post;
	post.fn = job_turn;
	post.arg = job;
	post.done = job_done;
	expect_eq(tw_scheduler_submit_task(job->rig->scheduler, &post, &job->task), 0);
}

void job_post(struct job *job, enum tw_priority priority)
{
	post(job, (struct tw_scheduler_task){.priority = priority});
}

void job_post_delayed(struct job *job, enum tw_priority priority, uint64_t delay_ns)
{
	post(job, (struct tw_scheduler_task){.priority = priority, .delay_ns = delay_ns});
}

void job_post_timeout(struct job *job, int64_t timeout_ns)
{
	post(job, (struct tw_scheduler_task){.flags = TW_SCHEDULER_TASK_TIMEOUT,
					     .timeout_ns = timeout_ns});
}

void expect_told(const struct job *job, enum tw_fate fate, int result)
{
	expect_eq(job->told, 1);
	expect_eq(job->fate, fate);
	expect_eq(job->told_result, result);
}

void expect_order(const struct work_rig *rig, const int *ids, unsigned n)
{
	expect_eq(rig->ran, n);
	for (unsigned i = 0; i < n; i++)
		expect_eq(rig->order[i], ids[i]);
}
