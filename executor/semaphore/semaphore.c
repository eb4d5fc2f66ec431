/* The semaphore's calls, and who gets permits. Calls the base. See internal.h. */
#include "executor/semaphore/internal.h"

#include <string.h>

#include "mpsc/base/atomics.h"

/* ------------------------------------------------------------- the line, locked */

/* Nobody else changes the word while WAITERS is set. */
static void permits_set(tw_semaphore *s, uint64_t word)
{
	tw_store_release(&s->word, word); /* SEM1, for those that take the fast way next */
}

/* Takes n permits. False: they are not there; WAITERS is set, and the waiter joins the line. */
static bool take_or_join(tw_semaphore *s, struct waiter *waiter)
{
	uint64_t word = tw_load_relaxed(&s->word), next;
	bool fits;
	waiter->number = ++s->came;
	do {
		fits = !(word & WAITERS) && has_room(word, waiter->n);
		next = fits ? word + waiter->n : word | WAITERS;
	} while (next != word && !tw_cas_acq_rel(&s->word, &word, next)); /* SEM1 */
	if (fits)
		return true;
	waiter->in_line = true;
	tw__line_append(&s->line, tw__in_line_link(&waiter->place)); /* planted: last_come_first */
	s->waiting++;
	s->waiting_threads += waiter->is_thread;
	return false;
}

static void semaphore_leave(tw_semaphore *s, struct waiter *waiter)
{
	tw__line_leave(&s->line, &waiter->place);
	waiter->in_line = false;
	s->waiting_threads -= waiter->is_thread;
	if (--s->waiting == 0)
		permits_set(s, tw_load_relaxed(&s->word) & ~WAITERS);
}

/* Chooses those that fit, in order. The first that does not fit ends this, and so gets its turn. */
static void semaphore_start(tw_semaphore *s, bool threads_alone, struct tw__line *chosen)
{
	for (tw__link link = s->line.first, next; link; link = next) {
		struct waiter *waiter = waiter_of(link);
		next = waiter->place.next;
		if (threads_alone && !s->waiting_threads)
			return;
		if (threads_alone && !waiter->is_thread)
			continue;
		if (!has_room(tw_load_relaxed(&s->word), waiter->n))
			return;
		permits_set(s, tw_load_relaxed(&s->word) + waiter->n);
		semaphore_leave(s, waiter);
		tw__line_append(chosen, link);
		if (waiter->is_thread)
			continue;
		function_of(waiter)->node.state = COMING;
		s->out++;
	}
}

/* n permits that are held have no owner any more. False: fewer were held. */
static bool permits_pass_on(tw_semaphore *s, uint32_t n, struct tw__line *chosen)
{
	uint64_t word = tw_load_relaxed(&s->word);
	do {
		if (held_of(word) < n)
			return false;
	} while (!tw_cas_acq_rel(&s->word, &word, word - n)); /* SEM1 */
	semaphore_start(s, false, chosen);
	return true;
}

static void function_is_over(tw_semaphore *s, struct function *function)
{
	s->out--;
	tw__node_put(tw__object_small_nodes(&s->object), &function->node);
}

/* Puts a refused function in its old place: before those that came later. */
static void join_again(tw_semaphore *s, tw__link **where, tw__link link)
{
	struct waiter *waiter = waiter_of(link);
	uint64_t word = tw_load_relaxed(&s->word);
	while (!tw_cas_acq_rel(&s->word, &word, (word - waiter->n) | WAITERS)) /* SEM1 */
		continue;
	function_of(waiter)->node.state = QUEUED;
	s->out--;
	while (**where && waiter_of(**where)->number < waiter->number)
		*where = &waiter_of(**where)->place.next;
	tw__line_insert(&s->line, *where, &waiter->place);
	*where = &waiter->place.next; /* the next one came later */
	waiter->in_line = true;
	s->waiting++;
}

/* --------------------------------------------------------------- grant, unlocked */

static void semaphore_grant(tw_semaphore *s, struct tw__line *chosen);

static void take_back(tw_semaphore *s, struct tw__line *refused)
{
	struct tw__line chosen;
	tw__link *where = &s->line.first;
	tw__line_init(&chosen);
	tw__object_lock(&s->object);
	while (refused->first) {
		tw__link link = tw__line_pop(refused);
		struct function *function = function_of(waiter_of(link));
		s->refusals++;
		if (function->node.state == ENDED)
			function_is_over(s, function);
		else
			join_again(s, &where, link);
	}
	semaphore_start(s, true, &chosen);
	bool later = s->waiting && !s->object.later;
	s->object.later |= later;
	s->object.users += later; /* until the driver has looked */
	tw__object_unlock(&s->object);
	semaphore_grant(s, &chosen); /* threads: it does not come here again */
	if (later)
		tw__work_submit_later(&s->object.work);
}

/* No function runs in here, whatever the executor is. */
static void semaphore_grant(tw_semaphore *s, struct tw__line *chosen)
{
	struct tw__line refused;
	tw__line_init(&refused);
	for (tw__link link = chosen->first, next; link; link = next) {
		struct waiter *waiter = waiter_of(link);
		next = waiter->place.next; /* first: it may be gone */
		if (waiter->is_thread) {
			_Atomic uint32_t *granted = &waiter->granted;
			tw_store_release(granted, 1); /* SEM2: the waiter may be gone */
			tw__futex_wake(granted, 1);
		} else if (tw__work_try_submit(&function_of(waiter)->work) < 0) {
			tw__line_append(&refused, link);
		}
	}
	if (tw_unlikely(refused.first))
		take_back(s, &refused);
}

/* Waiters that are chosen under the lock are granted after the unlock. */
static void semaphore_lock(tw_semaphore *s, struct tw__line *chosen)
{
	tw__line_init(chosen);
	tw__object_lock(&s->object);
}

static void semaphore_unlock(tw_semaphore *s, struct tw__line *chosen)
{
	tw__object_unlock(&s->object);
	semaphore_grant(s, chosen);
}

/* On the driver, a tick after the executor has refused something. */
static void start_again(struct tw__work *work)
{
	tw_semaphore *s = TW__OWNER(tw_semaphore, object.work, work);
	struct tw__line chosen;
	semaphore_lock(s, &chosen);
	s->object.later = false;
	semaphore_start(s, false, &chosen);
	semaphore_unlock(s, &chosen);
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
	if (function->node.state != ENDED) {
		function->node.state = RUNNING;
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
	struct tw__line chosen;
	int r = semaphore_check(__func__, s, n);
	if (!r && !fn)
		r = tw__invalid("fn is NULL");
	if (!r)
		r = tw__node_get(tw__object_small_nodes(&s->object), &s->object, &node);
	if (r)
		return r;
	struct function *function = (struct function *)(void *)node;
	node->state = COMING;
	function->fn = fn;
	function->arg = arg;
	function->context = tw__context_capture();
	function->waiter = (struct waiter){.n = (uint32_t)n};
	tw__work_init(&function->work, tw__object_service(&s->object), s->object.executor,
		      run_function);
	if (out)
		*out = (tw_waiter){tw__node_handle(node)};
	semaphore_lock(s, &chosen);
	if (take_or_join(s, &function->waiter)) {
		s->out++;
		tw__line_append(&chosen, tw__in_line_link(&function->waiter.place));
	} else {
		node->state = QUEUED;
	}
	semaphore_unlock(s, &chosen);
	return 0;
}

/* The lock is held. */
static int semaphore_cancel(tw_semaphore *s, struct function *function, struct tw__line *chosen)
{
	struct tw__base base = tw__object_base(&s->object);
	if (!function || function->node.state == ENDED)
		return TW_GONE;
	if (function->node.state == RUNNING)
		return TW_RUNNING;
	if (function->node.state == QUEUED) {
		semaphore_leave(s, &function->waiter);
		tw__node_put(tw__object_small_nodes(&s->object), &function->node);
		semaphore_start(s, false, chosen);
	} else {
		function->node.state = ENDED;
		tw__base_leave_work(&base, &function->work);
		(void)permits_pass_on(s, function->waiter.n, chosen);
	}
	return TW_CANCELLED;
}

int tw_semaphore_cancel(tw_semaphore *s, tw_waiter waiter)
{
	struct tw__line chosen;
	int r = TW__OBJECT_CHECK(s, "semaphore");
	if (r)
		return r;
	semaphore_lock(s, &chosen);
	struct tw__node *node =
	    tw__node_find(tw__object_small_nodes(&s->object), &s->object, waiter.id);
	r = semaphore_cancel(s, (struct function *)(void *)node, &chosen);
	semaphore_unlock(s, &chosen);
	return r;
}

/* ------------------------------------------------------------------------ threads */

/* The thread sleeps until it is granted. False: the deadline has passed. */
static bool sleep_in_line(struct waiter *waiter, uint64_t deadline_ns)
{
	bool in_time = true;
	while (!tw_load_acquire(&waiter->granted) && in_time) /* SEM2 */
		in_time = tw__futex_wait(&waiter->granted, 0, deadline_ns);
	return in_time || tw_load_acquire(&waiter->granted);
}

static int wait_in_line(tw_semaphore *s, uint32_t n, uint64_t deadline_ns)
{
	struct waiter self = {.n = n, .is_thread = true};
	struct tw__line chosen;
	tw__object_lock(&s->object);
	bool has = take_or_join(s, &self);
	tw__object_unlock(&s->object);
	if (has || sleep_in_line(&self, deadline_ns))
		return 0;
	semaphore_lock(s, &chosen);
	bool gave_up = self.in_line;
	if (gave_up) {
		semaphore_leave(s, &self);
		semaphore_start(s, false, &chosen);
	}
	semaphore_unlock(s, &chosen);
	if (!gave_up)
		sleep_in_line(&self, UINT64_MAX); /* the permits are on their way */
	return gave_up ? -ETIMEDOUT : 0;
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
	struct tw__line chosen;
	semaphore_lock(s, &chosen);
	bool was_held = permits_pass_on(s, n, &chosen);
	s->over_releases += !was_held;
	semaphore_unlock(s, &chosen);
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
	struct tw__line chosen;
	int r = capacity < 0 ? tw__bad(-EINVAL, __func__, "capacity")
			     : TW__OBJECT_CHECK(s, "semaphore");
	if (r)
		return r;
	semaphore_lock(s, &chosen);
	uint64_t word = tw_load_relaxed(&s->word), others = ~(COUNT_MASK << CAPACITY_SHIFT);
	while (!tw_cas_acq_rel(&s->word, &word,
			       (word & others) | (uint64_t)capacity << CAPACITY_SHIFT)) /* SEM1 */
		continue;
	semaphore_start(s, false, &chosen);
	semaphore_unlock(s, &chosen);
	return 0;
}

/* --------------------------------------------------------------------- life, stats */

static void semaphore_free(struct tw__object *object)
{
	tw__free(TW__OWNER(tw_semaphore, object, object));
}

static bool semaphore_look(struct tw__object *object, struct tw__figures *out)
{
	const tw_semaphore *s = TW__OWNER(tw_semaphore, object, object);
	out->running = held_of(tw_load_relaxed(&s->word));
	out->waiting = s->waiting;
	return false;
}

static const struct tw__object_kind semaphore_kind = {"semaphore", semaphore_free, semaphore_look};

int tw_semaphore_create(tw_semaphore **out, tw_service *service, tw_executor *executor,
			int32_t capacity)
{
	if (!out || !service)
		return tw__invalid("%s is NULL", out ? "service" : "out");
	if (capacity < 0 || !tw__executor_is_sound(executor))
		return tw__bad(-EINVAL, __func__, capacity < 0 ? "capacity" : "executor");
	tw_semaphore *s = tw__alloc_aligned(_Alignof(tw_semaphore), sizeof *s);
	if (!s)
		return -ENOMEM;
	memset(s, 0, sizeof *s);
	int r = tw__object_init(&s->object, service, executor, start_again, &semaphore_kind);
	if (r) {
		tw__free(s);
		return r;
	}
	tw__work_leave_executor(&s->object.work); /* the driver runs it */
	permits_set(s, (uint64_t)capacity << CAPACITY_SHIFT);
	tw__line_init(&s->line);
	*out = s;
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
	if (!r)
		tw__object_set_name(&s->object, name);
	return r;
}
