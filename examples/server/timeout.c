/*
 * A mailbox is one lock, a list through the timeouts themselves, and an eventfd. The eventfd is
 * written when the list stops being empty.
 */
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "examples/server/timeout.h"

bool mailbox_init(struct mailbox *m, tw_service *service)
{
	*m = (struct mailbox){.service = service,
			      .event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	pthread_mutex_init(&m->lock, NULL);
	m->end = &m->first;
	return m->event_fd >= 0;
}

void mailbox_destroy(struct mailbox *m)
{
	pthread_mutex_destroy(&m->lock);
	if (m->event_fd >= 0)
		close(m->event_fd);
}

void mailbox_wake(struct mailbox *m)
{
	uint64_t one = 1;
	while (write(m->event_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void mailbox_slept(struct mailbox *m)
{
	uint64_t count;
	while (read(m->event_fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
}

/*
 * Only the first of several notices writes to the eventfd: the loop takes until the mailbox is
 * empty.
 */
static void post(struct timeout *t, tw_timer fired)
{
	struct mailbox *m = t->mailbox;
	pthread_mutex_lock(&m->lock);
	bool was_empty = m->first == NULL;
	t->fired = fired;
	if (!t->posted) {
		t->posted = true;
		t->next = NULL;
		*m->end = t;
		m->end = &t->next;
	}
	pthread_mutex_unlock(&m->lock);
	if (was_empty)
		mailbox_wake(m);
}

size_t mailbox_take(struct mailbox *m, struct notice *out, size_t room)
{
	size_t n = 0;
	pthread_mutex_lock(&m->lock);
	for (; n < room && m->first != NULL; n++) {
		struct timeout *t = m->first;
		out[n] = (struct notice){.timeout = t, .fired = t->fired};
		t->posted = false;
		m->first = t->next;
	}
	if (m->first == NULL)
		m->end = &m->first;
	pthread_mutex_unlock(&m->lock);
	return n;
}

/* The only code of this file that runs on the service's workers. */
static void on_timeout(void *arg)
{
	post(arg, tw_self());
}

void timeout_init(struct timeout *t, struct mailbox *mailbox, void *owner, unsigned kind)
{
	*t = (struct timeout){.mailbox = mailbox, .owner = owner, .kind = kind};
}

int timeout_set(struct timeout *t, uint64_t deadline_ns)
{
	tw_service *service = t->mailbox->service;
	if (t->timer.id != 0 && tw_reset_at(service, t->timer, deadline_ns) == 0)
		return 0;
	/* Never scheduled, or it fired a moment ago: its notice is stale from here on. */
	t->timer = (tw_timer){0};
	return tw_schedule_at(service, deadline_ns, on_timeout, t, &t->timer);
}

/* If the callback runs already (TW_RUNNING), its notice finds no handle that matches. */
void timeout_clear(struct timeout *t)
{
	if (t->timer.id == 0)
		return;
	tw_cancel(t->mailbox->service, t->timer);
	t->timer = (tw_timer){0};
}

bool timeout_accept(const struct notice *n)
{
	if (n->timeout->timer.id != n->fired.id)
		return false;
	n->timeout->timer = (tw_timer){0};
	return true;
}
