/*
 * The entry of a public function: its object is not NULL, and no parent of this forked process has
 * made it (mpsc/base/process.h). Nothing deeper asks: the child of a callback that forks never
 * returns from it.
 */
#ifndef TW_MPSC_ENTRY_H
#define TW_MPSC_ENTRY_H

#include "mpsc/base/assert.h"
#include "mpsc/base/atomics.h"
#include "mpsc/base/process.h"
#include "mpsc/base/misuse.h"

/* In an object without a service: the process that made it. */
struct tw__origin {
	uint32_t generation;
};

/* Set when the object is made. False: out of memory. */
static inline bool tw__origin_init(struct tw__origin *origin)
{
	origin->generation = tw__fork_generation(true);
	return origin->generation != UINT32_MAX;
}

static inline bool tw__origin_inherited(const struct tw__origin *origin)
{
	return tw_unlikely(origin->generation != tw__fork_generation(false));
}

/*
 * The entry of the public function `call`, whose parameter `what` is the object: 0; -EINVAL, with
 * a text: NULL; -EPERM: in a forked child.
 */
static inline int tw__entry_check(const char *call, const void *object, const char *what,
				  bool inherited)
{
	if (tw_unlikely(!object))
		return tw__refuse(-EINVAL, call, "%s is NULL", what);
	return inherited ? -EPERM : 0;
}

#define TW__ORIGIN_CHECK(call, object, what) \
	tw__entry_check(call, object, what, (object) && tw__origin_inherited(&(object)->origin))

/* Destroys an object: 0 for NULL. In a forked child end_forked frees the memory, and no more. */
#define TW__ORIGIN_DESTROY(object, end_forked, end) \
	(!(object) ? 0 : tw__origin_inherited(&(object)->origin) ? end_forked(object) : end(object))

#endif
