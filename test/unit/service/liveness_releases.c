/*
 * Releases that take long, among runs of one batch: the callback before such a release, and the one
 * after it, look no older than they are.
 */
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "test/support/liveness.h"
#include "test/support/rig.h"

TestSuite(service_liveness_releases, .timeout = 30);

static void sem_await(sem_t *sem)
{
	while (sem_wait(sem) != 0) {
	}
}

/* ------------------------------------------------------------ the run after a release */

static struct tw_service_liveness seen_inside;

static void take_long(struct probe *probe)
{
	tw_clock_manual_set(probe->rig->clock, rig_now(probe->rig) + 3 * SECOND);
}

static void look(struct probe *probe)
{
	seen_inside.size = sizeof seen_inside;
	probe->answer = tw_service_liveness(probe->rig->service, &seen_inside);
}

/* Behind what `first` schedules for the same tick runs a callback that looks. */
static void expect_young_behind(void (*first)(struct rig *rig, struct probe *probe))
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe slow = PROBE(&rig, 1), looks = PROBE(&rig, 2);
	slow.act_in_release = take_long;
	looks.act = look;
	first(&rig, &slow);
	probe_schedule(&looks, MS);
	rig_advance(&rig, MS);
	expect_eq(slow.releases, 1);
	expect_eq(looks.runs, 1);
	expect_ge(looks.ran_at_ns, RIG_START_NS + 3 * SECOND);
	expect_eq(seen_inside.running, 1);
	expect_eq(seen_inside.longest_since_ns, looks.ran_at_ns);
	expect_eq(seen_inside.longest_ns, 0);
	rig_close(&rig);
}

static void one_shot(struct rig *rig, struct probe *probe)
{
	(void)rig;
	probe_schedule_released(probe, MS);
}

Test(service_liveness_releases, of_a_one_shot_does_not_age_the_next_run)
{
	expect_young_behind(one_shot);
}

static tw_group group;

static void cancel_group(struct probe *probe)
{
	tw_group_cancel(probe->rig->service, group);
}

static void cancelled_member(struct rig *rig, struct probe *probe)
{
	static struct probe before;
	before = PROBE(rig, 0);
	before.act = cancel_group;
	probe_schedule(&before, MS);
	expect_eq(tw_group_create(&group, rig->service), 0);
	struct tw_task task = probe_task(probe);
	task.when_ns = MS;
	task.group = group;
	probe_schedule_task(probe, &task);
}

Test(service_liveness_releases, of_a_cancelled_member_does_not_age_the_next_run)
{
	expect_young_behind(cancelled_member);
}

/* ------------------------------------------------------------ the run before a release */

/* Where a worker stops: it tells that it is there, and goes on when it is let. */
struct stop {
	sem_t there, go_on;
};

static void stop_init(struct stop *stop)
{
	sem_init(&stop->there, 0, 0);
	sem_init(&stop->go_on, 0, 0);
}

static void stop_at(void *arg)
{
	struct stop *stop = arg;
	sem_post(&stop->there);
	sem_await(&stop->go_on);
}

struct scene {
	struct rig rig;
	tw_pool *pool;
	struct stop before, in_release, in_series;
	atomic_int beats;
};

/* Stops in its second run. */
static void beat(void *arg)
{
	struct scene *scene = arg;
	if (atomic_fetch_add(&scene->beats, 1) == 1)
		stop_at(&scene->in_series);
}

static void release_stops(void *arg, enum tw_fate fate)
{
	(void)fate;
	stop_at(&((struct scene *)arg)->in_release);
}

static void nothing(void *arg)
{
	(void)arg;
}

/* Two workers, both of which stop before anything else. */
static void scene_open(struct scene *scene)
{
	struct tw_pool_config config = {.size = sizeof config, .workers = 2, .max_workers = 2};
	stop_init(&scene->before);
	stop_init(&scene->in_release);
	stop_init(&scene->in_series);
	scene->beats = 0;
	expect_eq(tw_pool_create(&scene->pool, &config), 0);
	struct tw_service_config cfg = rig_config();
	cfg.executor = tw_pool_executor(scene->pool);
	rig_open(&scene->rig, &cfg);
	for (int i = 0; i < 2; i++)
		expect_eq(tw_pool_submit(scene->pool, stop_at, &scene->before), 0);
	sem_await(&scene->before.there);
	sem_await(&scene->before.there);
}

/*
 * One worker runs the series, then stops in the release of another timer. The other worker runs the
 * series again: the first one is not shown in that run.
 */
Test(service_liveness_releases, after_a_run_of_a_series_do_not_show_its_next_run)
{
	static struct scene scene;
	scene_open(&scene);
	struct tw_period period = {.size = sizeof period, .first_ns = MS, .period_ns = HOUR};
	expect_eq(tw_schedule_every(scene.rig.service, &period, beat, &scene, NULL), 0);
	struct tw_task other = {.size = sizeof other,
				.fn = nothing,
				.arg = &scene,
				.when_ns = MS,
				.release = release_stops};
	expect_eq(tw_schedule_task(scene.rig.service, &other, NULL), 0);
	rig_advance(&scene.rig, 20 * MS);
	sem_post(&scene.before.go_on);
	sem_await(&scene.in_release.there);
	expect_eq(liveness_of(scene.rig.service).running, 2); /* dates the release */
	rig_advance(&scene.rig, HOUR - 10 * MS);
	sem_post(&scene.before.go_on);
	sem_await(&scene.in_series.there);
	struct tw_service_liveness seen = liveness_of(scene.rig.service);
	expect_eq(seen.running, 2);
	cr_assert(seen.longest_fn == (tw_fn *)(void (*)(void))release_stops);
	sem_post(&scene.in_release.go_on);
	sem_post(&scene.in_series.go_on);
	while (liveness_of(scene.rig.service).running)
		sched_yield();
	rig_close(&scene.rig);
	expect_eq(tw_pool_destroy(scene.pool), 0);
}
