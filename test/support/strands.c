#include "strands.h"

#include <sched.h>
#include <stdlib.h>

#include "executor/strand/internal.h"

void strand_rig_open(struct strand_rig *rig)
{
	queue_executor_open(&rig->queue);
	rig_open(&rig->rig, NULL);
	expect_eq(tw_strand_create(&rig->strand, rig->rig.service, &rig->queue.base), 0);
}

void strand_rig_close(struct strand_rig *rig)
{
	expect_eq(tw_strand_destroy(rig->strand), 0);
	strand_rig_pump(rig);
	rig_close(&rig->rig);
	queue_executor_close(&rig->queue);
}

void strand_rig_pump(struct strand_rig *rig)
{
	while (queue_executor_run_all(&rig->queue) > 0)
		;
}

void strand_rig_advance(struct strand_rig *rig, uint64_t ns)
{
	uint64_t to_ns = rig_now(&rig->rig) + ns;
	strand_rig_pump(rig);
	while (rig_now(&rig->rig) < to_ns) {
		uint64_t left_ns = to_ns - rig_now(&rig->rig);
		rig_advance(&rig->rig, left_ns < rig->rig.tick_ns ? left_ns : rig->rig.tick_ns);
		strand_rig_pump(rig);
	}
}

void note_run(void *arg)
{
	struct noted *noted = arg;
	struct rig *rig = &noted->rig->rig;
	if (rig->ran == rig->room) {
		rig->room = rig->room ? 2 * rig->room : 64;
		rig->events = realloc(rig->events, rig->room * sizeof *rig->events);
		if (!rig->events)
			abort();
	}
	noted->ran_at_ns = rig_now(rig);
	rig->events[rig->ran++] = (struct event){.id = noted->id, .at_ns = noted->ran_at_ns};
	if (noted->act)
		noted->act(noted);
	noted->runs++;
}

void note_release(void *arg, enum tw_fate fate)
{
	struct noted *noted = arg;
	if (noted->act_in_release)
		noted->act_in_release(noted);
	noted->fate = fate;
	noted->releases++;
}

void noted_submit(struct noted *noted, uint64_t delay_ns)
{
	expect_eq(tw_strand_schedule(noted->rig->strand, delay_ns, note_run, noted, &noted->task),
		  0);
	expect_ne(noted->task.id, 0);
}

void noted_submit_released(struct noted *noted, uint64_t delay_ns)
{
	struct tw_strand_task spec = {.size = sizeof spec,
				      .fn = note_run,
				      .arg = noted,
				      .delay_ns = delay_ns,
				      .release = note_release};
	expect_eq(tw_strand_submit_task(noted->rig->strand, &spec, &noted->task), 0);
	expect_ne(noted->task.id, 0);
}

struct tw_strand_stats strand_stats(tw_strand *strand)
{
	struct tw_strand_stats stats = {.size = sizeof stats};
	expect_eq(tw_strand_stats(strand, &stats), 0);
	return stats;
}

void expect_ids(const struct strand_rig *rig, const int *ids, size_t n)
{
	expect_eq(rig->rig.ran, n);
	for (size_t i = 0; i < n; i++)
		expect_eq(rig->rig.events[i].id, ids[i]);
}

void await_strand_sleeper(tw_strand *strand)
{
	for (bool sleeps = false; !sleeps; sched_yield()) {
		tw__object_lock(&strand->object);
		sleeps = strand->object.sleepers;
		tw__object_unlock(&strand->object);
	}
}
