/* The time left is the planned one, scaled by how the plan and the truth have compared so far. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "bench/measure.h"
#include "bench/progress.h"

static struct {
	bool terminal;
	uint64_t start_ns;
	double all_s, done_s; /* as planned */
} progress;

/* A line can be written over there. */
static bool is_terminal(void)
{
	const char *kind = getenv("TERM");
	return isatty(STDERR_FILENO) && kind && strcmp(kind, "dumb") != 0;
}

/* A line that is broken in two cannot be written over. */
static int terminal_width(void)
{
	struct winsize size;
	return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1
									       : 79;
}

void progress_begin(const struct plan *plan, double before_s)
{
	progress.terminal = is_terminal();
	progress.start_ns = now_ns();
	progress.all_s = before_s;
	progress.done_s = 0;
	for (size_t i = 0; i < plan->count; i++)
		progress.all_s += plan_group_s(&plan->groups[i]);
}

static double left_s(void)
{
	double elapsed_s = (double)(now_ns() - progress.start_ns) / 1e9;
	double pace = progress.done_s > 5 ? elapsed_s / progress.done_s : 1;
	double left = (progress.all_s - progress.done_s) * pace;
	return left > 0 ? left : 0;
}

void progress_group(const struct group *group)
{
	double left = left_s();
	if (!progress.terminal)
		fprintf(stderr,
			"%s n=%u threads=%u: %u candidates, %u runs each; about %d:%02d left\n",
			group->workload->name, group->n, group->threads, group->candidate_count,
			group->reps, (int)left / 60, (int)left % 60);
}

void progress_run(const struct group *group, const struct candidate *candidate, unsigned rep)
{
	char line[160];
	double left = left_s();
	if (!progress.terminal)
		return;
	snprintf(
	    line, sizeof line, "%3.0f %%, about %d:%02d left: %s n=%u threads=%u %s, run %u of %u",
	    100 * progress.done_s / progress.all_s, (int)left / 60, (int)left % 60,
	    group->workload->name, group->n, group->threads, candidate->name, rep + 1, group->reps);
	fprintf(stderr, "\r\033[K%.*s", terminal_width(), line);
}

void progress_ran(const struct group *group)
{
	progress.done_s += group->run_s;
}

void progress_clear(void)
{
	if (progress.terminal)
		fputs("\r\033[K", stderr);
}
