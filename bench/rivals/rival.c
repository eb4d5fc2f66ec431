/* Starts a rival's program, gives it the order and reads its report. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/baseline.h"
#include "bench/measure.h"
#include "bench/rivals/rival.h"

struct rival_process {
	pid_t pid;
	clockid_t cpu_clock;
	FILE *to, *from;
};

/* What the program has reported so far besides single figures. */
struct rival_report {
	struct rival_process process;
	struct outcome *outcome;
	struct baseline baseline;
	bool has_baseline, complete;
	struct records records;
};

void rival_argument(struct rival_command *command, const char *format, ...)
{
	char *at = command->text + command->used;
	size_t room = sizeof command->text - command->used;
	va_list arguments;
	va_start(arguments, format);
	int length = vsnprintf(at, room, format, arguments);
	va_end(arguments);
	if (length < 0 || (size_t)length >= room || command->count + 1 == RIVAL_ARGUMENTS)
		abort();
	command->arguments[command->count++] = at;
	command->used += (size_t)length + 1;
}

const char *rival_folder(void)
{
	static char path[1024];
	ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof "rivals");
	if (length < 0)
		length = 0;
	path[length] = 0;
	char *slash = strrchr(path, '/');
	strcpy(slash ? slash + 1 : path, "rivals");
	return path;
}

static _Noreturn void rival_exec(char **arguments, int in, int out, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
		_exit(126);
	execvp(arguments[0], arguments);
	_exit(127);
}

static void rival_start(struct rival_report *report, char **arguments)
{
	int down[2], up[2];
	pid_t parent = getpid(), pid = pipe(down) == 0 && pipe(up) == 0 ? fork() : -1;
	if (pid < 0)
		outcome_fail(report->outcome, "no process for %s: %s", arguments[0],
			     strerror(errno));
	if (pid == 0)
		rival_exec(arguments, down[0], up[1], parent);
	close(down[0]);
	close(up[1]);
	report->process = (struct rival_process){
	    .pid = pid, .to = fdopen(down[1], "w"), .from = fdopen(up[0], "r")};
	if (!report->process.to || !report->process.from ||
	    clock_getcpuclockid(pid, &report->process.cpu_clock))
		outcome_fail(report->outcome, "no connection to %s", arguments[0]);
	signal(SIGPIPE, SIG_IGN); /* a program that has ended is found when its report is read */
}

static void rival_answer_cpu(struct rival_report *report)
{
	fprintf(report->process.to, "%" PRIu64 "\n", read_clock_ns(report->process.cpu_clock));
	fflush(report->process.to);
}

static void rival_open_window(struct rival_report *report, uint64_t in_ns, uint64_t span_ns)
{
	uint64_t first = now_ns() + in_ns;
	report->has_baseline = true;
	baseline_start(&report->baseline, first, first + span_ns, report->outcome);
}

/* False: the line has no meaning. */
static bool rival_take_line(struct rival_report *report, const char *line)
{
	struct records *records = &report->records;
	char name[FIGURE_NAME_SIZE];
	uint64_t first, second;
	double value;
	if (strcmp(line, "cpu") == 0)
		rival_answer_cpu(report);
	else if (strcmp(line, "end") == 0)
		report->complete = true;
	else if (sscanf(line, "figure %31s %lf", name, &value) == 2)
		outcome_set(report->outcome, name, value);
	else if (sscanf(line, "ops %" SCNu64, &first) == 1)
		report->outcome->ops = first;
	else if (sscanf(line, "window %" SCNu64 " %" SCNu64, &first, &second) == 2)
		rival_open_window(report, first, second);
	else if (sscanf(line, "lateness %" SCNu64 " %" SCNu64, &first, &second) == 2 &&
		 first < LATENESS_BUCKETS)
		records->lateness.buckets[first] = second, records->lateness.count += second;
	else if (sscanf(line, "latest %" SCNu64, &first) == 1)
		records->lateness.max_ns = first;
	else if (sscanf(line, "early %" SCNu64, &first) == 1)
		records->early = first;
	else if (strncmp(line, "violation ", strlen("violation ")) == 0)
		outcome_violation(report->outcome, "%s", line + strlen("violation "));
	else
		return false;
	return true;
}

static void rival_read(struct rival_report *report)
{
	char line[512];
	while (!report->complete && fgets(line, sizeof line, report->process.from)) {
		line[strcspn(line, "\n")] = 0;
		if (!rival_take_line(report, line))
			outcome_fail(report->outcome, "its program wrote: %.100s", line);
	}
}

static void rival_finish(struct rival_report *report)
{
	int status = 0;
	fclose(report->process.to);
	fclose(report->process.from);
	while (waitpid(report->process.pid, &status, 0) < 0 && errno == EINTR)
		;
	if (report->complete)
		return;
	if (WIFSIGNALED(status))
		outcome_fail(report->outcome, "its program crashed: %s",
			     strsignal(WTERMSIG(status)));
	outcome_fail(report->outcome, "its program ended without a result, exit status %d",
		     WEXITSTATUS(status));
}

void rival_run(struct rival_command *command, const struct workload *workload,
	       const struct order *order, struct outcome *outcome)
{
	static struct rival_report report;
	report.outcome = outcome;
	rival_start(&report, command->arguments);
	fprintf(report.process.to, "%s %u %u %" PRIu64 " %d\n", workload->name, order->n,
		order->threads, order->ops, order->quick);
	fflush(report.process.to);
	rival_read(&report);
	rival_finish(&report);
	check_records(&report.records, outcome);
	if (!report.has_baseline)
		return;
	baseline_join(&report.baseline);
	set_lateness(outcome, &report.records.lateness, &report.baseline.lateness);
	set_baseline_ticks(outcome, &report.baseline);
}
