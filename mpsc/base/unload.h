/*
 * The end of the library's code: dlclose of a plugin that contains the static library, or exit().
 *
 *   dlclose   No object is left, so no thread is inside the library or comes back. Threads that
 *             have used it live on. Their exit handlers must not be called any more, and what is
 *             kept for them must be freed.
 *   exit()    Other threads may be inside the library, and objects may be left. A thread that ends
 *             now leaves its part to the system.
 *
 * So exit handlers go in both cases, and memory of threads goes if no object is left. In a forked
 * child nothing is freed: what other threads of the parent were writing stays half written.
 *
 * The handler is atexit's, not a destructor of the library: it comes after the end of the static
 * objects of C++ that were made after the first object of the library.
 */
#ifndef TW_MPSC_UNLOAD_H
#define TW_MPSC_UNLOAD_H

#include <stdbool.h>

/* One who keeps something for threads. Static. */
struct tw__unloader {
	struct tw__unloader *next;
	/* once, under the registry's lock; free: no object is left */
	void (*unload)(bool free);
};

/* False: out of memory. */
bool tw__unload_watch(struct tw__unloader *unloader);

/* An object is made or freed that calls user code, or that threads have a part of. */
void tw__unload_hold(void);
void tw__unload_drop(void);

#endif
