/*
 * The manual executor: a queue of runs that the caller carries out, in a poll loop or a GUI's main
 * thread.
 *
 *     tw_manual *queue;
 *     tw_manual_create(&queue, NULL);
 *     config.executor = tw_manual_executor(queue);
 *     ...
 *     tw_manual_pump(queue, TW_NO_LIMIT);   (in the loop, when tw_manual_fd is readable)
 *
 * A close of the service waits for what it has handed over. tickwheel_manual(7) has the order.
 */
#ifndef TICKWHEEL_MANUAL_H
#define TICKWHEEL_MANUAL_H

#include <stddef.h>
#include <stdint.h>

#include "executor.h"
#include "version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_manual tw_manual;

/*
 * Called when a run has come into the empty queue, on the submitting thread (for timers, the tick
 * thread). It must not block, and must not destroy the queue.
 */
typedef void tw_manual_notify_fn(void *notify_arg);

/* Knobs of a queue. */
struct tw_manual_config {
	size_t size;
	uint32_t queue; /* hand-overs that may wait: 1 .. 16 Mi; default 4096 */
	uint32_t reserved;
	tw_manual_notify_fn *notify; /* may be NULL */
	void *notify_arg;
};

/*
 * Creates a queue. cfg may be NULL.
 *
 * Returns:
 *   0         *out is the queue
 *   -EINVAL   a knob is out of range
 *   -ENOMEM   no memory
 */
TW_API int tw_manual_create(tw_manual **out, const struct tw_manual_config *cfg);

/*
 * Returns the queue as an executor, for services and for single timers. A full queue refuses with
 * -EAGAIN; the service then offers the runs again in its next tick.
 *
 * Returns: the executor; NULL if manual is NULL.
 */
TW_API tw_executor *tw_manual_executor(tw_manual *manual);

/*
 * Returns a descriptor that is readable while runs wait. Watch it for reading, level-triggered, and
 * pump after all sockets of the same wait. Never read, write or close it: it belongs to the queue.
 *
 * Returns:
 *   >= 0   the descriptor
 *   -EMFILE, -ENFILE, -ENOMEM   the system has no room
 */
TW_API int tw_manual_fd(tw_manual *manual);

/*
 * Carries out up to `budget` runs on this thread, in order: no more than waited when it was called.
 * Callbacks may pump, and so may several threads at a time.
 *
 * Blocks: if a callback does.
 * Returns:
 *   >= 0      runs taken off the queue, also those that had been cancelled; 0: nothing waited, or
 *             budget is 0
 *   -ENOMEM   no memory for this thread's first run; the run goes back to the service
 */
TW_API int tw_manual_pump(tw_manual *manual, size_t budget);

/*
 * Frees the queue, after all services that use it are closed. NULL is allowed.
 *
 * Returns:
 *   0        freed
 *   -EBUSY   runs wait: pump first
 */
TW_API int tw_manual_destroy(tw_manual *manual);

#ifdef __cplusplus
}
#endif
#endif
