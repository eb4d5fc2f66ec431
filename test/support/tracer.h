/*
 * A tracer of this program: puts a trap in place of each static probe's nop (mpsc/base/probes.h),
 * and records the probes that fire. One thread at a time; x86-64 alone, where the probes were built
 * in.
 */
#ifndef TEST_SUPPORT_TRACER_H
#define TEST_SUPPORT_TRACER_H

#include <stdbool.h>
#include <stdint.h>

enum { TRACER_ARGUMENTS = 5 };

struct traced {
	const char *name;
	uint64_t arguments[TRACER_ARGUMENTS];
};

/*
 * Arms all probes of the library. False: there are none, or this is not a place where they can be
 * armed.
 */
bool tracer_open(void);

/* The probes that have fired since tracer_open, or since the last tracer_forget. */
unsigned tracer_count(const char *name);
const struct traced *tracer_last(const char *name); /* NULL: none */
void tracer_forget(void);

#endif
