/* What tw_service_liveness says now, as a value. */
#ifndef TEST_SUPPORT_LIVENESS_H
#define TEST_SUPPORT_LIVENESS_H

#include "expect.h"

static inline struct tw_service_liveness liveness_of(tw_service *service)
{
	struct tw_service_liveness seen = {.size = sizeof(seen)};
	expect_eq(tw_service_liveness(service, &seen), 0);
	return seen;
}

#endif
