/*
 * Threads put work with deadlines into a queue and race with the run that takes it out. No work is
 * left behind, none is taken before its deadline, and one wake-up serves several.
 */
#include "earlier.h"
#include "support.h"

enum { THREADS = 3, WORK = 300, ALL = THREADS * WORK };

static tw_clock *hand;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t queue[ALL]; /* deadlines */
static int queued;
static atomic_int taken, runs;
static struct wakeup wakeup;

static void add(uint64_t delay_ns)
{
	pthread_mutex_lock(&lock);
	uint64_t deadline_ns = tw_service_now(wakeup.service) + delay_ns;
	queue[queued++] = deadline_ns;
	CHECK(wake_by(&wakeup, deadline_ns) == 0);
	pthread_mutex_unlock(&lock);
}

static void take_due(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	uint64_t now_ns = tw_service_now(wakeup.service), next_ns = UINT64_MAX;
	int left = 0;
	for (int i = 0; i < queued; i++) {
		if (queue[i] <= now_ns) {
			taken++;
			continue;
		}
		next_ns = queue[i] < next_ns ? queue[i] : next_ns;
		queue[left++] = queue[i];
	}
	queued = left;
	if (left > 0)
		CHECK(wake_by(&wakeup, next_ns) == 0);
	pthread_mutex_unlock(&lock);
	runs++;
}

static void *add_work(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	for (int i = 0; i < WORK; i++) {
		jitter(&seed, 50);
		add((seed >> 8) % 100 * TW_MILLISECOND);
	}
	return NULL;
}

static void await_runs(int n)
{
	while (runs < n)
		usleep(100);
	CHECK(runs == n);
}

int main(void)
{
	wakeup = (struct wakeup){.service = service_by_hand(&hand), .fn = take_due};
	add(5 * TW_SECOND);
	add(7 * TW_SECOND); /* later: changes nothing */
	add(2 * TW_SECOND); /* earlier: moves it */
	tw_clock_manual_advance_by(hand, 3 * TW_SECOND);
	await_runs(1);
	CHECK(taken == 1);
	tw_clock_manual_advance_by(hand, 5 * TW_SECOND);
	while (taken < 3)
		usleep(100);

	taken = 0;
	pthread_t threads[THREADS];
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, add_work, (void *)(i + 1)) == 0);
	for (int i = 0; i < 100; i++)
		tw_clock_manual_advance_by(hand, TW_MILLISECOND);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 200; i++) { /* no work needs another add to be found */
		tw_clock_manual_advance_by(hand, TW_MILLISECOND);
		usleep(50);
	}
	while (taken < ALL)
		usleep(100);
	CHECK(queued == 0);
	CHECK(tw_service_destroy(wakeup.service) == 0);
	return tw_clock_manual_destroy(hand);
}
