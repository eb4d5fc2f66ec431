/* What suites of tests on one strand (strands.h) begin with. */
#ifndef TEST_SUPPORT_STRAND_SUITE_H
#define TEST_SUPPORT_STRAND_SUITE_H

#include "strands.h"

static struct strand_rig rig;

static inline void opened(void)
{
	strand_rig_open(&rig);
}

static inline void closed(void)
{
	expect_in_fini();
	strand_rig_close(&rig);
}

#endif
