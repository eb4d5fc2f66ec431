/*
 * Assertions that print both sides, for the test's own thread only: on any other an assertion of
 * the framework is undefined, so there a test records and looks afterwards.
 */
#ifndef TEST_SUPPORT_EXPECT_H
#define TEST_SUPPORT_EXPECT_H

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stddef.h>

#include "tickwheel/layers.h"

/* For the start of a fini: Criterion passes a test whose fini fails; one that aborts fails. */
void expect_in_fini(void);

/* Aborts in a fini if it does not hold. */
void expect_holds(bool holds, const char *what);

/* Values that fit a long long. */
#define expect_compare(actual, operator, wanted)                                         \
	do {                                                                             \
		long long is_ = (long long)(actual), wanted_ = (long long)(wanted);      \
		expect_holds(is_ operator wanted_, #actual " " #operator" " #wanted);    \
		cr_assert(is_ operator wanted_, "%s is %lld, not %s %lld", #actual, is_, \
			  #operator, wanted_);                                           \
	} while (0)

#define expect_eq(actual, wanted) expect_compare(actual, ==, wanted)
#define expect_ne(actual, wanted) expect_compare(actual, !=, wanted)
#define expect_ge(actual, wanted) expect_compare(actual, >=, wanted)
#define expect_gt(actual, wanted) expect_compare(actual, >, wanted)
#define expect_le(actual, wanted) expect_compare(actual, <=, wanted)
#define expect_lt(actual, wanted) expect_compare(actual, <, wanted)

struct tw_service_stats stats_of(tw_service *service);

/* Of a quiet service: tw_service_validate finds nothing, and the ledger balances. */
void expect_sound(tw_service *service);

/*
 * Two snapshots around calls that were refused: nothing of the timers has changed. Beyond
 * `rejected`.
 */
void expect_same_state(const struct tw_service_stats *before, const struct tw_service_stats *after);

/* The same, and the refusals were for bad arguments, which `rejected` does not count. */
void expect_untouched(const struct tw_service_stats *before, tw_service *service);

#endif
