/*
 * Fair shares by tenant: one tenant that submits a thousand jobs must not hold up the others. Each
 * tenant has its own queue. The queues take turns at the limiter, and a tenant with share 2 gives
 * two jobs in a turn.
 *
 * The limiter has no queue of its own (TW_LIMITER_NO_QUEUE): it takes a job if a permit is free.
 * Each job that ends asks for the next. Played on a virtual clock.
 */
#include <pthread.h>
#include <stdio.h>
#include <tickwheel.h>

enum { TENANTS = 3, PERMITS = 4 };

struct item {
	struct item *next;
	struct tenant *tenant;
	uint64_t submitted_ns;
	tw_job attempt;
};

struct tenant {
	struct item *first, **end;
	unsigned share, given; /* jobs in a turn; of this turn so far */
	unsigned served;
	uint64_t longest_wait_ns;
};

static struct {
	pthread_mutex_t lock;
	tw_limiter *limiter;
	struct tenant tenants[TENANTS];
	unsigned turn;
} fair = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ----------------------------------------------------------------- the policy */

static int work(void *arg, struct tw_job_run *run);
static void on_done(void *arg, const struct tw_job_result *result);

/* The tenant whose turn it is, and has something; NULL: all queues are empty. */
static struct tenant *next_tenant(void)
{
	for (unsigned looked = 0; looked <= TENANTS; looked++) {
		struct tenant *tenant = &fair.tenants[fair.turn];
		if (tenant->first && tenant->given < tenant->share)
			return tenant;
		tenant->given = 0;
		fair.turn = (fair.turn + 1) % TENANTS;
	}
	return NULL;
}

static bool give(struct tenant *tenant)
{
	struct tw_limiter_task task = TW_INIT(tw_limiter_task);
	struct item *item = tenant->first;
	task.fn = work;
	task.arg = item;
	task.done = on_done;
	task.flags = TW_LIMITER_TASK_ASYNC;
	if (tw_limiter_submit_task(fair.limiter, &task, NULL) < 0)
		return false; /* no permit is free: the next job that ends comes here */
	tenant->first = item->next;
	if (!tenant->first)
		tenant->end = &tenant->first;
	tenant->given++;
	return true;
}

static void feed(void)
{
	struct tenant *tenant;
	pthread_mutex_lock(&fair.lock);
	while ((tenant = next_tenant()) && give(tenant)) {
	}
	pthread_mutex_unlock(&fair.lock);
}

static void fair_submit(struct tenant *tenant, struct item *item)
{
	pthread_mutex_lock(&fair.lock);
	item->tenant = tenant;
	item->next = NULL;
	*tenant->end = item;
	tenant->end = &item->next;
	pthread_mutex_unlock(&fair.lock);
	feed();
}

/* The job's permit has returned before `done` is called. */
static void on_done(void *arg, const struct tw_job_result *result)
{
	(void)arg;
	(void)result;
	feed();
}

/* ------------------------------------------------------------------ the play */

enum { FLOOD = 1000, VISITS = 50 };

#define JOB_NS (10 * TW_MILLISECOND)

static tw_sim *sim;
static tw_service *service;
static struct item floods[2][FLOOD], visits[VISITS];

static void on_worked(void *arg)
{
	tw_job_complete(fair.limiter, ((struct item *)arg)->attempt, 0, NULL);
}

static int work(void *arg, struct tw_job_run *run)
{
	struct item *item = arg;
	uint64_t waited_ns = tw_clock_now(tw_sim_clock(sim)) - item->submitted_ns;
	item->attempt = run->job;
	item->tenant->served++;
	if (waited_ns > item->tenant->longest_wait_ns)
		item->tenant->longest_wait_ns = waited_ns;
	return tw_schedule(service, JOB_NS, on_worked, item, NULL) < 0 ? -1 : TW_JOB_PENDING;
}

static void on_visit(void *arg)
{
	struct item *item = arg;
	item->submitted_ns = tw_clock_now(tw_sim_clock(sim));
	fair_submit(&fair.tenants[2], item);
}

int main(void)
{
	struct tw_sim_config play = TW_INIT(tw_sim_config);
	struct tw_limiter_config config = TW_INIT(tw_limiter_config);
	config.max_concurrency = PERMITS;
	config.flags = TW_LIMITER_NONBLOCKING | TW_LIMITER_NO_QUEUE;
	if (tw_sim_create(&sim, &play) < 0)
		return 1;
	service = tw_sim_service(sim);
	if (tw_limiter_create(&fair.limiter, service, &config) < 0)
		return 1;
	for (int i = 0; i < TENANTS; i++)
		fair.tenants[i] =
		    (struct tenant){.end = &fair.tenants[i].first, .share = i == 1 ? 2 : 1};
	for (int i = 0; i < FLOOD; i++) {
		floods[0][i].submitted_ns = floods[1][i].submitted_ns =
		    tw_clock_now(tw_sim_clock(sim));
		fair_submit(&fair.tenants[0], &floods[0][i]);
		fair_submit(&fair.tenants[1], &floods[1][i]);
	}
	for (uint64_t i = 0; i < VISITS; i++)
		tw_schedule(service, i * 37 * TW_MILLISECOND, on_visit, &visits[i], NULL);
	tw_sim_run_for(sim, 2 * TW_SECOND);
	const struct tenant *one = &fair.tenants[0], *two = &fair.tenants[1],
			    *visitor = &fair.tenants[2];
	printf("in 2 s: share 1: %u jobs, share 2: %u jobs; a visitor: %u jobs, waited at most "
	       "%.0f ms\n",
	       one->served, two->served, visitor->served, (double)visitor->longest_wait_ns / 1e6);
	bool shares = two->served >= 2 * one->served - 4 && two->served <= 2 * one->served + 4;
	bool prompt = visitor->served == VISITS && visitor->longest_wait_ns <= 3 * JOB_NS;
	tw_sim_run_for(sim, 10 * TW_SECOND);
	bool all = one->served == FLOOD && two->served == FLOOD;
	tw_limiter_destroy(fair.limiter);
	tw_sim_destroy(sim);
	return shares && prompt && all ? 0 : 1;
}
