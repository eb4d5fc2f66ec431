/*
 * Creation of strands and submits to them: bad input, want of memory, and the memory that a strand
 * takes.
 */
#include <errno.h>

#include "test/support/faults.h"
#include "test/support/strand_suite.h"

TestSuite(strand_create, .init = opened, .fini = closed, .timeout = 30);

Test(strand_create, closed_service_or_pool_is_refused)
{
	tw_strand *out;
	tw_service *service;
	tw_pool *pool;
	struct tw_service_config config = {
	    .size = sizeof config, .drive = TW_DRIVE_MANUAL, .executor = tw_executor_inline()};
	struct tw_pool_config one = {.size = sizeof one, .workers = 1};
	expect_eq(tw_service_create(&service, &config), 0);
	expect_eq(tw_pool_create(&pool, &one), 0);
	expect_eq(tw_pool_close(pool, TW_CLOSE_DRAIN, NULL, NULL), 0);
	expect_eq(tw_strand_create(&out, service, tw_pool_executor(pool)), -ESHUTDOWN);
	expect_eq(tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER), 0);
	expect_eq(tw_strand_create(&out, service, NULL), -ESHUTDOWN);
	expect_eq(tw_service_destroy(service), 0);
	expect_eq(tw_pool_destroy(pool), 0);
}

static void submit_until_refused(uint64_t delay_ns, uint64_t period_ns)
{
	struct noted task = NOTED(&rig, 1);
	struct tw_period period = {
	    .size = sizeof period, .first_ns = delay_ns, .period_ns = period_ns};
	struct tw_strand_task spec = {.size = sizeof spec,
				      .fn = note_run,
				      .arg = &task,
				      .delay_ns = period_ns ? 0 : delay_ns,
				      .period = period_ns ? &period : NULL,
				      .release = note_release};
	int accepted = 0, r;
	for (long nth = 0; nth < 20; nth++) {
		tw_strand_task_id out = {7};
		faults_arm(nth, false);
		r = tw_strand_submit_task(rig.strand, &spec, &out);
		bool refused = faults_disarm();
		if (!refused)
			expect_eq(r, 0);
		expect_eq(r == 0, out.id != 0);
		cr_assert(r == 0 || r == -ENOMEM || r == -EAGAIN);
		accepted += r == 0;
	}
	expect_eq(strand_stats(rig.strand).queued + strand_stats(rig.strand).delayed, accepted);
	expect_eq(tw_strand_close(rig.strand, 0), 0);
	expect_eq(task.releases, accepted);
}

Test(strand_create, want_of_memory_refuses_a_task_and_changes_nothing)
{
	static const uint64_t delays_ns[] = {0, MS, 0}, periods_ns[] = {0, 0, MS};
	for (int i = 0; i < 3; i++) {
		closed();
		opened();
		submit_until_refused(delays_ns[i], periods_ns[i]);
	}
}

Test(strand_create, want_of_memory_leaves_nothing_behind)
{
	for (long nth = 0; nth < 4; nth++) {
		tw_strand *out;
		long before = faults_outstanding();
		faults_arm(nth, false);
		int r = tw_strand_create(&out, rig.rig.service, NULL);
		if (!faults_disarm()) {
			expect_eq(r, 0);
			expect_eq(tw_strand_destroy(out), 0);
			break;
		}
		expect_eq(r, -ENOMEM);
		expect_eq(faults_outstanding(), before);
	}
}

Test(strand_create, a_million_idle_strands_take_128_bytes_each)
{
	tw_strand *strands[100];
	long before = faults_outstanding();
	for (int i = 0; i < 100; i++)
		expect_eq(tw_strand_create(&strands[i], rig.rig.service, NULL), 0);
	/* one block each, whose size the compiler checks */
	expect_eq(faults_outstanding() - before, 100);
	for (int i = 0; i < 100; i++)
		expect_eq(tw_strand_destroy(strands[i]), 0);
	expect_eq(faults_outstanding(), before);
}
