/*
 * The manual executor: a queue of runs that the caller carries out, on threads of its own choice.
 *
 * For a program with a loop that wants its callbacks there: a GUI's main thread, a game's frame, a
 * poll loop. It takes what any executor takes: timers of services, strands and other layers.
 *
 *     tw_manual *queue;
 *     tw_manual_create(&queue, NULL);
 *     config.executor = tw_manual_executor(queue);
 *     ...
 *     tw_manual_pump(queue, TW_NO_LIMIT);   (in the loop, when tw_manual_fd is readable)
 *
 * The end. A close of the service waits for what it has handed over, so somebody must pump. If the
 * closing thread is the one that pumps:
 *
 *   1. destroy strands and schedulers; close limiters with timeout 0, pump, and destroy them
 *   2. close the service with TW_CLOSE_DROP and timeout 0
 *   3. pump until nothing waits
 *   4. destroy the service, then the queue
 *
 * Threads: any thread may call anything at any time; only destroy must be alone. Several threads
 * may pump at the same time. In a forked child each call returns -EPERM, and destroy frees the
 * memory.
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
 * Called on the submitting thread when the first run has come into the empty queue.
 *
 * For timers that is the tick thread. The function must not block, and must not destroy the queue.
 * It is not called for runs that a pump has left. A loop that waits for descriptors uses
 * tw_manual_fd.
 */
typedef void tw_manual_notify_fn(void *notify_arg);

/* Knobs of a queue. 0 is the default of each. */
struct tw_manual_config {
	size_t size;       /* sizeof(struct tw_manual_config); 0 only if all else is 0 too */
	uint32_t queue;    /* hand-overs that may wait: 1 .. 16 Mi; default 4096 */
	uint32_t reserved; /* 0 */
	tw_manual_notify_fn *notify; /* may be NULL */
	void *notify_arg;
};

/*
 * Creates a queue. cfg may be NULL.
 *
 * Threads: any.
 * Returns:
 *   0         *out is the queue; on an error *out is not written
 *   -EINVAL   out is NULL; a knob is out of range
 *   -E2BIG    cfg has non-zero bytes beyond the known struct
 *   -ENOMEM   no memory
 */
TW_API int tw_manual_create(tw_manual **out, const struct tw_manual_config *cfg);

/*
 * Returns the queue as an executor, for services and for single timers.
 *
 * A full queue refuses with -EAGAIN; the service then offers the runs again in its next tick.
 *
 * Threads: any.
 * Returns: the executor; NULL if manual is NULL.
 */
TW_API tw_executor *tw_manual_executor(tw_manual *manual);

/*
 * Returns a descriptor that is readable while runs wait.
 *
 *     struct epoll_event event = {.events = EPOLLIN, .data.ptr = queue};
 *     epoll_ctl(epoll_fd, EPOLL_CTL_ADD, tw_manual_fd(queue), &event);
 *     ...
 *     for each event of one epoll_wait:
 *             if (event.data.ptr == queue)
 *                     pump = true;
 *             else
 *                     handle the socket;
 *     if (pump)
 *             tw_manual_pump(queue, TW_NO_LIMIT);
 *
 * Sockets come first, and the pump last: a callback may free a connection whose event comes later
 * in the same batch.
 *
 * Watch it for reading, level-triggered. Never read, write or close it: it belongs to the queue.
 * The first call makes it (an eventfd, close-on-exec). From then on it costs a write when the queue
 * stops being empty, and a read when it becomes empty.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   >= 0      the descriptor
 *   -EINVAL   manual is NULL
 *   -EPERM    in a forked child
 *   -EMFILE, -ENFILE, -ENOMEM   the system has no room; nothing changed
 */
TW_API int tw_manual_fd(tw_manual *manual);

/*
 * Carries out up to `budget` runs on this thread, in order.
 *
 * It takes no more than waited when it was called, so callbacks that bring new work do not hold it
 * up. A piece of work of a strand or scheduler counts as one run. Callbacks may pump, too.
 *
 * Threads: any. Blocks if a callback does.
 * Returns:
 *   >= 0      runs taken off the queue, also those that had been cancelled; 0: nothing waited,
 *             or budget is 0
 *   -EINVAL   manual is NULL
 *   -ENOMEM   this thread could not be set up for the service of the first run; that run goes back
 *             to the service and comes again
 *   -EPERM    in a forked child
 */
TW_API int tw_manual_pump(tw_manual *manual, size_t budget);

/*
 * Frees the queue, after all services that use it are closed. NULL is allowed.
 *
 * Threads: any, with no other call beside it.
 * Returns:
 *   0        freed
 *   -EBUSY   runs wait: pump first; nothing changed
 */
TW_API int tw_manual_destroy(tw_manual *manual);

#ifdef __cplusplus
}
#endif
#endif
