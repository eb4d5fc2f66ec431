/*
 * limiter SECONDS [SEED]: jobs that succeed, fail, are retried, cancelled, time out and are
 * dropped, on real threads.
 *
 * Threads submit, cancel, resize, change rates and priorities, pause, resume and close, while
 * others complete asynchronous jobs, some of them twice. Some jobs take several permits. In rounds
 * with a constant limit the permits that are out never exceed it, with a constant rate no interval
 * sees more starts. In all rounds each accepted job settles once, is released once after that, with
 * no attempt of it under way, and the counters balance.
 */
#include "test/stress/stress.h"

enum { THREADS = 3, JOBS = 600, LOT = 64 };

struct job {
	tw_job handle;
	_Atomic uint64_t seed;
	bool plain; /* a function and its done */
	uint32_t permits;
	atomic_uint accepted, dones, releases, inside, attempts;
};

static tw_service *service;
static tw_limiter *limiter;
static struct job jobs[THREADS][JOBS];
static atomic_long running;
static long bound;
static atomic_bool resizing, rerating, over, closed;
static unsigned long accepted_all;
static atomic_ulong statuses[5];

/* Attempts that nobody has completed yet. */
static struct {
	pthread_mutex_t lock;
	tw_job jobs[LOT];
	struct job *owners[LOT];
	unsigned n;
} lot = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* When each of the last RATE attempts was announced, in rounds with a rate. */
enum { RATE = 200, RATE_NS = 1000000 };
static struct {
	pthread_mutex_t lock;
	uint64_t ns[RATE];
	unsigned long n;
} starts = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t draw(struct job *job)
{
	uint64_t seed = atomic_fetch_add(&job->seed, 0x9e3779b97f4a7c15u);
	return random_next(&seed);
}

static void attempt_begins(struct job *job)
{
	wanted("two attempts of one job", atomic_fetch_add(&job->inside, 1), 0);
	wanted("an attempt after the release", atomic_load(&job->releases), 0);
	atomic_fetch_add(&job->attempts, 1);
	long now = atomic_fetch_add(&running, job->permits) + job->permits;
	if (!atomic_load(&resizing) && now > bound)
		violation("more permits than there are", now);
}

/* Just before the limiter hears of the end. */
static void attempt_ends(struct job *job)
{
	atomic_fetch_sub(&running, job->permits);
	atomic_fetch_sub(&job->inside, 1);
}

/* Between the line and the function: of a rate's starts in any interval no more can be here. */
static void on_event(void *arg, const struct tw_limiter_event *event)
{
	if (event->kind != TW_LIMITER_EVENT_STARTED)
		return;
	pthread_mutex_lock(&starts.lock);
	uint64_t now_ns = tw_service_now(service), *slot = &starts.ns[starts.n % RATE];
	if (starts.n++ >= RATE && now_ns - *slot < RATE_NS)
		violation("starts closer than the rate allows, ns", (long long)(now_ns - *slot));
	*slot = now_ns;
	pthread_mutex_unlock(&starts.lock);
}

static int answer(uint64_t random)
{
	return random % 3 ? 0 : -EIO;
}

static int run_sync(void *arg, struct tw_job_run *run)
{
	struct job *job = arg;
	attempt_begins(job);
	uint64_t random = draw(job);
	if (random % 16 == 0)
		usleep((useconds_t)(random >> 8) % 500);
	attempt_ends(job);
	return answer(random >> 32);
}

static void complete(tw_job handle, struct job *job, uint64_t random)
{
	attempt_ends(job);
	int r = tw_job_complete(limiter, handle, answer(random), NULL);
	if (r != 0 && r != TW_JOB_LATE)
		violation("complete", r);
	if (random >> 8 & 1)
		wanted("a second completion", tw_job_complete(limiter, handle, 0, NULL), -EALREADY);
}

/* Either leaves the end of the run to another thread, or finishes it. */
static int run_async(void *arg, struct tw_job_run *run)
{
	struct job *job = arg;
	attempt_begins(job);
	uint64_t random = draw(job);
	pthread_mutex_lock(&lot.lock);
	bool left = random % 8 && lot.n < LOT;
	if (left) {
		lot.jobs[lot.n] = run->job;
		lot.owners[lot.n++] = job;
	}
	pthread_mutex_unlock(&lot.lock);
	if (!left)
		complete(run->job, job, random >> 8);
	return TW_JOB_PENDING;
}

static void done(void *arg, const struct tw_job_result *result)
{
	struct job *job = arg;
	wanted("settled twice", atomic_fetch_add(&job->dones, 1), 0);
	if (job->plain)
		atomic_fetch_add(&job->releases, 1); /* it has none of its own */
	/* one may be past its time before its function is called */
	if (result->status != TW_JOB_STATUS_TIMED_OUT)
		wanted("attempts", result->attempts, atomic_load(&job->attempts));
	atomic_fetch_add(&statuses[result->status], 1);
}

static void release(void *arg)
{
	struct job *job = arg;
	wanted("released before it has settled", atomic_load(&job->dones), 1);
	wanted("released while an attempt runs", atomic_load(&job->inside), 0);
	wanted("released twice", atomic_fetch_add(&job->releases, 1), 0);
}

static void stop(void *arg, tw_job handle, enum tw_job_status why)
{
	struct job *job = arg;
	wanted("stopped after the release", atomic_load(&job->releases), 0);
}

/* One of three jobs is not retried, and one is retried immediately. */
static bool allow(void *arg, tw_job handle, int error, uint32_t attempt, int64_t *delay_ns)
{
	struct job *job = arg;
	uint64_t random = draw(job);
	if (error != -EIO && error != -ETIMEDOUT)
		violation("error of a predicate", error);
	if (random % 3 == 1)
		*delay_ns = 0;
	return random % 3;
}

static void submit(struct job *job, uint64_t *seed)
{
	bool async = random_percent(seed, 50), plain = random_percent(seed, 60);
	struct tw_limiter_task task = {.size = sizeof task,
				       .fn = async ? run_async : run_sync,
				       .arg = job,
				       .done = done,
				       .release = plain ? NULL : release,
				       .stop = !plain && random_percent(seed, 50) ? stop : NULL,
				       .flags = async ? TW_LIMITER_TASK_ASYNC : 0,
				       .priority = plain ? 0 : (int)random_below(seed, 3),
				       .wait_ns = random_percent(seed, 50) ? 1000000 : 0};
	if (!plain && random_percent(seed, 60))
		task.retry = (struct tw_retry){.count = 2,
					       .delay_ns = 100000,
					       .jitter = (uint32_t)random_below(seed, 2),
					       .allow = random_percent(seed, 50) ? allow : NULL};
	if (!plain && random_percent(seed, 30))
		task.permits = 1 + (uint32_t)random_below(seed, (uint64_t)bound);
	if (!plain && random_percent(seed, 40))
		task.queue_timeout_ns = random_below(seed, 2000000);
	if (!plain && random_percent(seed, 40))
		task.attempt_timeout_ns = random_below(seed, 1000000);
	if (!plain && random_percent(seed, 20))
		task.timeout_ns = random_below(seed, 3000000);
	job->plain = plain;
	job->permits = task.permits ? task.permits : 1;
	atomic_store(&job->seed, random_next(seed));
	int r = tw_limiter_submit_task(limiter, &task, &job->handle);
	bool refused =
	    (r == -ESHUTDOWN && atomic_load(&closed)) || (r == -EINVAL && atomic_load(&resizing));
	if (r != 0 && r != -EAGAIN && r != -ETIMEDOUT && !refused)
		violation("submit", r);
	atomic_store(&job->accepted, r == 0);
}

static bool complete_one(uint64_t *seed)
{
	pthread_mutex_lock(&lot.lock);
	bool any = lot.n > 0;
	tw_job handle = {0};
	struct job *job = NULL;
	if (any) {
		unsigned i = (unsigned)random_below(seed, lot.n);
		handle = lot.jobs[i];
		job = lot.owners[i];
		lot.jobs[i] = lot.jobs[--lot.n];
		lot.owners[i] = lot.owners[lot.n];
	}
	pthread_mutex_unlock(&lot.lock);
	if (any)
		complete(handle, job, random_next(seed));
	return any;
}

static void close_it(uint64_t *seed)
{
	static const enum tw_close_mode modes[] = {TW_CLOSE_DROP, TW_CLOSE_DRAIN};
	atomic_store(&closed, true);
	int r =
	    tw_limiter_close(limiter, modes[random_below(seed, 2)], random_below(seed, 2) * 100000);
	if (r != 0 && r != -ETIMEDOUT)
		violation("close", r);
}

static void meddle(uint64_t *seed)
{
	switch (random_below(seed, 60)) {
	case 0:
		wanted("pause", tw_limiter_set_paused(limiter, true), 0);
		wanted("resume", tw_limiter_set_paused(limiter, false), 0);
		break;
	case 1:
		if (random_percent(seed, 2))
			close_it(seed);
		break;
	case 2:
		if (atomic_load(&resizing))
			tw_limiter_set_max_concurrency(limiter,
						       1 + (uint32_t)random_below(seed, 8));
		break;
	case 3:
		if (atomic_load(&rerating))
			wanted("set_rate",
			       tw_limiter_set_rate(limiter, 20 + (uint32_t)random_below(seed, RATE),
						   1 + random_below(seed, RATE_NS)),
			       0);
		break;
	default:
		break;
	}
}

static void work(unsigned number, uint64_t seed)
{
	struct job *mine = jobs[number];
	for (int i = 0; i < JOBS; i++) {
		submit(&mine[i], &seed);
		if (random_percent(&seed, 20)) {
			struct job *other = &mine[random_below(&seed, (uint64_t)i + 1)];
			int r = tw_job_cancel(limiter, other->handle);
			if (r < 0)
				violation("cancel", r);
		}
		if (random_percent(&seed, 20)) {
			struct job *other = &mine[random_below(&seed, (uint64_t)i + 1)];
			int r = tw_job_set_priority(limiter, other->handle,
						    (int)random_below(&seed, 5) - 2);
			if (r < 0)
				violation("set_priority", r);
		}
		if (random_percent(&seed, 10)) {
			int r =
			    tw_job_wait(limiter, mine[i].handle, random_below(&seed, 200000), NULL);
			if (r != 0 && r != TW_GONE && r != -ETIMEDOUT)
				violation("wait", r);
		}
		meddle(&seed);
		complete_one(&seed);
	}
}

static void finish(unsigned number, uint64_t seed)
{
	while (!atomic_load(&over))
		if (!complete_one(&seed))
			sched_yield();
}

static void check_jobs(void)
{
	uint64_t accepted = 0;
	for (int t = 0; t < THREADS; t++)
		for (int i = 0; i < JOBS; i++) {
			struct job *job = &jobs[t][i];
			wanted("settled", atomic_load(&job->dones), atomic_load(&job->accepted));
			wanted("released", atomic_load(&job->releases),
			       atomic_load(&job->accepted));
			wanted("attempts under way at the end", atomic_load(&job->inside), 0);
			accepted += atomic_load(&job->accepted);
		}
	struct tw_limiter_stats stats = {.size = sizeof stats};
	wanted("stats", tw_limiter_stats(limiter, &stats), 0);
	wanted("added", (long long)stats.added, (long long)accepted);
	wanted("balance",
	       (long long)(stats.succeeded + stats.failed + stats.cancelled + stats.timed_out +
			   stats.dropped),
	       (long long)accepted);
	wanted("running at the end", (long long)stats.running, 0);
	wanted("permits at the end", (long long)stats.permits, 0);
	wanted("pending at the end", (long long)stats.pending, 0);
	accepted_all += accepted;
}

static void round_of(uint64_t *seed)
{
	bool bounded = random_percent(seed, 60); /* else plain jobs come in without the lock */
	struct tw_limiter_config config = {.size = sizeof config, .max_pending = bounded ? 200 : 0};
	bound = 1 + (long)random_below(seed, 6);
	atomic_store(&rerating, random_percent(seed, 50));
	config.max_concurrency = (uint32_t)bound;
	config.flags = bounded && random_percent(seed, 80) ? TW_LIMITER_COLLECT : 0;
	if (bounded && random_percent(seed, 30)) {
		config.rate_starts = RATE;
		config.rate_interval_ns = RATE_NS;
		config.event = atomic_load(&rerating) ? NULL : on_event;
		starts.n = 0;
	}
	atomic_store(&rerating, atomic_load(&rerating) && config.rate_starts);
	memset(jobs, 0, sizeof jobs);
	atomic_store(&resizing, random_percent(seed, 50));
	atomic_store(&over, false);
	atomic_store(&closed, false);
	wanted("create", tw_limiter_create(&limiter, service, &config), 0);
	start_threads(THREADS, work, seed);
	start_threads(1, finish, seed);
	join_threads(THREADS);
	wanted("wait_idle: jobs that never settle", tw_limiter_wait_idle(limiter, 20 * TW_SECOND),
	       0);
	atomic_store(&over, true);
	join_all_threads();
	check_jobs();
	wanted("destroy", tw_limiter_destroy(limiter), 0);
}

static void report(const char *word)
{
	printf("%s %lu rounds, %lu jobs: %lu succeeded, %lu failed, %lu cancelled, %lu timed out, "
	       "%lu dropped\n",
	       word, stress_rounds, accepted_all, statuses[0], statuses[1], statuses[2],
	       statuses[3], statuses[4]);
}

int main(int argc, char **argv)
{
	service = open_service((struct tw_service_config){.workers = 2, .tick_ns = 100000});
	stress_play(argc, argv, round_of, report);
	wanted("service destroy", tw_service_destroy(service), 0);
	return 0;
}
