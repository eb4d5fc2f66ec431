/*
 * The inside of a strand, shared by strand.c (creation, end), submit.c, cancel.c, run.c (the
 * runner) and time.c (delays, series).
 *
 * A strand is a queue of things to run, guarded by a lock of 4 bytes, and one piece of work
 * (wheel/run/work.h) that is out on the executor while there is anything to do. The thread that
 * makes the strand ACTIVE submits the work. The thread that runs the work runs the queue, and makes
 * the strand idle again when it finds the queue empty. So there is never more than one runner.
 *
 * Tasks are queued under the lock. The driver brings batches without the lock, because it must not
 * wait for a lock that a preempted thread may hold. It pushes them onto a stack in the strand's
 * **word**, the inbox, from which the runner moves them to the end of the queue. The strand's own
 * timer, set to the earliest delayed task, only sets DUE there: the runner moves what is due.
 *
 *     word:  63 ... 3 | CLOSED | DUE | ACTIVE
 *            inbox
 *
 * Transition table of the word
 *
 *   from        to             by                           with
 *   idle        ACTIVE         submit                       or, the lock held
 *   any         ACTIVE, inbox  the driver                   CAS; not if CLOSED, except for work
 *   any         ACTIVE, DUE    the timer                    or
 *   inbox, DUE  -              the runner; close            and, the lock held
 *   ACTIVE      idle           the runner                   CAS, the lock held; not if there is an
 *                                                           inbox, or DUE
 *   any         CLOSED         close                        or, the lock held
 *   CLOSED      gone           destroy; the runner at its   CAS, the lock held; not if there is
 *   or ACTIVE   (+ DUE)        end, if it is destroyed      anything else
 *   gone        ACTIVE, gone   close, that comes to work    or, the lock held; the runner takes DUE
 *                              of another layer             back, and makes it gone again
 *
 * The thread that raises ACTIVE from idle submits the work, once. CLOSED stays. Gone is DUE without
 * ACTIVE, which means nothing otherwise. Work of a layer that was destroyed before, but whose work
 * has not returned, may still come then: it is left to the service's driver.
 *
 * Pairing table
 *   STRAND1  word: CAS acq_rel (driver) -> and seq_cst (runner, close): the batch's link.
 *   STRAND2  lock: all else, its release -> its acquire. (one site: every critical section takes
 *       it)
 *   STRAND3  ACTIVE -> idle is made under the lock by a CAS from "ACTIVE, nothing else". So an
 *       inbox or DUE that came first makes it fail, and one that comes after it finds the strand
 *       idle and submits the work. The lock keeps submits apart.
 *   STRAND4  bell: changed under the lock when something ended for which a thread waits; read under
 *       the lock that showed what to wait for.
 *
 * A strand that is being destroyed is read only by its runner, its timer and the driver. While
 * ACTIVE is set, the runner is still to come. While `timer` is not zero, DUE is still to come,
 * unless a cancel answered TW_CANCELLED. With neither, the memory may be freed, except if the
 * strand was handed out as an executor: the driver may have read a timer's executor before the
 * timer ended. Such memory stays until the service's end.
 *
 * Calls that unlock on their way (cancel, close, and their waits) count themselves in `calls`,
 * under the lock. A running task may destroy its own strand while other threads are in such a call.
 * The strand is freed by the runner, destroy, or the last call: by the one that finds it gone and
 * without calls before an unlock (tw__strand_frees).
 *
 * A cancelled task leaves the heap or the queue immediately. A task in the queue knows the link
 * before it. A batch does not: it leaves at the head alone.
 *
 * The lock is held for a bounded time. Close, and the move of due tasks to the queue, work in
 * pieces. An inbox that was taken belongs to its taker alone, the runner or a close. The taker
 * reverses it with the lock free, looks at CLOSED under the lock, and then appends it or ends its
 * timers.
 *
 * Weak at: a strand that thousands of threads submit to at the same time. They contend for its
 * lock.
 */
#ifndef TW_EXECUTOR_STRAND_H
#define TW_EXECUTOR_STRAND_H

#include "executor/base/heap.h"
#include "executor/base/handles.h"
#include "executor/pool/layer.h"
#include "mpsc/base/spinlock.h"
#include "tickwheel/strand.h"

enum { TW__STRAND_ACTIVE = 1, TW__STRAND_DUE = 2, TW__STRAND_CLOSED = 4, TW__STRAND_BITS = 7 };
enum { TW__STRAND_GONE = TW__STRAND_CLOSED | TW__STRAND_DUE };

/* Under the lock. */
enum tw__strand_flag {
	TW__STRAND_WAITED = 1, /* a thread waits for the bell */
	/* the thread that makes it idle frees it; its base knows that it leaves */
	TW__STRAND_DESTROYED = 2,
	TW__STRAND_REARM = 4,    /* its timer could not be set: try again in a tick */
	TW__STRAND_EXPOSED = 8,  /* was handed out as an executor */
	TW__STRAND_RUNNING = 16, /* a task or a ticket of it runs */
	TW__STRAND_OVERDUE =
	    /* the timer has been DUE, and due tasks are left in the heap: the runner moves them */
	32
};

enum tw__strand_state {
	TW__TASK_QUEUED,  /* in the queue */
	TW__TASK_DELAYED, /* in the heap */
	TW__TASK_RUNNING,
	TW__TASK_RELEASING /* its release is being called */
};

/*
 * A link in the queue: to a task, or with the lowest bit set to a batch or a piece of work. The
 * first word is the next link in both cases.
 */
typedef uintptr_t __attribute__((may_alias)) tw__link;
enum { TW__LINK_BATCH = 1 };

/* A task. All under its strand's lock, except `node`; a new one belongs to its submitter. */
struct tw__task_node {
	struct tw__node node;
	tw__link next; /* in the queue */
	union {
		tw__link previous; /* in the queue; of no meaning for the first */
		struct tw__heap_item item;
	};
	/* NULL: it has ended. Read under the lock of a strand that may be another one */
	_Atomic(tw_strand *) strand;
	tw_fn *fn;
	void *arg;
	void *context; /* of its submit (wheel/core/context.h) */
	tw_release_fn *release;
	const char *name;                 /* or NULL */
	struct tw__strand_series *series; /* NULL: it runs once */
	uint64_t due_ns;                  /* nominal */
	uint8_t state;                    /* enum tw__strand_state */
	bool ended;                       /* cancelled while it runs: a series ends */
};

/* Belongs to the runner while the task runs. */
struct tw__strand_series {
	uint64_t period_ns;
	uint64_t runs_left; /* 0: no end */
	uint64_t overruns;  /* instants missed since the last run */
	enum tw_missed_policy missed;
	bool fixed_delay;
};

/* What a strand has from its first delayed task on. */
struct tw__strand_delays {
	struct tw__heap heap;
	tw_timer timer;    /* whose DUE the runner has not seen; zero: none */
	uint64_t timer_ns; /* what it is set to */
	uint64_t sequence; /* equal instants: in order of submission */
	uint32_t series;   /* alive, in the heap or not: each has room there */
	uint32_t high;     /* the most the heap has held since its memory was last shrunk */
};

struct tw_strand {
	tw_executor executor; /* first */
	_Atomic uint64_t word;
	_Atomic uint32_t lock;
	_Atomic uint32_t bell;
	struct tw__work work;
	tw__link first, last; /* the queue */
	struct tw__strand_delays *delays;
	tw__link dropped; /* the queue of before the close, which ends it */
	uint32_t queued;  /* tasks in both queues */
	uint8_t flags;
	/* tickets left of the batch at the head, once some are used up; else 0 */
	uint8_t head_left;
	uint16_t releasing; /* releases under way, closes included */
	uint64_t runs;
	uint64_t cancelled : 48; /* bits: 120 bytes are full */
	/* that use the strand after an unlock: it is freed only if there are none */
	uint64_t calls : 16;
};

_Static_assert(sizeof(struct tw_strand) <= 120, "with the allocator's word: 128 bytes");
_Static_assert(offsetof(struct tw__chunk, next) == 0 && offsetof(struct tw__work, next) == 0,
	       "first word: the link");
_Static_assert(TW__CHUNK_ENTRIES <= UINT8_MAX, "head_left");

/* The strands of a service: what outlives each of them. */
struct tw__strands {
	struct tw__kept kept; /* first: the service knows them by this */
	struct tw__nodes tasks;
	_Atomic(tw_strand *) retired; /* linked by `first`; were handed out as executors */
};

/* What the calling thread is inside: a task, a timer's run, or a release. */
struct tw__strand_run {
	tw_strand *strand;
	struct tw__task_node *task; /* NULL: a timer */
	bool releasing;
	struct tw__strand_run *outer;
	struct tw__node_batch ended; /* the runner's: tasks whose nodes are put when it leaves */
};

extern _Thread_local struct tw__strand_run *tw__strand_runs;

static inline tw_service *tw__strand_service(tw_strand *strand)
{
	return tw__work_service(&strand->work);
}

static inline int tw__strand_check_in(const char *call, tw_strand *strand)
{
	return tw__layer_check(call, strand, "strand", strand ? tw__strand_service(strand) : NULL);
}
#define tw__strand_check(strand) tw__strand_check_in(__func__, strand)

static inline struct tw__strands *tw__strands_of(tw_service *service)
{
	/* pairs with create */
	return (struct tw__strands *)tw_load_acquire(&service->layers.strands);
}

static inline bool tw__strand_closed(tw_strand *strand)
{
	/* The lock is held (STRAND2). */
	return tw_load_relaxed(&strand->word) & TW__STRAND_CLOSED;
}

/* -------------------------------------------------- the lock is held in all of these */

static inline tw__link *tw__strand_link(tw__link link)
{
	if (link & TW__LINK_BATCH)
		return (tw__link *)(link - TW__LINK_BATCH);
	return &((struct tw__task_node *)link)->next;
}

/* Links from first to last; the link of the last is 0. */
static inline void tw__strand_append_all(tw_strand *strand, tw__link first, tw__link last)
{
	if (strand->first)
		*tw__strand_link(strand->last) = first;
	else
		strand->first = first;
	strand->last = last;
}

static inline void tw__strand_append(tw_strand *strand, tw__link link)
{
	*tw__strand_link(link) = 0;
	tw__strand_append_all(strand, link, link);
}

static inline void tw__strand_queue_task(tw_strand *strand, struct tw__task_node *task)
{
	task->state = TW__TASK_QUEUED;
	task->previous = strand->last;
	strand->queued++;
	tw__strand_append(strand, (tw__link)task);
}

/* Something has been queued. True: the caller submits the work after it has released the lock. */
static inline bool tw__strand_activate(tw_strand *strand)
{
	return !(tw_load_relaxed(&strand->word) & TW__STRAND_ACTIVE) &&
	       !(tw_or_seq_cst(&strand->word, TW__STRAND_ACTIVE) & TW__STRAND_ACTIVE);
}

/* Something has ended: wakes the waiting threads, which then wait for the lock for a moment. */
static inline void tw__strand_ring(tw_strand *strand)
{
	if (tw_likely(!(strand->flags & TW__STRAND_WAITED)))
		return;
	strand->flags &= (uint8_t)~TW__STRAND_WAITED;
	tw_add_relaxed(&strand->bell, 1); /* STRAND4 */
	tw__futex_wake(&strand->bell, INT32_MAX);
}

/*
 * Tells whether the caller, which makes the strand gone or ends a call, frees it, with
 * tw__strand_free after the unlock.
 */
static inline bool tw__strand_frees(tw_strand *strand)
{
	return tw_unlikely((tw_load_relaxed(&strand->word) & TW__STRAND_BITS) == TW__STRAND_GONE) &&
	       !strand->calls;
}

/* A task of a series has ended. */
static inline void tw__strand_forget_series(tw_strand *strand, const struct tw__task_node *task)
{
	if (task->series)
		strand->delays->series--;
}

/* ---------------------------------------------------------------- without the lock */

/* Only the driver may still read it. */
void tw__strand_free(tw_strand *strand);

#endif
