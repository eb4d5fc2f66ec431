/*
 * A close at each moment of what it meets: a run that arms its timer again, and a cancel that calls
 * a release. The close does not wait, so its answers are -ETIMEDOUT or 0, and each has a meaning.
 */
#include <errno.h>

#include "test/support/interleave.h"
#include "test/support/rig_suite.h"

TestSuite(close_races, .init = open_rig, .fini = close_rig, .timeout = 60);

static struct probe probe;
static int answer, released; /* of the close; when it answered */

static void again(struct probe *p)
{
	p->answer = tw_reset(p->rig->service, tw_self(), MS);
}

static void run_ticket(void *arg)
{
	(void)arg;
	queue_executor_run_next(&queue);
}

static void cancel(void *arg)
{
	(void)arg;
	tw_cancel(rig.service, probe.timer);
}

static void close_now(void *arg)
{
	answer = tw_service_close(rig.service, *(enum tw_close_mode *)arg, 0);
	released = probe.releases;
}

/* What the close meets, and the timer that it happens to. */
static const struct row {
	void (*call)(void *arg);
	bool due;
	uint32_t flags;
} rows[] = {
    {run_ticket, .due = true},
    {run_ticket, .due = true, .flags = TW_TASK_PERSISTENT},
    {cancel, .due = false},
};

static void open_row(const struct row *row)
{
	reopen_on_queue();
	/* the thread's first run takes memory, which is long in single steps */
	static struct probe first;
	first = PROBE(&rig, 0);
	probe_schedule(&first, 0);
	rig_advance(&rig, MS);
	expect_eq(queue_executor_run_next(&queue), 1);
	probe = PROBE(&rig, 1);
	probe.act = again;
	struct tw_task task = probe_task(&probe);
	task.flags = row->flags;
	task.when_ns = MS;
	probe_schedule_task(&probe, &task);
	if (row->due)
		rig_advance(&rig, MS);
}

/* The close in the middle of the call, at its nth point. False: it came after the call. */
static bool meet(const struct row *row, enum tw_close_mode mode, unsigned nth)
{
	open_row(row);
	bool stopped = interleave(nth, row->call, NULL, close_now, &mode);
	expect_eq(answer == 0 || answer == -ETIMEDOUT, true);
	if (answer == 0)
		expect_eq(released, 1); /* no release comes later */
	expect_eq(stats_of(rig.service).pending, 0);
	expect_eq(stats_of(rig.service).disarmed, 0);
	expect_eq(probe.releases, 1);
	expect_eq(probe.runs <= 1, true);
	queue_executor_run_all(&queue);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
	expect_eq(probe.releases, 1);
	expect_eq(probe.runs <= 1, true);
	return stopped;
}

Test(close_races, in_the_middle_of_what_it_meets)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (unsigned nth = 1; meet(&rows[i], TW_CLOSE_DROP, nth); nth++) {
		}
}
