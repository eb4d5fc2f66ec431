/* Strands on a running clock: the order of delayed tasks. */
#include <sched.h>
#include <stdatomic.h>

#include "test/support/shot.h"

TestSuite(strand_real_time, .timeout = 60);

enum { EQUALS = 200000 };

static struct {
	atomic_int next, out_of_order;
} order;

static void check_order(void *arg)
{
	int number = (int)(intptr_t)arg;
	atomic_fetch_add(&order.out_of_order, number != atomic_load(&order.next));
	atomic_store(&order.next, number + 1);
}

/*
 * Equal delays that are submitted one after the other run in that order, although they become due
 * while others are submitted.
 */
Test(strand_real_time, equal_delays_run_in_the_order_of_submission)
{
	tw_service *service = open_service(2);
	tw_strand *strand;
	expect_eq(tw_strand_create(&strand, service, NULL), 0);
	for (int i = 0; i < EQUALS; i++)
		expect_eq(
		    tw_strand_schedule(strand, 3 * MS, check_order, (void *)(intptr_t)i, NULL), 0);
	while (atomic_load(&order.next) < EQUALS)
		sched_yield();
	expect_eq(atomic_load(&order.out_of_order), 0);
	expect_eq(tw_strand_destroy(strand), 0);
	close_service(service);
}
