/*
 * Texts for refused calls (tickwheel/misuse.h). Call these without locks: the hook is user code.
 * test/lint/misuse.sh refuses an error of bad input without a text, and a text that no test
 * expects.
 */
#ifndef TW_MPSC_MISUSE_H
#define TW_MPSC_MISUSE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "mpsc/base/atomics.h"
#include "tickwheel/misuse.h"

/* Tells the misuse hook why `call` refuses, and returns `error`. */
#define tw__refuse(error, call, ...) (tw__refuse_tell(call, __VA_ARGS__), (error))

#define tw__invalid(...) tw__refuse(-EINVAL, __func__, __VA_ARGS__)

TW_PRIVATE __attribute__((format(printf, 2, 3), cold)) void
tw__refuse_tell(const char *call, const char *format, ...);

#define TW__BAD_VALUE "has a value that the header does not allow"

#define tw__bad(error, call, parameter) tw__refuse(error, call, "%s " TW__BAD_VALUE, parameter)

/*
 * The check of a struct from the caller, one rule a line:
 *
 *     const char *bad = NULL;
 *     tw__need(&bad, !c->reserved, "reserved");
 *     return tw__bad_member(-EINVAL, "tw_pool_create", "tw_pool_config", bad);
 */
static inline void tw__need(const char **bad, bool holds, const char *member)
{
	if (!holds && !*bad)
		*bad = member;
}

/* Returns 0 if no member is bad. */
static inline int tw__bad_member(int error, const char *call, const char *type, const char *bad)
{
	return bad ? tw__refuse(error, call, "%s.%s " TW__BAD_VALUE, type, bad) : 0;
}

static inline int tw__waits_inside(const char *call)
{
	return tw__refuse(-EDEADLK, call, "called from inside what it would wait for");
}

#endif
