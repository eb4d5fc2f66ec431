/*
 * The line of waiters, and who gets permits that come back. Calls the base, and submits functions.
 * The word, its transitions and the pairs: semaphore.c.
 */
#include "executor/semaphore/permits.h"

/* ------------------------------------------------------------- the line, locked */

/* WAITERS is set. */
void tw__semaphore_join(tw_semaphore *s, struct tw__waiter *waiter)
{
	tw__waiter_join(&s->line, waiter); /* planted: last_come_first */
	s->waiting++;
	s->waiting_threads += !waiter->work;
}

/* It leaves for the list of those chosen; NULL: it is no waiter any more. */
void tw__semaphore_leave(tw_semaphore *s, struct tw__waiter *waiter, struct tw__line *chosen)
{
	if (chosen)
		tw__waiter_choose(&s->line, waiter, chosen);
	else
		tw__waiter_leave(&s->line, waiter);
	s->waiting_threads -= !waiter->work;
	if (--s->waiting == 0)
		tw__permits_set(s, tw_load_relaxed(&s->word) & ~WAITERS);
}

/* Its permits are there. */
static void semaphore_choose(tw_semaphore *s, struct tw__waiter *waiter, struct tw__line *chosen)
{
	tw__permits_set(s, tw_load_relaxed(&s->word) + waiter->n);
	tw__semaphore_leave(s, waiter, chosen);
	if (!waiter->work)
		return;
	function_of(waiter)->node.state = TW__ITEM_COMING;
	if (!function_of(waiter)->order)
		function_of(waiter)->order = ++s->order;
	s->out++;
}

/*
 * Chooses those that fit, in the order of the line. The first that does not fit ends this, so that
 * one that waits for many permits gets its turn.
 */
void tw__semaphore_start(tw_semaphore *s, struct tw__line *chosen)
{
	for (struct tw__waiter *waiter; (waiter = tw__waiter_first(&s->line)) &&
					has_room(tw_load_relaxed(&s->word), waiter->n);)
		semaphore_choose(s, waiter, chosen);
}

/* Whether there were n permits to take. If not, WAITERS is set, and the caller joins the line. */
bool tw__permits_take_or_announce(tw_semaphore *s, uint32_t n)
{
	uint64_t word = tw_load_relaxed(&s->word), next;
	do {
		if (word & WAITERS)
			return false;
		next = has_room(word, n) ? word + n : word | WAITERS;
	} while (!tw_cas_acq_rel(&s->word, &word, next)); /* SEM1 */
	return !(next & WAITERS);
}

/* n permits that are held have no owner any more. False: fewer were held. */
bool tw__permits_pass_on(tw_semaphore *s, uint32_t n, struct tw__line *chosen)
{
	uint64_t word = tw_load_relaxed(&s->word);
	do {
		if (held_of(word) < n)
			return false;
	} while (!tw_cas_acq_rel(&s->word, &word, word - n)); /* SEM1 */
	tw__semaphore_start(s, chosen);
	return true;
}

/* --------------------------------------------------------------------- hand over */

/* The lock is held. */
void tw__function_put(tw_semaphore *s, struct function *function)
{
	s->out--;
	tw__node_put(&s->nodes, &function->node);
}

static struct tw__waiter *first_thread(tw_semaphore *s)
{
	tw__link link = s->waiting_threads ? s->line.first : 0;
	while (link && tw__waiter_of(link)->work)
		link = tw__waiter_of(link)->place.next;
	return link ? tw__waiter_of(link) : NULL;
}

/* At the head of the line, behind others that came back. WAITERS is set. */
static void join_again(tw_semaphore *s, struct function *function)
{
	tw__link *where = &s->line.first;
	for (struct tw__waiter *other; *where; where = &other->place.next) {
		other = tw__waiter_of(*where);
		if (!other->work || function_of(other)->order - 1 >= function->order - 1)
			break; /* order 0: it has had no permits yet */
	}
	tw__line_insert(&s->line, where, tw__in_line_link(&function->waiter.place));
	s->waiting++;
}

/* Threads that wait get the permits of a refused function. False: they would do for none. */
static bool threads_first(tw_semaphore *s, struct function *function, struct tw__line *chosen)
{
	struct tw__waiter *thread = first_thread(s);
	uint64_t without = tw_load_relaxed(&s->word) - function->waiter.n;
	if (!thread || !has_room(without, thread->n))
		return false;
	tw__permits_set(s, without); /* WAITERS is set: a thread waits */
	function->node.state = TW__ITEM_QUEUED;
	s->out--;
	join_again(s, function);
	for (; thread && has_room(tw_load_relaxed(&s->word), thread->n); thread = first_thread(s))
		semaphore_choose(s, thread, chosen);
	tw__semaphore_start(s, chosen);
	return true;
}

/* The executor has refused it. Each round serves a thread, so the depth is bounded. */
static void refuse(tw_semaphore *s, struct function *function)
{
	struct tw__line chosen;
	bool later = false;
	tw__line_init(&chosen);
	tw__object_lock(&s->object);
	s->refusals++;
	if (function->node.state == TW__ITEM_ENDED) {
		tw__function_put(s, function);
	} else if (!threads_first(s, function, &chosen)) {
		later = !s->refused.first;
		tw__line_append(&s->refused, tw__in_line_link(&function->waiter.place));
		s->object.users += later; /* until the driver has taken them */
	}
	tw__object_unlock(&s->object);
	tw__semaphore_grant(s, &chosen);
	if (later)
		tw__work_submit_later(&s->object.work);
}

/* What was chosen under the lock. Nothing of a function runs in here, whatever the executor is. */
void tw__semaphore_grant(tw_semaphore *s, struct tw__line *chosen)
{
	for (tw__link link = chosen->first, next; link; link = next) {
		struct tw__waiter *waiter = tw__waiter_of(link);
		next = waiter->place.next; /* first: it may be gone */
		if (!waiter->work)
			tw__waiter_grant(waiter);
		else if (tw__work_try_submit(waiter->work) < 0)
			refuse(s, function_of(waiter));
	}
}

/* On the driver: offers again what the executor has refused. */
void tw__semaphore_offer_again(struct tw__work *work)
{
	tw_semaphore *s = TW__OWNER(tw_semaphore, object.work, work);
	struct tw__line again, offered;
	tw__line_init(&again);
	tw__line_init(&offered);
	tw__object_lock(&s->object);
	tw__line_move(&s->refused, &again);
	while (again.first) {
		tw__link link = tw__line_pop(&again);
		if (function_of(tw__waiter_of(link))->node.state == TW__ITEM_ENDED)
			tw__function_put(s, function_of(tw__waiter_of(link)));
		else
			tw__line_append(&offered, link);
	}
	tw__object_unlock(&s->object);
	tw__semaphore_grant(s, &offered);
	tw__object_lock(&s->object);
	tw__object_drop(&s->object, 1);
}
