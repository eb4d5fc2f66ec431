/*
 * A candidate: one way to have timers, behind the vtable through which every workload uses every
 * candidate alike.
 *
 * Timers are named by their user's slot number, 0 .. slots - 1, as if each slot were a connection
 * that holds one timer. What a user would keep in the connection (a handle, or an intrusive record)
 * the candidate keeps in an array, one element per slot. A slot is used by one thread at a time.
 */
#ifndef BENCH_CANDIDATE_H
#define BENCH_CANDIDATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void expiry_fn(void *arg);

/* Resolution of all that have ticks. */
#define TICK_NS UINT64_C(1000000)

enum workload_bit {
	ON_CHURN = 1 << 1,
	ON_REQUEST = 1 << 2,
	ON_TOUCH = 1 << 3,
	ON_FIRE = 1 << 4,
	ON_IDLE = 1 << 5,
	ON_MEMORY = 1 << 6,
	ON_RETENTION = 1 << 7,
	ON_STORM = 1 << 8,
	ON_SERVER = 1 << 9,
	ON_PERIODIC = 1 << 10,
	ON_POOL = 1 << 11,
	ON_LAYERS = 1 << 12,
	ON_PACED = 1 << 13,
	/* All that timers do; pools and layers are candidates of their own. */
	ON_ALL = ON_CHURN | ON_REQUEST | ON_TOUCH | ON_FIRE | ON_IDLE | ON_MEMORY | ON_RETENTION |
		 ON_STORM | ON_SERVER | ON_PERIODIC | ON_PACED
};

struct candidate_setup {
	uint32_t slots;
	unsigned threads; /* that will call, numbered from 0 */
};

/* What a candidate tells about itself; 0 where it has nothing to tell. */
struct candidate_view {
	uint64_t pending; /* counted from the timers themselves */
	uint64_t wakeups; /* of the candidate's own thread */
	uint64_t
	    /*
	     * turns of the tick thread that did something, their CPU time; the longest since the
	     * last view
	     */
	    ticks;
	uint64_t tick_cpu_ns;
	uint64_t tick_cpu_max_ns;
	size_t user_bytes; /* what the user of a timer keeps for it: handle or record */
};

struct candidate {
	const char *name;
	const char *what;
	bool bare; /* to be used by one thread only, which also drives it */
	/* left to a workload's small cells unless it is named, or with --full */
	bool peer;
	unsigned workloads; /* those that make sense */
	/* of these, those in which another candidate tells as much: as for peers */
	unsigned spared;

	/*
	 * The largest number of slots that the system's limits allow, which it raises as far as it
	 * may. NULL: no limit.
	 */
	uint32_t (*most_slots)(void);

	/* All memory that is per slot is touched. NULL: could not. */
	void *(*create)(const struct candidate_setup *setup);
	void (*destroy)(void *self);

	/* 0, or a negative errno; -EAGAIN asks to try again. The slot's timer is not pending. */
	int (*schedule)(void *self, unsigned thread, uint32_t slot, uint64_t delay_ns,
			expiry_fn *fn, void *arg);

	/*
	 * A series: first due a period from now, then by the candidate's own means of repeating.
	 * The period is a whole number of milliseconds, and the slot is used for nothing else
	 * afterwards. NULL: not for W10.
	 */
	int (*every)(void *self, uint32_t slot, uint64_t period_ns, expiry_fn *fn, void *arg);

	/*
	 * In a callback of a series: runs that were skipped just before this one. NULL: none ever
	 * are, or it cannot tell.
	 */
	uint64_t (*missed)(void);

	/*
	 * Promises that run k of a series is due at its start plus k periods, however late the runs
	 * before were.
	 */
	bool exact_series;

	/* True: it was pending, and will never run. */
	bool (*cancel)(void *self, uint32_t slot);

	/*
	 * Moves a pending timer to delay_ns from now. False: it is not pending, nothing was done.
	 */
	bool (*touch)(void *self, unsigned thread, uint32_t slot, uint64_t delay_ns);

	/*
	 * A turn of the calling thread's loop. now_ns has just been read from the clock. A
	 * candidate with a cached time stores now_ns. A bare candidate also runs the timers that
	 * are due. NULL: not needed.
	 */
	void (*turn)(void *self, unsigned thread, uint64_t now_ns);

	/*
	 * Bare ones: when the next turn is needed; UINT64_MAX: never. NULL for those with drive or
	 * a thread of their own.
	 */
	uint64_t (*next_turn_ns)(void *self);

	/* Bare ones that sleep by themselves: drive_until, see there. */
	uint64_t (*drive)(void *self, uint64_t end_ns);

	void (*view)(void *self, struct candidate_view *out);

	/*
	 * Pools and layers (W11, W12), whose `threads` are their workers: one of them runs fn(arg)
	 * once. Functions begin in the order of submission. 0: done; else the queue is full: try
	 * again. One thread calls it.
	 */
	int (*post)(void *self, expiry_fn *fn, void *arg);

	/*
	 * Instead of post, for W11: a burst is made ready, then handed over as a whole. 0. 1: this
	 * took too long, some of it is under way already, and it must not be timed. Negative:
	 * refused.
	 */
	int (*submit_bulk)(void *self, expiry_fn *fn, void *const *args, uint32_t n);
	void (*go)(void *self);
};

extern const struct candidate candidate_tickwheel, candidate_tickwheel_at,
    candidate_tickwheel_manual, candidate_tickwheel_group, candidate_tickwheel_named,
    candidate_tickwheel_persistent, candidate_heap_mutex, candidate_heap_bare, candidate_wheel_bare,
    candidate_wheel_mutex, candidate_timerfd, candidate_limit;

/* Of W11 and W12. */
extern const struct candidate candidate_batch, candidate_pool, candidate_strand,
    candidate_scheduler, candidate_limiter, candidate_semaphore, candidate_ring,
    candidate_pool_mutex;

/* Each only where its library was found when this was compiled. */
extern const struct candidate candidate_libevent, candidate_libevent_mt, candidate_libev,
    candidate_libev_mt, candidate_libuv, candidate_libuv_mt;

/* In the order of the tables; NULL at the end. */
extern const struct candidate *const all_candidates[];
const struct candidate *candidate_find(const char *name);

/* UINT32_MAX: it has no limit of its own. */
uint32_t candidate_most_slots(const struct candidate *candidate);

/* calloc whose pages are touched, aligned to cache lines; freed by free(). NULL: no memory. */
void *touched_array(size_t count, size_t size);

/* The number of descriptors this process may have, raised as far as it may. */
uint32_t most_descriptors(void);

/*
 * Lets a candidate work until end_ns: sleeps, and takes the turns that a bare one asks for. The
 * number of times that the sleep was broken for a turn.
 */
uint64_t drive_until(const struct candidate *candidate, void *self, uint64_t end_ns);

#endif
