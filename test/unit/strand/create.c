/* Creation of strands: where it is refused, and the memory that a strand takes. */
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
