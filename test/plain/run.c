/*
 * Runs the unit tests that were compiled with test/plain/criterion/criterion.h, each in a process
 *     of its own: plain [--jobs N] [--patience N] [--filter PATTERN] [--without FILE] [--list]
 *     [--verbose]
 *
 * PATTERN is a glob over suite/test. FILE names tests to leave out, one glob a line, with the
 * reason behind it after blanks; a line that fits no test is an error. Timeouts are multiplied by
 * the patience: emulators and checkers take their time. Of a test that takes too long, the stacks
 * of its threads are printed before it is killed.
 */
#include <errno.h>
#include <fnmatch.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <criterion/criterion.h>

enum { JOBS_MOST = 64, LEFT_OUT_MOST = 256, TIMEOUT_S = 60 };

#ifdef COVERAGE /* children of a fork end by _exit, which keeps what they ran to itself */
void __gcov_dump(void);
_Noreturn void __real__exit(int status);
_Noreturn void __wrap__exit(int status);
void __wrap__exit(int status)
{
	__gcov_dump();
	__real__exit(status);
}
#endif

static struct plain_test *all;

static struct {
	unsigned jobs, patience;
	const char *filter;
	bool list, verbose;
	char *left_out[LEFT_OUT_MOST];
	unsigned left_out_fits[LEFT_OUT_MOST];
	unsigned left_out_count;
} wanted = {.jobs = 1, .patience = 1, .filter = "*"};

static struct job {
	pid_t process; /* 0: free */
	const struct plain_test *test;
	double begun, timeout;
	bool killed;
} jobs[JOBS_MOST];

static unsigned passed, failed, skipped;

void plain_register(struct plain_test *test)
{
	test->next = all;
	all = test;
}

static char note[256];

void plain_noted(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(note, sizeof note, format, args);
	va_end(args);
}

void plain_failed(const char *file, int line, const char *condition, const char *format, ...)
{
	char text[1024];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	fflush(stdout);
	fprintf(stderr, "%s:%d: %s%s%s\n", file, line, condition, *text ? ": " : "", text);
	if (*note)
		fprintf(stderr, "%s\n", note);
	fflush(stderr);
	_exit(1);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void full_name(const struct plain_test *test, char *out, size_t size)
{
	snprintf(out, size, "%s/%s", test->suite, test->name);
}

static struct plain_options options_of(const struct plain_test *test)
{
	struct plain_options o = test->options;
	for (const struct plain_test *suite = all; suite; suite = suite->next) {
		if (suite->name || strcmp(suite->suite, test->suite) != 0)
			continue;
		o.init = o.init ? o.init : suite->options.init;
		o.fini = o.fini ? o.fini : suite->options.fini;
		o.timeout = o.timeout > 0 ? o.timeout : suite->options.timeout;
	}
	return o;
}

static bool is_wanted(const struct plain_test *test)
{
	char name[256];
	full_name(test, name, sizeof name);
	bool out = test->options.disabled;
	for (unsigned i = 0; i < wanted.left_out_count; i++)
		if (fnmatch(wanted.left_out[i], name, 0) == 0) {
			wanted.left_out_fits[i]++;
			out = true;
		}
	skipped += out;
	return !out && fnmatch(wanted.filter, name, 0) == 0;
}

static void begin(struct job *job, const struct plain_test *test)
{
	struct plain_options o = options_of(test);
	fflush(NULL);
	*job = (struct job){.test = test, .begun = now(), .process = fork()};
	job->timeout = (o.timeout > 0 ? o.timeout : TIMEOUT_S) * wanted.patience;
	if (job->process < 0) {
		perror("fork");
		exit(2);
	}
	if (job->process)
		return;
	if (o.init)
		o.init();
	test->body();
	if (o.fini)
		o.fini();
	exit(0);
}

static bool ended_well(const struct plain_test *test, int status)
{
	struct plain_options o = options_of(test);
	if (o.signal)
		return WIFSIGNALED(status) && WTERMSIG(status) == o.signal;
	return WIFEXITED(status) && WEXITSTATUS(status) == o.exit_code;
}

static void tell_failure(const struct job *job, const char *name, int status)
{
	if (job->killed)
		fprintf(stderr, "FAILED %s: it took more than %.0f s\n", name, job->timeout);
	else if (WIFSIGNALED(status))
		fprintf(stderr, "FAILED %s: killed by signal %d\n", name, WTERMSIG(status));
	else
		fprintf(stderr, "FAILED %s: exit %d\n", name, WEXITSTATUS(status));
}

static void ended(struct job *job, int status)
{
	char name[256];
	full_name(job->test, name, sizeof name);
	bool well = !job->killed && ended_well(job->test, status);
	passed += well;
	failed += !well;
	if (!well)
		tell_failure(job, name, status);
	else if (wanted.verbose)
		printf("ok %s %.2f s\n", name, now() - job->begun);
	job->process = 0;
}

/* With gdb where there is one, else what the system shows of each thread. */
static void print_stacks(pid_t process)
{
	char command[256];
	snprintf(command, sizeof command, "sh test/plain/stacks.sh %d >&2", (int)process);
	fflush(NULL);
	if (system(command) != 0)
		fprintf(stderr, "plain: no stacks of process %d\n", (int)process);
}

static void kill_late_ones(void)
{
	for (unsigned i = 0; i < wanted.jobs; i++)
		if (jobs[i].process && !jobs[i].killed && now() - jobs[i].begun > jobs[i].timeout) {
			jobs[i].killed = true;
			print_stacks(jobs[i].process);
			kill(jobs[i].process, SIGKILL);
		}
}

/* Waits for a test to end. False: none is under way. */
static bool reap(void)
{
	const struct timespec while_ = {.tv_nsec = 2000000};
	for (;;) {
		int status;
		pid_t process = waitpid(-1, &status, WNOHANG);
		if (process < 0 && errno == ECHILD)
			return false;
		for (unsigned i = 0; process > 0 && i < wanted.jobs; i++)
			if (jobs[i].process == process) {
				ended(&jobs[i], status);
				return true;
			}
		kill_late_ones();
		if (process <= 0)
			nanosleep(&while_, NULL);
	}
}

static struct job *free_job(void)
{
	for (;;) {
		for (unsigned i = 0; i < wanted.jobs; i++)
			if (!jobs[i].process)
				return &jobs[i];
		reap();
	}
}

static void read_left_out(const char *path)
{
	char line[512];
	FILE *file = fopen(path, "r");
	if (!file) {
		perror(path);
		exit(2);
	}
	while (fgets(line, sizeof line, file)) {
		line[strcspn(line, " \t\n")] = '\0';
		if (*line && *line != '#' && wanted.left_out_count < LEFT_OUT_MOST)
			wanted.left_out[wanted.left_out_count++] = strdup(line);
	}
	fclose(file);
}

static unsigned number(const char *text)
{
	return text ? (unsigned)strtoul(text, NULL, 10) : 0;
}

static bool read_arguments(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
		i += name[2] != 'l' && name[2] != 'v';
		if (!strcmp(name, "--jobs"))
			wanted.jobs = number(value);
		else if (!strcmp(name, "--patience"))
			wanted.patience = number(value);
		else if (!strcmp(name, "--filter") && value)
			wanted.filter = value;
		else if (!strcmp(name, "--without") && value)
			read_left_out(value);
		else if (!strcmp(name, "--list"))
			wanted.list = true;
		else if (!strcmp(name, "--verbose"))
			wanted.verbose = true;
		else
			return false;
	}
	return wanted.jobs >= 1 && wanted.jobs <= JOBS_MOST && wanted.patience >= 1;
}

static bool all_left_out_fit(void)
{
	bool fit = true;
	for (unsigned i = 0; i < wanted.left_out_count; i++)
		if (!wanted.left_out_fits[i]) {
			fprintf(stderr, "plain: nothing to leave out is called %s\n",
				wanted.left_out[i]);
			fit = false;
		}
	return fit;
}

#ifdef __SANITIZE_ADDRESS__

static int use_large_pages_of(struct dl_phdr_info *module, size_t size, void *unused)
{
	(void)size, (void)unused;
	for (int i = 0; i < module->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &module->dlpi_phdr[i];
		uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE),
			  begin = module->dlpi_addr + part->p_vaddr;
		if (part->p_type == PT_LOAD && part->p_flags & PF_W)
			madvise((void *)(begin & -page), part->p_memsz + begin % page,
				MADV_HUGEPAGE);
	}
	return 0;
}

#endif

/*
 * LeakSanitizer reads all static variables at the end of each test. Each test's process has to get
 * their pages for that, which takes half the time of a short one. So they are few and large.
 */
static void use_large_pages(void)
{
#ifdef __SANITIZE_ADDRESS__
	dl_iterate_phdr(use_large_pages_of, NULL);
#endif
}

int main(int argc, char **argv)
{
	use_large_pages();
	if (!read_arguments(argc, argv)) {
		fprintf(stderr, "usage: plain [--jobs N] [--patience N] [--filter PATTERN] "
				"[--without FILE] [--list]"
				" [--verbose]\n");
		return 2;
	}
	for (const struct plain_test *test = all; test; test = test->next) {
		if (!test->name || !is_wanted(test))
			continue;
		if (wanted.list)
			printf("%s/%s\n", test->suite, test->name);
		else
			begin(free_job(), test);
	}
	while (reap())
		;
	if (!wanted.list)
		printf("plain: %u passed, %u failed, %u left out\n", passed, failed, skipped);
	return failed || !all_left_out_fit() || (!wanted.list && passed == 0);
}
