/*
 * strand SECONDS [SEED]: strands under fire.
 *
 * Threads submit tasks with and without delays, series, and timers that name the strands as their
 * executors; they cancel, wait, and close, and tasks do so themselves. In the end of a round each
 * strand is destroyed, by the main thread or by a task of its own, and the service closed. What
 * was accepted runs once or is cancelled once, and is released once; nothing of a strand overlaps;
 * what one thread submits to one strand without a delay runs in that order; nothing runs after a
 * close has returned to a task of the strand.
 */
#include <stdarg.h>

#include "test/stress/stress.h"

enum { THREADS = 3, STRANDS = 4, EACH = 3000 };

enum kind { NOW, LATER, SERIES, TIMER };

struct subject {
	tw_strand *strand;
	tw_executor *executor;
	_Atomic int inside;
	_Atomic int closed; /* from a task of its own */
	bool ends_itself;

	/* Plain: the strand keeps its runs apart, and ThreadSanitizer watches it. */
	long runs;
	long last[THREADS];
};

struct record {
	struct subject *subject;
	enum kind kind;
	int thread;
	long number; /* of those without a delay, by thread and strand */
	uint64_t seed, not_before_ns;
	tw_strand_task_id task;
	_Atomic int accepted, started, cancelled, releases, fate;
};

static tw_service *service;
static struct subject subjects[STRANDS];
static struct record records[THREADS][EACH];

static atomic_ullong accepted, ran, cut;

__attribute__((format(printf, 2, 3), noreturn)) static void violation_by(const struct record *r,
									 const char *format, ...)
{
	va_list args;
	violation_begins();
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr,
		"\n  kind %d, accepted %d, started %d, cancelled %d, releases %d, fate %d\n",
		(int)r->kind, r->accepted, r->started, r->cancelled, r->releases, r->fate);
	_exit(1);
}

static void close_here(struct record *r)
{
	struct subject *s = r->subject;
	if (s->ends_itself && atomic_load(&s->closed) == 0) {
		atomic_store(&s->closed, 1);
		if (tw_strand_destroy(s->strand))
			violation_by(r, "a task cannot destroy its strand");
		return;
	}
	if (s->ends_itself)
		return;
	if (tw_strand_close(s->strand, 0) != -ETIMEDOUT) /* this task runs */
		violation_by(r, "a task cannot close its strand");
	atomic_store(&s->closed, 1);
}

static void enter(struct record *r)
{
	struct subject *s = r->subject;
	if (atomic_fetch_add(&s->inside, 1) != 0)
		violation_by(r, "two runs of one strand overlap");
	if (atomic_load(&s->closed))
		violation_by(r, "a run after close has returned on the strand itself");
	if (atomic_load(&r->cancelled) || atomic_load(&r->releases))
		violation_by(r, "a run after the end");
	if (r->not_before_ns && tw_service_now(service) < r->not_before_ns)
		violation_by(r, "a run before its time");
	if (tw_strand_current() != s->strand)
		violation_by(r, "tw_strand_current() is another strand");
	s->runs++;
}

static void run(void *arg)
{
	struct record *r = arg;
	struct subject *s = r->subject;
	enter(r);
	if (atomic_fetch_add(&r->started, 1) && r->kind != SERIES)
		violation_by(r, "a second run");
	if (r->kind == NOW && s->last[r->thread] >= r->number)
		violation_by(r, "out of order");
	if (r->kind == NOW)
		s->last[r->thread] = r->number;
	if (random_below(&r->seed, 4000) == 0)
		close_here(r);
	atomic_fetch_add(&ran, 1);
	if (atomic_fetch_sub(&s->inside, 1) != 1)
		violation_by(r, "two runs of one strand overlapped");
}

static void release(void *arg, enum tw_fate fate)
{
	struct record *r = arg;
	atomic_store(&r->fate, (int)fate);
	if (atomic_fetch_add(&r->releases, 1) != 0)
		violation_by(r, "a second release");
	if (fate == TW_FATE_FIRED && !atomic_load(&r->started))
		violation_by(r, "fired without a run");
	if (fate == TW_FATE_CANCELLED && r->kind != SERIES && atomic_load(&r->started))
		violation_by(r, "cancelled after its run");
	atomic_fetch_add(&cut, fate != TW_FATE_FIRED);
}

static void destroy_own(void *arg);

/* What is seen of a run belongs together: function and argument. */
static void check_seen(const struct tw_service_liveness *seen)
{
	tw_fn *fn = seen->longest_fn;
	uintptr_t arg = (uintptr_t)seen->longest_arg, first = (uintptr_t)records;
	bool of_record = arg >= first && arg - first < sizeof records;
	if ((fn == run || fn == (tw_fn *)(void (*)(void))release) != of_record)
		violation("a function with another's argument", 0);
	if (fn == destroy_own && seen->longest_arg != &subjects[0])
		violation("destroy_own with another's argument", 0);
	if (!seen->running != !fn)
		violation("runs without a function, or the reverse", (long long)seen->running);
}

static void look_on(void)
{
	struct tw_service_liveness seen = {.size = sizeof seen};
	if (tw_service_liveness(service, &seen))
		violation("liveness", 0);
	check_seen(&seen);
}

struct caller {
	unsigned number;
	uint64_t seed;
	long numbers[STRANDS];
};

static int submit_timer(struct record *r, uint64_t delay_ns)
{
	struct tw_task task = {.size = sizeof task,
			       .fn = run,
			       .arg = r,
			       .when_ns = delay_ns,
			       .release = release,
			       .executor = r->subject->executor};
	return tw_schedule_task(service, &task, NULL);
}

static int submit_task(struct record *r, uint64_t delay_ns, uint64_t period_ns)
{
	struct tw_period period = {.size = sizeof period,
				   .first_ns = delay_ns,
				   .period_ns = period_ns,
				   .missed = (enum tw_missed_policy)(r->number % 3)};
	struct tw_strand_task spec = {.size = sizeof spec,
				      .fn = run,
				      .arg = r,
				      .delay_ns = period_ns ? 0 : delay_ns,
				      .period = period_ns ? &period : NULL,
				      .release = release};
	int answer = tw_strand_submit_task(r->subject->strand, &spec, &r->task);
	if (answer && r->task.id)
		violation_by(r, "a refused task has a handle");
	return answer;
}

static void submit(struct caller *c, struct record *r)
{
	static const unsigned char kinds[] = {NOW, NOW, NOW, NOW, LATER, LATER, SERIES, TIMER};
	unsigned which = (unsigned)random_below(&c->seed, STRANDS);
	uint64_t delay_ns = random_below(&c->seed, 3 * TW_MILLISECOND);
	*r = (struct record){.subject = &subjects[which],
			     .kind = (enum kind)kinds[random_below(&c->seed, sizeof kinds)],
			     .thread = (int)c->number,
			     .number = ++c->numbers[which],
			     .seed = random_next(&c->seed)};
	if (r->subject->ends_itself && r->kind != TIMER)
		r->kind = TIMER; /* other calls must not race with destroy */
	if (r->kind != NOW)
		r->not_before_ns = tw_service_now(service) + delay_ns;
	atomic_store(&r->accepted, 1); /* first: it may run before the answer is here */
	int answer =
	    r->kind == TIMER
		? submit_timer(r, delay_ns)
		: submit_task(r, r->kind == NOW ? 0 : delay_ns + 1,
			      r->kind == SERIES ? 100 + random_below(&c->seed, TW_MILLISECOND) : 0);
	if (answer == 0) {
		atomic_fetch_add(&accepted, 1);
		return;
	}
	atomic_store(&r->accepted, 0);
	if (answer != -ESHUTDOWN && answer != -EAGAIN)
		violation_by(r, "submit answers %d", answer);
}

static void cancel(struct caller *c, struct record *r)
{
	if (!r->accepted || r->kind == TIMER)
		return;
	bool wait = random_percent(&c->seed, 20);
	int answer = wait ? tw_strand_cancel_wait(r->subject->strand, r->task, TW_FOREVER)
			  : tw_strand_cancel(r->subject->strand, r->task);
	if (answer < 0 || answer == TW_SELF || (wait && answer == TW_RUNNING))
		violation_by(r, "cancel answers %d", answer);
	if (answer == TW_CANCELLED && r->kind != SERIES && atomic_load(&r->started))
		violation_by(r, "cancelled, and ran");
	if (answer == TW_CANCELLED && atomic_exchange(&r->cancelled, 1))
		violation_by(r, "two cancels won");
	if ((answer == TW_CANCELLED || answer == TW_GONE || answer == TW_FINISHED) &&
	    atomic_load(&r->releases) != 1)
		violation_by(r, "answer %d before its release has returned", answer);
}

static void call(unsigned number, uint64_t seed)
{
	struct caller caller = {.number = number, .seed = seed}, *c = &caller;
	struct record *mine = records[number];
	for (long i = 0; i < EACH; i++) {
		submit(c, &mine[i]);
		if (random_percent(&c->seed, 30))
			cancel(c, &mine[i]);
		if (random_percent(&c->seed, 20))
			cancel(c, &mine[random_below(&c->seed, (uint64_t)i + 1)]);
		struct subject *s = &subjects[random_below(&c->seed, STRANDS)];
		if (random_below(&c->seed, 3000) == 0 && !s->ends_itself &&
		    tw_strand_close(s->strand, TW_FOREVER))
			violation("close and wait", 0);
		if (random_percent(&c->seed, 5))
			look_on();
		if (random_percent(&c->seed, 1))
			usleep((useconds_t)random_below(&c->seed, 1000));
	}
}

static void end_subject(struct subject *s)
{
	if (!s->ends_itself && tw_strand_destroy(s->strand))
		violation("destroy", 0);
}

static void check_records(void)
{
	for (long i = 0; i < (long)THREADS * EACH; i++) {
		struct record *r = &records[i / EACH][i % EACH];
		if (!r->accepted && (r->started || r->releases))
			violation_by(r, "a refused task lives");
		if (r->accepted && r->releases != 1)
			violation_by(r, "%d releases", r->releases);
		if (r->kind != SERIES && r->accepted &&
		    r->started + (r->fate != TW_FATE_FIRED) != 1)
			violation_by(r, "not one fate");
	}
}

static void destroy_own(void *arg)
{
	struct subject *s = arg;
	if (atomic_exchange(&s->closed, 1) == 0 && tw_strand_destroy(s->strand))
		violation("a task cannot destroy its strand", 0);
}

static void open_round(uint64_t *seed)
{
	memset(records, 0, sizeof records);
	service = open_service((struct tw_service_config){
	    .workers = 1 + (uint32_t)random_below(seed, 3), .tick_ns = 100000});
	for (int i = 0; i < STRANDS; i++) {
		struct subject *s = &subjects[i];
		memset(s, 0, sizeof *s);
		if (tw_strand_create(&s->strand, service, NULL))
			violation("strand", 0);
		s->executor = tw_strand_executor(s->strand);
		s->ends_itself = i == 0;
	}
}

static void round_of(uint64_t *seed)
{
	open_round(seed);
	wanted("submit",
	       tw_strand_schedule(subjects[0].strand, random_below(seed, 20) * TW_MILLISECOND,
				  destroy_own, &subjects[0], NULL),
	       0);
	start_threads(THREADS, call, seed);
	join_all_threads();
	for (int i = 0; i < STRANDS; i++)
		end_subject(&subjects[i]);
	int r;
	while ((r = tw_service_destroy(service)) == -EBUSY)
		usleep(100); /* the strand that ends itself */
	wanted("service destroy", r, 0);
	check_records();
}

static void report(const char *word)
{
	printf("%s %lu rounds, %llu accepted, %llu runs, %llu cancelled\n", word, stress_rounds,
	       accepted, ran, cut);
}

int main(int argc, char **argv)
{
	return stress_play(argc, argv, round_of, report);
}
