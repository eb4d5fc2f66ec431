/* The semaphore's calls, and how permits are granted. Calls the base. See internal.h. */
#include "executor/semaphore/internal.h"

#include "mpsc/base/atomics.h"

/* ------------------------------------------------------------- the line, locked */

/* Nobody else changes the word while WAITERS is set. */
static void permits_set(tw_semaphore *s, uint64_t word)
{
	tw_store_release(&s->word, word); /* SEM1, for those that take the fast way next */
}

/* It has its permits. */
static void choose(tw_semaphore *s, struct waiter *waiter)
{
	waiter->state = COMING;
	s->out += !waiter->is_thread;
	tw__line_append(&s->chosen, tw__in_line_link(&waiter->place));
}

/* Chooses it if n permits are there, and nobody waits. Else WAITERS is set, and it is in line. */
static void take_or_join(tw_semaphore *s, struct waiter *waiter)
{
	uint64_t word = tw_load_relaxed(&s->word), next;
	bool fits;
	waiter->number = ++s->came;
	do {
		fits = !(word & WAITERS) && has_room(word, waiter->n);
		next = fits ? word + waiter->n : word | WAITERS;
	} while (next != word && !tw_cas_acq_rel(&s->word, &word, next)); /* SEM1 */
	if (fits) {
		choose(s, waiter);
		return;
	}
	tw__line_append(&s->line, tw__in_line_link(&waiter->place)); /* planted: last_come_first */
	s->waiting++;
	s->waiting_threads += waiter->is_thread;
}

static void semaphore_leave(tw_semaphore *s, struct waiter *waiter)
{
	tw__line_leave(&s->line, &waiter->place);
	s->waiting_threads -= waiter->is_thread;
	if (--s->waiting == 0)
		permits_set(s, tw_load_relaxed(&s->word) & ~WAITERS);
}

/* Chooses those that fit, in order. The first that does not fit ends this, and so gets its turn. */
static void semaphore_start(tw_semaphore *s, bool threads_alone)
{
	for (tw__link link = s->line.first; link && !(threads_alone && !s->waiting_threads);) {
		struct waiter *waiter = waiter_of(link);
		uint64_t word = tw_load_relaxed(&s->word);
		link = waiter->place.next;
		if (threads_alone && !waiter->is_thread)
			continue;
		if (!has_room(word, waiter->n))
			return;
		permits_set(s, word + waiter->n);
		semaphore_leave(s, waiter);
		choose(s, waiter);
	}
}

/* n permits that are held have no owner any more. False: fewer were held. */
static bool permits_pass_on(tw_semaphore *s, uint32_t n)
{
	uint64_t word = tw_load_relaxed(&s->word);
	do {
		if (held_of(word) < n)
			return false;
	} while (!tw_cas_acq_rel(&s->word, &word, word - n)); /* SEM1 */
	semaphore_start(s, false);
	return true;
}

static void function_is_over(tw_semaphore *s, struct function *function)
{
	s->out--;
	tw__node_put(tw__object_small_nodes(&s->object), &function->node);
}

/* -------------------------------------------------------------------- the unlock */

/* Refused functions are in their old places again, before those that came later. */
static void take_back(tw_semaphore *s, struct tw__line *refused)
{
	tw__link *where = &s->line.first;
	while (refused->first) {
		struct waiter *waiter = waiter_of(tw__line_pop(refused));
		s->refusals++;
		if (waiter->state == ENDED) {
			function_is_over(s, function_of(waiter));
			continue;
		}
		tw_or_seq_cst(&s->word, WAITERS); /* from here on only this thread changes it */
		permits_set(s, tw_load_relaxed(&s->word) - waiter->n);
		waiter->state = QUEUED;
		s->out--;
		while (*where && waiter_of(*where)->number < waiter->number)
			where = &waiter_of(*where)->place.next;
		tw__line_insert(&s->line, where, &waiter->place);
		s->waiting++;
	}
	semaphore_start(s, true);
}

/*
 * Unlocks, wakes the chosen threads and submits the chosen functions. No function runs in here. If
 * the executor refuses some, the driver looks for them in the next tick.
 */
static void semaphore_unlock(tw_semaphore *s)
{
	struct tw__line refused;
	bool later = false;
	tw__link link = s->chosen.first;
	tw__line_init(&s->chosen);
	tw__line_init(&refused);
	tw__object_unlock(&s->object);
	while (link) {
		struct waiter *waiter = waiter_of(link);
		link = waiter->place.next; /* first: it may be gone */
		if (waiter->is_thread) {
			_Atomic uint32_t *granted = &waiter->granted;
			tw_store_release(granted, 1); /* SEM2: the waiter may be gone */
			tw__futex_wake(granted, 1);
		} else if (tw__work_try_submit(&function_of(waiter)->work) < 0) {
			tw__line_append(&refused, tw__in_line_link(&waiter->place));
		}
	}
	if (tw_likely(!refused.first))
		return;
	tw__object_lock(&s->object);
	take_back(s, &refused);
	if (s->waiting && !s->object.later)
		later = s->object.later = true;
	s->object.users += later; /* until the driver has looked */
	semaphore_unlock(s);      /* threads alone are chosen: it is not refused again */
	if (later)
		tw__work_submit_later(&s->object.work);
}

/* On the driver, a tick after the executor has refused something. */
static void start_again(struct tw__work *work)
{
	tw_semaphore *s = TW__OWNER(tw_semaphore, object.work, work);
	tw__object_lock(&s->object);
	s->object.later = false;
	semaphore_start(s, false);
	semaphore_unlock(s);
	tw__object_lock(&s->object);
	tw__object_drop(&s->object, 1);
}

/* ---------------------------------------------------------------------- functions */

/* Checks an acquire. A capacity of 0 may grow, so one permit can always be asked for. */
static inline int semaphore_check(const char *call, tw_semaphore *s, int32_t n)
{
	int r = TW__OBJECT_CHECK_IN(call, s, "semaphore");
	if (tw_unlikely(r) || tw_likely(n == 1))
		return r;
	uint64_t capacity = capacity_of(tw_load_relaxed(&s->word));
	return n < 1 || (uint64_t)n > capacity ? tw__bad(-EINVAL, call, "n") : 0;
}

static void run_function(struct tw__work *work)
{
	struct function *function = TW__OWNER(struct function, work, work);
	tw_semaphore *s = TW__OWNER(tw_semaphore, object, tw_load_relaxed(&function->node.owner));
	struct tw__inside inside;
	tw__object_lock(&s->object);
	if (function->waiter.state != ENDED) {
		function->waiter.state = RUNNING;
		tw__object_unlock(&s->object);
		tw__inside_begin(&inside, &s->object, function, function->fn, function->arg, NULL,
				 function->context);
		function->fn(function->arg);
		tw__inside_end(&inside);
		tw__object_lock(&s->object);
	}
	function_is_over(s, function);
	tw__object_unlock(&s->object);
}

int tw_semaphore_acquire_async(tw_semaphore *s, int32_t n, tw_fn *fn, void *arg, tw_waiter *out)
{
	struct tw__node *node;
	int r = semaphore_check(__func__, s, n);
	if (!r && !fn)
		r = tw__invalid("fn is NULL");
	if (!r)
		r = tw__node_get(tw__object_small_nodes(&s->object), &s->object, &node);
	if (r)
		return r;
	struct function *function = (struct function *)(void *)node;
	function->fn = fn;
	function->arg = arg;
	function->context = tw__context_capture();
	function->waiter = (struct waiter){.n = (uint32_t)n};
	tw__work_init(&function->work, tw__object_service(&s->object), s->object.executor,
		      run_function);
	if (out)
		*out = (tw_waiter){tw__node_handle(node)};
	tw__object_lock(&s->object);
	take_or_join(s, &function->waiter);
	semaphore_unlock(s);
	return 0;
}

int tw_semaphore_cancel(tw_semaphore *s, tw_waiter handle)
{
	int r = TW__OBJECT_CHECK(s, "semaphore");
	if (r)
		return r;
	struct tw__base base = tw__object_base(&s->object);
	struct tw__nodes *nodes = tw__object_small_nodes(&s->object);
	tw__object_lock(&s->object);
	struct function *function =
	    (struct function *)(void *)tw__node_find(nodes, &s->object, handle.id);
	uint8_t state = function ? function->waiter.state : ENDED;
	if (state == QUEUED) {
		semaphore_leave(s, &function->waiter);
		tw__node_put(nodes, &function->node);
		semaphore_start(s, false);
	} else if (state == COMING) {
		function->waiter.state = ENDED;
		tw__base_leave_work(&base, &function->work);
		(void)permits_pass_on(s, function->waiter.n);
	}
	semaphore_unlock(s);
	return state == ENDED ? TW_GONE : state == RUNNING ? TW_RUNNING : TW_CANCELLED;
}

/* ------------------------------------------------------------------------ threads */

/* The thread sleeps until it is granted, or until the deadline. True: it is granted. */
static bool await_grant(struct waiter *waiter, uint64_t deadline_ns)
{
	bool granted = false, in_time = true;
	while (!(granted = tw_load_acquire(&waiter->granted)) && in_time) /* SEM2 */
		in_time = tw__futex_wait(&waiter->granted, 0, deadline_ns);
	return granted;
}

static int wait_in_line(tw_semaphore *s, uint32_t n, uint64_t deadline_ns)
{
	struct waiter self = {.n = n, .is_thread = true};
	tw__object_lock(&s->object);
	take_or_join(s, &self);
	semaphore_unlock(s);
	if (await_grant(&self, deadline_ns))
		return 0;
	tw__object_lock(&s->object);
	bool gives_up = self.state == QUEUED;
	if (gives_up) {
		semaphore_leave(s, &self);
		semaphore_start(s, false);
	}
	semaphore_unlock(s);
	return gives_up ? -ETIMEDOUT : !await_grant(&self, UINT64_MAX); /* or it is on its way */
}

int tw_semaphore_acquire(tw_semaphore *s, int32_t n, uint64_t timeout_ns)
{
	int r = semaphore_check(__func__, s, n);
	if (tw_unlikely(r))
		return r;
	if (tw_unlikely(!semaphore_take(s, (uint32_t)n)))
		r = timeout_ns ? wait_in_line(s, (uint32_t)n, tw__deadline_in(timeout_ns))
			       : -EAGAIN;
	tw_tsan_acquire(s);
	return r;
}

static int release_slowly(tw_semaphore *s, uint32_t n)
{
	tw__object_lock(&s->object);
	bool was_held = permits_pass_on(s, n);
	s->over_releases += !was_held;
	semaphore_unlock(s);
	return was_held ? 0 : -EOVERFLOW;
}

int tw_semaphore_release(tw_semaphore *s, int32_t n)
{
	int r = TW__OBJECT_CHECK(s, "semaphore");
	if (tw_unlikely(r))
		return r;
	if (tw_unlikely(n < 1))
		return tw__bad(-EINVAL, __func__, "n");
	tw_tsan_release(s);
	uint64_t word = tw_load_relaxed(&s->word);
	do {
		if (tw_unlikely(word & WAITERS || held_of(word) < (uint32_t)n))
			return release_slowly(s, (uint32_t)n);
	} while (tw_unlikely(!tw_cas_acq_rel(&s->word, &word, word - (uint32_t)n))); /* SEM1 */
	return 0;
}

int tw_semaphore_set_capacity(tw_semaphore *s, int32_t capacity)
{
	int r = capacity < 0 ? tw__bad(-EINVAL, __func__, "capacity")
			     : TW__OBJECT_CHECK(s, "semaphore");
	if (r)
		return r;
	tw__object_lock(&s->object);
	uint64_t word = tw_load_relaxed(&s->word), others = ~(COUNT_MASK << CAPACITY_SHIFT);
	while (!tw_cas_acq_rel(&s->word, &word,
			       (word & others) | (uint64_t)capacity << CAPACITY_SHIFT)) /* SEM1 */
		continue;
	semaphore_start(s, false);
	semaphore_unlock(s);
	return 0;
}

/* --------------------------------------------------------------------- life, stats */

static bool semaphore_look(struct tw__object *object, struct tw__figures *out)
{
	const tw_semaphore *s = TW__OWNER(tw_semaphore, object, object);
	out->running = held_of(tw_load_relaxed(&s->word));
	out->waiting = s->waiting;
	return false;
}

static const struct tw__object_kind semaphore_kind = {
    "semaphore", sizeof(tw_semaphore), offsetof(tw_semaphore, object), NULL, semaphore_look};

int tw_semaphore_create(tw_semaphore **out, tw_service *service, tw_executor *executor,
			int32_t capacity)
{
	if (!out || !service)
		return tw__invalid("%s is NULL", out ? "service" : "out");
	if (capacity < 0 || !tw__executor_is_sound(executor))
		return tw__bad(-EINVAL, __func__, capacity < 0 ? "capacity" : "executor");
	struct tw__object *object;
	int r = tw__object_create(&object, service, executor, start_again, &semaphore_kind);
	if (r)
		return r;
	tw_semaphore *s = *out = TW__OWNER(tw_semaphore, object, object);
	tw__work_leave_executor(&s->object.work); /* the driver runs it */
	permits_set(s, (uint64_t)capacity << CAPACITY_SHIFT);
	tw__line_init(&s->line);
	tw__line_init(&s->chosen);
	return 0;
}

int tw_semaphore_destroy(tw_semaphore *s)
{
	if (!s || tw__object_destroy_forked(&s->object))
		return 0;
	tw__object_lock(&s->object);
	if (s->waiting || s->out) {
		tw__object_unlock(&s->object);
		return -EBUSY;
	}
	tw__object_destroy(&s->object);
	return 0;
}

int tw_semaphore_stats(tw_semaphore *s, struct tw_semaphore_stats *out)
{
	int r = TW__OUT_CHECK(tw_semaphore_stats, out, available);
	if (!r)
		r = TW__OBJECT_CHECK(s, "semaphore");
	if (r)
		return r;
	tw__object_lock(&s->object);
	uint64_t word = tw_load_relaxed(&s->word), held = held_of(word),
		 capacity = capacity_of(word);
	struct tw_semaphore_stats stats = {.capacity = capacity,
					   .available = held < capacity ? capacity - held : 0,
					   .held = held,
					   .debt = held > capacity ? held - capacity : 0,
					   .waiters = s->waiting,
					   .waiting_threads = s->waiting_threads,
					   .handed = s->out,
					   .over_releases = s->over_releases,
					   .refused = s->refusals};
	tw__object_unlock(&s->object);
	tw__struct_write(out, &stats, sizeof stats);
	return 0;
}

int tw_semaphore_set_name(tw_semaphore *s, const char *name)
{
	int r = TW__OBJECT_CHECK(s, "semaphore");
	return r ? r : tw__object_set_name(&s->object, name);
}
