/* The simulation: what a seed repeats, what another one changes, what none may change. */
#include "tickwheel/sim.h"

#include <errno.h>
#include <string.h>

#include "test/support/rig.h"
#include "wheel/run/work.h"

TestSuite(sim, .timeout = 60);

enum { MANY = 400 };

/* What ran, in order. */
static struct {
	tw_sim *sim;
	int ids[MANY];
	uint64_t at_ns[MANY];
	int ran;
	uint64_t random;
} log_;

static void log_run(void *arg)
{
	if (log_.ran < MANY) {
		log_.ids[log_.ran] = (int)(intptr_t)arg;
		log_.at_ns[log_.ran] = tw_service_now(tw_sim_service(log_.sim));
	}
	log_.ran++;
}

static void *id(int number)
{
	return (void *)(intptr_t)number;
}

static void open_config(struct tw_sim_config cfg)
{
	memset(&log_, 0, sizeof log_);
	log_.random = cfg.seed;
	cfg.size = sizeof cfg;
	expect_eq(tw_sim_create(&log_.sim, &cfg), 0);
}

static void open_sim(uint64_t seed, uint32_t workers)
{
	open_config((struct tw_sim_config){.seed = seed, .workers = workers});
}

static void close_sim(void)
{
	expect_sound(tw_sim_service(log_.sim));
	expect_eq(tw_sim_destroy(log_.sim), 0);
}

static void schedule_id(int number, uint64_t delay_ns)
{
	expect_eq(tw_schedule(tw_sim_service(log_.sim), delay_ns, log_run, id(number), NULL), 0);
}

static void schedule_ids(int count, uint64_t delay_ns)
{
	for (int i = 0; i < count; i++)
		schedule_id(i, delay_ns);
}

/* ----------------------------------------------------------------------- time */

Test(sim, virtual_year_passes_and_each_run_sees_the_clock_at_its_deadline)
{
	open_sim(1, 2);
	for (int day = 1; day <= 365; day++)
		schedule_id(day, (uint64_t)day * DAY);
	expect_eq(tw_sim_run(log_.sim, TW_FOREVER), 0);
	expect_eq(log_.ran, 365);
	for (int day = 1; day <= 365; day++) {
		expect_eq(log_.ids[day - 1], day);
		expect_eq(log_.at_ns[day - 1], (uint64_t)day * DAY);
	}
	close_sim();
}

Test(sim, runs_up_to_an_instant_that_included_and_stands_there)
{
	open_config((struct tw_sim_config){.start_ns = 5 * SECOND});
	schedule_ids(1, 10 * MS);
	expect_eq(tw_sim_run(log_.sim, 10 * MS - 1), 1);
	expect_eq(log_.ran, 0);
	expect_eq(tw_service_now(tw_sim_service(log_.sim)), 5 * SECOND + 10 * MS - 1);
	expect_eq(tw_sim_run(log_.sim, 1), 0);
	expect_eq(log_.ran, 1);
	expect_eq(tw_service_now(tw_sim_service(log_.sim)), 5 * SECOND + 10 * MS);
	close_sim();
}

Test(sim, idle_comes_when_nothing_is_left_and_an_endless_series_runs_into_the_limit)
{
	open_sim(1, 2);
	expect_eq(tw_sim_run(log_.sim, TW_FOREVER), 0);
	expect_eq(tw_sim_step(log_.sim), 0);
	expect_eq(tw_service_now(tw_sim_service(log_.sim)), 0);
	struct tw_period period = rate_of(MS, MS, 0);
	tw_timer series;
	expect_eq(tw_schedule_every(tw_sim_service(log_.sim), &period, log_run, NULL, &series), 0);
	expect_eq(tw_sim_run(log_.sim, 100 * MS), 1);
	expect_eq(log_.ran, 100);
	expect_eq(tw_service_now(tw_sim_service(log_.sim)), 100 * MS);
	expect_eq(tw_cancel(tw_sim_service(log_.sim), series), TW_CANCELLED);
	expect_eq(tw_sim_run(log_.sim, TW_FOREVER), 0);
	expect_eq(log_.ran, 100);
	close_sim();
}

/* ---------------------------------------------------------------------- order */

/* A run may be overtaken without bound. But at most workers - 1 runs wait while others go on. */
static void expect_possible_for(int workers, int count)
{
	bool ran[MANY] = {false};
	int next = 0; /* all before it have been taken, and run except at most workers - 1 */
	for (int i = 0; i < count; i++) {
		ran[log_.ids[i]] = true;
		next = log_.ids[i] > next ? log_.ids[i] : next;
		int held = 0;
		for (int j = 0; j < next; j++)
			held += !ran[j];
		expect_lt(held, workers);
	}
}

Test(sim, other_seeds_let_workers_overtake_each_other_as_far_as_they_can)
{
	enum { WORKERS = 3, COUNT = 100 };
	int moved = 0, most_behind = 0;
	for (uint64_t seed = 0; seed < 50; seed++) {
		open_sim(seed, WORKERS);
		schedule_ids(COUNT, 10 * MS);
		expect_eq(tw_sim_run(log_.sim, 10 * MS), 0);
		expect_eq(log_.ran, COUNT);
		expect_possible_for(WORKERS, COUNT);
		for (int i = 0; i < COUNT; i++) {
			moved += log_.ids[i] != i;
			most_behind = i - log_.ids[i] > most_behind ? i - log_.ids[i] : most_behind;
		}
		close_sim();
	}
	expect_gt(moved, 0);
	expect_gt(most_behind, 3);
}

static void count_runs_of_worker(void *arg, const struct tw_sim_event *event)
{
	if (event->kind == TW_SIM_RAN)
		((int *)arg)[event->worker]++;
}

Test(sim, all_workers_get_their_share)
{
	int runs[4] = {0};
	open_config((struct tw_sim_config){
	    .seed = 3, .workers = 4, .on_event = count_runs_of_worker, .event_arg = runs});
	schedule_ids(MANY, MS);
	expect_eq(tw_sim_run(log_.sim, MS), 0);
	for (int i = 0; i < 4; i++)
		expect_gt(runs[i], 0);
	expect_eq(runs[0] + runs[1] + runs[2] + runs[3], MANY);
	close_sim();
}

/* Runs are numbered in the order of handing over, in which they are taken. */
static void check_number(void *arg, const struct tw_sim_event *event)
{
	if (event->kind == TW_SIM_TAKEN)
		expect_eq(event->value, (*(uint64_t *)arg)++);
}

Test(sim, one_worker_runs_all_in_the_order_of_handing_over)
{
	uint64_t taken = 0;
	open_config(
	    (struct tw_sim_config){.workers = 1, .on_event = check_number, .event_arg = &taken});
	schedule_ids(100, MS);
	expect_eq(tw_sim_run(log_.sim, MS), 0);
	for (int i = 0; i < 100; i++)
		expect_eq(log_.ids[i], i);
	expect_eq(taken, 100);
	close_sim();
}

/* ---------------------------------------------------------------------- traces */

enum { CHAINS = 8, LINKS = 40 };

static void chain(void *arg)
{
	intptr_t left = (intptr_t)arg;
	log_run(arg);
	if (left > 0)
		tw_schedule(tw_sim_service(log_.sim), random_below(&log_.random, 5 * MS), chain,
			    id((int)left - 1), NULL);
}

static void in_one_run(void)
{
	expect_eq(tw_sim_run(log_.sim, TW_FOREVER), 0);
}

static void step_by_step(void)
{
	while (tw_sim_step(log_.sim) == 1)
		;
}

static void in_short_runs(void)
{
	while (log_.ran < CHAINS * (LINKS + 1))
		expect_ge(tw_sim_run(log_.sim, MS / 7), 0);
	in_one_run();
}

static uint64_t run_chains(uint64_t seed, void (*way)(void))
{
	open_config((struct tw_sim_config){
	    .seed = seed, .workers = 4, .max_late_ns = 2 * MS, .refuse_percent = 20});
	for (int i = 0; i < CHAINS; i++)
		expect_eq(tw_schedule(tw_sim_service(log_.sim), MS, chain, id(LINKS), NULL), 0);
	way();
	expect_eq(log_.ran, CHAINS * (LINKS + 1));
	expect_gt(stats_of(tw_sim_service(log_.sim)).refused, 0);
	uint64_t trace = tw_sim_trace(log_.sim);
	close_sim();
	return trace;
}

Test(sim, same_seed_has_the_same_trace_however_it_is_run_and_another_seed_another)
{
	void (*const ways[])(void) = {in_one_run, step_by_step, in_short_runs};
	uint64_t first = run_chains(11, in_one_run);
	for (int i = 0; i < 6; i++)
		expect_eq(run_chains(11, ways[i % 3]), first);
	expect_ne(run_chains(12, in_one_run), first);
}

static uint64_t told[TW_SIM_SKIPPED + 1];

static void tell(void *arg, const struct tw_sim_event *event)
{
	cr_assert_eq(arg, told);
	cr_assert_eq(event->size, sizeof *event);
	told[event->kind] += event->kind == TW_SIM_HANDED ? event->value : 1;
}

Test(sim, events_are_told_one_by_one)
{
	memset(told, 0, sizeof told);
	open_config((struct tw_sim_config){.seed = 1, .on_event = tell, .event_arg = told});
	schedule_ids(10, MS);
	tw_timer cancelled;
	expect_eq(tw_schedule(tw_sim_service(log_.sim), MS, log_run, NULL, &cancelled), 0);
	expect_eq(tw_sim_step(log_.sim), 1);
	expect_eq(told[TW_SIM_TURN], 1);
	expect_eq(told[TW_SIM_HANDED], 11);
	expect_eq(tw_cancel(tw_sim_service(log_.sim), cancelled), TW_CANCELLED);
	expect_eq(tw_sim_run(log_.sim, TW_FOREVER), 0);
	expect_eq(told[TW_SIM_TAKEN], 11);
	expect_eq(told[TW_SIM_RAN], 10);
	expect_eq(told[TW_SIM_SKIPPED], 1);
	close_sim();
}

/* ---------------------------------------------------------------- slow and late */

static void spend(void *arg)
{
	log_run(arg);
	tw_sim_spend(log_.sim, SECOND);
	if (!arg)
		return;
	tw_sim_spend(log_.sim, TW_FOREVER);
	tw_sim_spend(log_.sim, INT64_MAX);
}

/* One timer whose callback spends time, and then others, one in each tick. */
static void run_beside_a_slow_one(uint32_t workers, void *for_ever, int others)
{
	open_sim(5, workers);
	expect_eq(tw_schedule(tw_sim_service(log_.sim), MS, spend, for_ever, NULL), 0);
	for (int i = 1; i <= others; i++)
		schedule_id(i, (uint64_t)(1 + i) * MS);
	expect_ge(tw_sim_run(log_.sim, 1000 * SECOND), 0);
	expect_eq(log_.at_ns[0], MS);
}

Test(sim, slow_callback_keeps_its_worker_and_no_other)
{
	run_beside_a_slow_one(2, NULL, 20);
	for (int i = 1; i <= 20; i++)
		expect_eq(log_.at_ns[i], (uint64_t)(1 + i) * MS);
	close_sim();
	run_beside_a_slow_one(1, NULL, 1);
	expect_eq(log_.at_ns[1], SECOND + MS);
	close_sim();
}

Test(sim, callback_that_spends_all_time_keeps_its_worker_for_good)
{
	run_beside_a_slow_one(1, id(1), 1);
	expect_eq(log_.ran, 1);
	close_sim();
}

Test(sim, lateness_is_drawn_up_to_its_bound_and_never_early)
{
	bool late = false;
	for (uint64_t seed = 0; seed < 20; seed++) {
		open_config((struct tw_sim_config){.seed = seed, .max_late_ns = 3 * MS});
		schedule_ids(50, 10 * MS);
		expect_eq(tw_sim_run(log_.sim, TW_FOREVER), 0);
		for (int i = 0; i < 50; i++) {
			expect_ge(log_.at_ns[i], 10 * MS);
			late |= log_.at_ns[i] > 10 * MS;
		}
		close_sim();
	}
	cr_assert(late);
}

/* ---------------------------------------------------------------------- works */

static struct tw__work work;

static void run_work(struct tw__work *w)
{
	log_run(id(7));
	if (log_.ran < 3)
		tw__work_submit(w);
}

Test(sim, works_run_and_may_submit_themselves_again)
{
	open_config((struct tw_sim_config){.seed = 4, .refuse_percent = 50});
	tw_service *service = tw_sim_service(log_.sim);
	expect_eq(tw__service_hold(service), 0);
	tw__work_init(&work, service, service->executor, run_work);
	tw__work_submit(&work);
	expect_eq(tw_sim_run(log_.sim, TW_FOREVER), 0);
	expect_eq(log_.ran, 3);
	expect_eq(tw_sim_destroy(log_.sim), -EBUSY);
	expect_eq(tw_sim_close(log_.sim, TW_CLOSE_DROP), -EBUSY);
	tw__service_let_go(service);
	close_sim();
}

static void submit_again(void *strand)
{
	log_.ran++;
	if (log_.ran <= 50000)
		tw_strand_submit(strand, submit_again, strand);
}

Test(sim, what_never_ends_at_one_instant_is_given_up)
{
	tw_strand *strand;
	open_config((struct tw_sim_config){.max_steps = 100});
	expect_eq(tw_strand_create(&strand, tw_sim_service(log_.sim), NULL), 0);
	expect_eq(tw_strand_submit(strand, submit_again, strand), 0);
	expect_eq(tw_sim_run(log_.sim, MS), -ELOOP);
	expect_eq(tw_sim_run(log_.sim, TW_FOREVER), -ELOOP);
	expect_gt(log_.ran, 900);
	expect_lt(log_.ran, 50000);
	expect_eq(tw_service_now(tw_sim_service(log_.sim)), 0);
	expect_eq(tw_strand_destroy(strand), 0);
	close_sim();
}

/* ------------------------------------------------------- a clock that has come far */

/* Later than 2^62 ns after its own 0: a layer's instants are compared with the service's start. */
Test(sim, runs_layers_at_instants_beyond_the_longest_delay)
{
	uint64_t start_ns = UINT64_C(65) << 56;
	tw_strand *strand;
	open_config((struct tw_sim_config){.start_ns = start_ns});
	struct tw_strand_task at = {.size = sizeof at,
				    .fn = log_run,
				    .arg = id(1),
				    .delay_ns = start_ns + SECOND,
				    .flags = TW_TASK_AT};
	struct tw_period period = {
	    .size = sizeof period, .first_ns = 2 * SECOND, .period_ns = SECOND, .count = 2};
	struct tw_strand_task series = {
	    .size = sizeof series, .fn = log_run, .arg = id(2), .period = &period};
	expect_eq(tw_strand_create(&strand, tw_sim_service(log_.sim), NULL), 0);
	expect_eq(tw_strand_submit_task(strand, &at, NULL), 0);
	expect_eq(tw_strand_submit_task(strand, &series, NULL), 0);
	expect_ge(tw_sim_run(log_.sim, 5 * SECOND), 0);
	expect_eq(log_.ran, 3);
	expect_eq(log_.ids[0], 1);
	expect_eq(log_.at_ns[0] >= start_ns + SECOND, true);
	expect_eq(log_.at_ns[2] >= start_ns + 3 * SECOND, true);
	expect_eq(tw_strand_destroy(strand), 0);
	close_sim();
}
