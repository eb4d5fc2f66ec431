/*
 * The rivals that are programs, and the list of all rivals with what they need. The sources of the
 * programs say which use of the library was chosen, and why: java/Stpe.java, java/Netty.java,
 * go/main.go.
 */
#include <string.h>

#include "bench/rivals/rival.h"

#define ON_PROGRAM (ON_CHURN | ON_REQUEST | ON_TOUCH | ON_FIRE | ON_APART)

#ifdef BENCH_HAS_JAVA
/*
 * The heap holds all timers several times over, so that the collector works as rarely as it does in
 * a server of that size. Its pages are touched before the run, as the memory of all candidates is.
 */
static void run_java(const struct workload *workload, const struct order *order,
		     struct outcome *outcome)
{
	static struct rival_command command;
	const unsigned base_mb = 512, bytes_per_timer = 500;
	unsigned heap_mb = base_mb + (unsigned)((uint64_t)order->n * bytes_per_timer >> 20);
	rival_argument(&command, "java");
	rival_argument(&command, "-Xms%um", heap_mb);
	rival_argument(&command, "-Xmx%um", heap_mb);
	rival_argument(&command, "-XX:+UseParallelGC");
	rival_argument(&command, "-XX:+AlwaysPreTouch");
	rival_argument(&command, "-XX:-UsePerfData");
	rival_argument(&command, "-cp");
	rival_argument(&command, "%s/java:%s", rival_folder(), BENCH_NETTY_JARS);
	rival_argument(&command, "Main");
	rival_argument(&command, "%s", order->candidate->name);
	command.arguments[command.count] = NULL;
	rival_run(&command, workload, order, outcome);
}

const struct candidate candidate_java_stpe = {
    .name = "java-stpe",
    .what = "Java's ScheduledThreadPoolExecutor, one thread, cancelled tasks removed at once",
    .peer = true,
    .rival = true,
    .workloads = ON_PROGRAM,
    .run = run_java,
};
#endif

#ifdef BENCH_HAS_NETTY
const struct candidate candidate_netty = {
    .name = "netty",
    .what = "Netty's HashedWheelTimer, tick 1 ms, 65536 buckets",
    .peer = true,
    .rival = true,
    .workloads = ON_PROGRAM,
    .run = run_java,
};
#endif

#ifdef BENCH_HAS_GO
static void run_go(const struct workload *workload, const struct order *order,
		   struct outcome *outcome)
{
	static struct rival_command command;
	rival_argument(&command, "%s/go", rival_folder());
	command.arguments[command.count] = NULL;
	rival_run(&command, workload, order, outcome);
}

const struct candidate candidate_go = {
    .name = "go",
    .what = "Go's time.AfterFunc, one timer for each slot, moved by Stop and Reset",
    .peer = true,
    .rival = true,
    .workloads = ON_PROGRAM,
    .run = run_go,
};
#endif

static const struct need {
	const char *candidate, *needs;
} needs[] = {
    {"java-stpe", "a JDK 17, Debian's openjdk-17-jdk-headless"},
    {"netty", "a JDK 17 and netty-common.jar, Debian's libnetty-java"},
    {"go", "Go, Debian's golang-go"},
    {"asio", "asio.hpp, Debian's libasio-dev"},
    {"asio-mt", "asio.hpp, Debian's libasio-dev"},
    {"glib", "glib-2.0, Debian's libglib2.0-dev"},
    {"glib-mt", "glib-2.0, Debian's libglib2.0-dev"},
    {"dpdk", "rte_timer, Debian's libdpdk-dev"},
    {"h2o", "h2o/timerwheel.h, which Debian's libh2o-evloop-dev 2.2 does not have yet"},
};

enum { NEEDS = sizeof needs / sizeof *needs };

const char *rival_lacks(const char *name)
{
	for (unsigned i = 0; i < NEEDS; i++)
		if (strcmp(needs[i].candidate, name) == 0 && !candidate_find(name))
			return needs[i].needs;
	return NULL;
}

unsigned rivals_skipped(void)
{
	unsigned count = 0;
	for (unsigned i = 0; i < NEEDS; i++)
		count += rival_lacks(needs[i].candidate) != NULL;
	return count;
}

void rivals_print_skipped(FILE *out)
{
	if (rivals_skipped() == 0)
		return;
	fprintf(out, "skipped      %u of %d rivals:\n", rivals_skipped(), NEEDS);
	for (unsigned i = 0; i < NEEDS; i++)
		if (rival_lacks(needs[i].candidate))
			fprintf(out, "             %s (not found: %s)\n", needs[i].candidate,
				needs[i].needs);
}
