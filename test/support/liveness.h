/* What tw_service_liveness and tw_service_dump say now, as values. */
#ifndef TEST_SUPPORT_LIVENESS_H
#define TEST_SUPPORT_LIVENESS_H

#include <stdio.h>

#include "expect.h"

static inline struct tw_service_liveness liveness_of(tw_service *service)
{
	struct tw_service_liveness seen = {.size = sizeof(seen)};
	expect_eq(tw_service_liveness(service, &seen), 0);
	return seen;
}

/* To be freed. */
static inline char *dump_of(tw_service *service)
{
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	cr_assert(out != NULL);
	expect_eq(tw_service_dump(service, out), 0);
	expect_eq(fclose(out), 0);
	return text;
}

#endif
