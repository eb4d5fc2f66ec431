/*
 * What a public function begins with: its object is not NULL, nor made by a parent of this forked
 * process (nothing deeper asks); structs of older and newer callers.
 */
#ifndef TW_MPSC_ENTRY_H
#define TW_MPSC_ENTRY_H

#include "mpsc/base/assert.h"
#include "mpsc/base/atomics.h"
#include "mpsc/base/process.h"
#include "mpsc/base/misuse.h"
#include "tickwheel/executor.h"
#include "tickwheel/task.h"

/* The process that made an object, in that object. */
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

/* 0; -EINVAL: the object is NULL; -EPERM: in a forked child. */
static inline int tw__entry_check(const char *call, const void *object, const char *what,
				  bool inherited)
{
	if (tw_unlikely(!object))
		return tw__refuse(-EINVAL, call, "%s is NULL", what);
	return inherited ? -EPERM : 0;
}

#define TW__ORIGIN_CHECK(call, object, what) \
	tw__entry_check(call, object, what, (object) && tw__origin_inherited(&(object)->origin))

/* Destroys an object; NULL is none. In a forked child end_forked only frees memory. */
#define TW__ORIGIN_DESTROY(object, end_forked, end) \
	(!(object) ? 0 : tw__origin_inherited(&(object)->origin) ? end_forked(object) : end(object))

/* -------------------------------------------------- structs from the caller */

/*
 * Copies a struct that begins with its size, from a caller that may be older or newer. `last` is
 * the last member that the oldest caller has not. -EINVAL: the struct ends before `last`; -E2BIG:
 * members that the library does not know are not zero.
 *
 *     r = TW__STRUCT_READ(tw_limiter_task, &known, done, task);
 */
#define TW__STRUCT_READ(type, out, last, in) \
	tw__struct_read(#type, out, sizeof *(out), offsetof(struct type, last), in)
int tw__struct_read(const char *type, void *out, size_t known, size_t least, const void *in);

/* The check of a struct to be filled. -EINVAL: NULL, or `second` does not fit. */
#define TW__OUT_CHECK(type, out, second) \
	tw__out_check(__func__, #type, out, offsetof(struct type, second))
int tw__out_check(const char *call, const char *type, const void *out, size_t least);

/* Copies what the caller knows, and clears the rest. */
void tw__struct_write(void *out, const void *known, size_t known_size);

/* As TW__STRUCT_READ; NULL is all 0, and the size may be 0 if all else is. */
#define TW__CONFIG_READ(type, out, last, in) \
	tw__struct_read_config(#type, out, sizeof *(out), offsetof(struct type, last), in)
int tw__struct_read_config(const char *type, void *out, size_t known, size_t least, const void *in);

/* Whether the library may use an executor: it is NULL, or has ops with size and submit. */
bool tw__executor_is_sound(const tw_executor *executor);

/* Copies and checks a period for the public function `call`. 0, -EINVAL, -E2BIG, -ERANGE. */
int tw__period_read(const char *call, struct tw_period *out, const struct tw_period *in);

#endif
