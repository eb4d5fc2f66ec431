/*
 * The page for Prometheus: figures, buckets and names. test/examples/metrics.sh reads a whole page
 * strictly.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/support/rig_suite.h"

TestSuite(service_prometheus, .init = open_rig, .fini = close_rig, .timeout = 30);

static char *page_of(tw_service *service)
{
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	cr_assert(out != NULL);
	expect_eq(tw_service_stats_prometheus(service, out), 0);
	expect_eq(fclose(out), 0);
	return text;
}

static void expect_line(const char *page, const char *line)
{
	const char *at = strstr(page, line);
	bool whole = at && (at == page || at[-1] == '\n') && at[strlen(line)] == '\n';
	cr_assert(whole, "no line %s\nin: %s", line, page);
}

Test(service_prometheus, the_page_has_the_ledger_and_the_groups)
{
	tw_group group;
	tw_timer timer;
	struct probe probe = PROBE(&rig, 1);
	expect_eq(tw_group_create(&group, rig.service), 0);
	struct tw_task task = {
	    .size = sizeof task, .fn = probe_run, .arg = &probe, .when_ns = SECOND, .group = group};
	for (int i = 0; i < 3; i++)
		expect_eq(tw_schedule_task(rig.service, &task, &timer), 0);
	for (int i = 0; i < 4; i++)
		probe_schedule(&probe, MS);
	rig_advance(&rig, 2 * MS);
	expect_eq(tw_cancel(rig.service, timer), TW_CANCELLED);
	char *page = page_of(rig.service);
	expect_line(page, "tickwheel_timers_scheduled_total 7");
	expect_line(page, "tickwheel_timers_ended_total{fate=\"fired\"} 4");
	expect_line(page, "tickwheel_timers_ended_total{fate=\"cancelled\"} 1");
	expect_line(page, "tickwheel_timers_pending 2");
	expect_line(page, "tickwheel_groups 1");
	expect_line(page, "tickwheel_group_members 2");
	expect_line(page, "# TYPE tickwheel_groups gauge");
	cr_assert(strstr(page, "pool") == NULL); /* it runs inline */
	free(page);
	expect_eq(tw_group_cancel(rig.service, group), 0);
	expect_eq(tw_group_destroy(rig.service, group), 0);
	page = page_of(rig.service);
	expect_line(page, "tickwheel_groups 0");
	expect_line(page, "tickwheel_group_members 0");
	expect_line(page, "tickwheel_timers_ended_total{fate=\"cancelled\"} 3");
	free(page);
}

Test(service_prometheus, buckets_are_cumulative_and_a_bound_belongs_to_its_bucket)
{
	struct probe probe = PROBE(&rig, 1);
	be_late(&probe, 1 << 20);
	be_late(&probe, (1 << 20) + 1);
	be_late(&probe, 100 * SECOND);
	char *page = page_of(rig.service);
	expect_line(page, "tickwheel_lateness_seconds_bucket{le=\"0.000001024\"} 0");
	expect_line(page, "tickwheel_lateness_seconds_bucket{le=\"0.000524288\"} 0");
	expect_line(page, "tickwheel_lateness_seconds_bucket{le=\"0.001048576\"} 1");
	expect_line(page, "tickwheel_lateness_seconds_bucket{le=\"0.002097152\"} 2");
	expect_line(page, "tickwheel_lateness_seconds_bucket{le=\"68.719476736\"} 2");
	expect_line(page, "tickwheel_lateness_seconds_bucket{le=\"+Inf\"} 3");
	expect_line(page, "tickwheel_lateness_seconds_sum 100.002097153");
	expect_line(page, "tickwheel_lateness_seconds_count 3");
	expect_line(page, "tickwheel_max_lateness_seconds 100.000000000");
	free(page);
}

/* The page of the service, written inside a callback of it. */
static char *page_from_inside;

static void write_page(void *arg)
{
	page_from_inside = page_of(arg);
}

static void expect_label(const char *name, const char *line)
{
	struct tw_task task = {
	    .size = sizeof task, .fn = write_page, .arg = rig.service, .when_ns = MS, .name = name};
	expect_eq(tw_schedule_task(rig.service, &task, NULL), 0);
	rig_advance(&rig, 2 * MS);
	expect_line(page_from_inside, line);
	expect_line(page_from_inside, "tickwheel_running 1");
	free(page_from_inside);
}

Test(service_prometheus, names_of_what_runs_are_escaped_labels)
{
	expect_label("lookup", "tickwheel_running_by_name{name=\"lookup\"} 1");
	expect_label(NULL, "tickwheel_running_by_name{name=\"\"} 1");
	expect_label("a \"b\" \\ c\nd",
		     "tickwheel_running_by_name{name=\"a \\\"b\\\" \\\\ c\\nd\"} 1");
	expect_label("caf\xc3\xa9 \xff\x01",
		     "tickwheel_running_by_name{name=\"caf\xc3\xa9 \\\\xff\\\\x01\"} 1");
}

Test(service_prometheus, a_service_with_a_pool_shows_its_workers)
{
	tw_service *service;
	struct tw_service_config config = {.size = sizeof config, .workers = 2, .max_workers = 5};
	expect_eq(tw_service_create(&service, &config), 0);
	char *page = page_of(service);
	expect_line(page, "tickwheel_pool_workers 2");
	expect_line(page, "tickwheel_pool_max_workers 5");
	expect_line(page, "tickwheel_pool_at_max 0");
	free(page);
	expect_eq(tw_service_destroy(service), 0);
}

Test(service_prometheus, a_name_of_the_service_is_a_label_of_each_sample)
{
	struct tw_service_config config = rig_config();
	config.name = "say \"hi\"\xff";
	reopen_rig(&config);
	char *page = page_of(rig.service);
	expect_line(page, "tickwheel_timers_pending{service=\"say \\\"hi\\\"\\\\xff\"} 0");
	expect_line(
	    page,
	    "tickwheel_timers_ended_total{service=\"say \\\"hi\\\"\\\\xff\",fate=\"dropped\"} 0");
	expect_line(
	    page, "tickwheel_run_seconds_bucket{service=\"say \\\"hi\\\"\\\\xff\",le=\"+Inf\"} 0");
	expect_line(page, "# TYPE tickwheel_timers_pending gauge");
	const char *build = strstr(page, "\ntickwheel_build_info{");
	cr_assert(build != NULL && strncmp(strchr(build, '{'), "{service=\"say ", 14) == 0);
	free(page);
}

Test(service_prometheus, bad_arguments_and_streams_are_told)
{
	expect_eq(tw_service_stats_prometheus(NULL, stderr), -EINVAL);
	expect_eq(tw_service_stats_prometheus(rig.service, NULL), -EINVAL);
	FILE *full = fopen("/dev/full", "w");
	cr_assert(full != NULL);
	setvbuf(full, NULL, _IONBF, 0);
	expect_eq(tw_service_stats_prometheus(rig.service, full), -EIO);
	fclose(full);
}
