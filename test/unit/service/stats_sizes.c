/*
 * Structs that a call fills, of programs that know more of a struct than the library, or less: what
 * the library does not know is zero, what lies behind the program's struct is left alone. The same
 * for each kind of struct.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/support/actions.h"
#include "test/support/rig.h"

enum { TAIL = 24, MOST = 16384, MARK = 0xa5 };

/* One object of each kind. */
static struct rig rig;
static tw_group group;
static tw_strand *strand;
static tw_limiter *limiter;
static tw_action_scheduler *asap;
static tw_pool *pool;

static void open_all(void)
{
	struct tw_limiter_config config = {.size = sizeof config, .max_concurrency = 2};
	struct tw_pool_config one = {.size = sizeof one, .workers = 1};
	rig_open(&rig, NULL);
	expect_eq(tw_group_create(&group, rig.service), 0);
	expect_eq(tw_strand_create(&strand, rig.service, NULL), 0);
	expect_eq(tw_limiter_create(&limiter, rig.service, &config), 0);
	expect_eq(tw_pool_create(&pool, &one), 0);
	asap = scheduler_of(
	    &(struct tw_action_scheduler_config){.size = sizeof(struct tw_action_scheduler_config),
						 .kind = TW_ACTION_KIND_ASAP,
						 .flags = TW_ACTION_FLAG_BY_CALLER});
}

static void close_all(void)
{
	expect_eq(tw_action_scheduler_destroy(asap), 0);
	expect_eq(tw_pool_destroy(pool), 0);
	expect_eq(tw_limiter_destroy(limiter), 0);
	expect_eq(tw_strand_destroy(strand), 0);
	rig_close(&rig);
}

TestSuite(service_stats_sizes, .init = open_all, .fini = close_all, .timeout = 60);

#define GET(name, call)            \
	static int name(void *out) \
	{                          \
		return call;       \
	}

GET(get_service, tw_service_stats(rig.service, out))
GET(get_histograms, tw_service_histograms(rig.service, out))
GET(get_liveness, tw_service_liveness(rig.service, out))
GET(get_group, tw_group_stats(rig.service, group, out))
GET(get_current, tw_current(out))
GET(get_strand, tw_strand_stats(strand, out))
GET(get_limiter, tw_limiter_stats(limiter, out))
GET(get_pool, tw_pool_stats(pool, out))
GET(get_actions, tw_action_scheduler_stats(asap, out))

/* A call, the library's size of its struct, and the smallest that it takes. */
#define ROW(get, type, least)                                                 \
	{                                                                     \
#type, get, sizeof(struct type), offsetof(struct type, least) \
	}

static const struct {
	const char *name;
	int (*get)(void *out);
	size_t known, least;
} structs[] = {
    ROW(get_service, tw_service_stats, fired),
    ROW(get_histograms, tw_service_histograms, wait),
    ROW(get_liveness, tw_service_liveness, since_turn_ns),
    ROW(get_group, tw_group_stats, running),
    ROW(get_current, tw_run_info, overruns),
    ROW(get_strand, tw_strand_stats, delayed),
    ROW(get_limiter, tw_limiter_stats, running),
    ROW(get_pool, tw_pool_stats, services),
    ROW(get_actions, tw_action_scheduler_stats, armed),
};

static bool all_are(const unsigned char *bytes, size_t n, unsigned char value)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i] != value)
			return false;
	return true;
}

static _Alignas(max_align_t) unsigned char full[MOST], bytes[MOST];

static int get_sized(int (*get)(void *out), unsigned char *out, size_t size)
{
	memset(out, MARK, MOST);
	memcpy(out, &size, sizeof size);
	return get(out);
}

Test(service_stats_sizes, are_kept_by_each_call_that_fills_a_struct)
{
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, MS);
	rig_advance(&rig, 3 * MS); /* so that not all is zero */
	for (size_t i = 0; i < sizeof structs / sizeof *structs; i++) {
		size_t known = structs[i].known, least = structs[i].least;
		expect_eq(get_sized(structs[i].get, full, known), 0);
		for (size_t size = known + TAIL; size >= least; size--) {
			size_t filled = size < known ? size : known;
			expect_eq(get_sized(structs[i].get, bytes, size), 0);
			cr_assert(memcmp(bytes + sizeof size, full + sizeof size,
					 filled - sizeof size) == 0 &&
				      all_are(bytes + filled, size - filled, 0) &&
				      all_are(bytes + size, MOST - size, MARK),
				  "%s of size %zu", structs[i].name, size);
		}
		expect_eq(get_sized(structs[i].get, bytes, least - 1), -EINVAL);
		cr_assert(all_are(bytes + sizeof(size_t), MOST - sizeof(size_t), MARK));
		expect_eq(structs[i].get(NULL), -EINVAL);
	}
}

/* What lies behind an older program's struct is not looked at, not even to be thrown away. */
Test(service_stats_sizes, of_an_older_task_may_end_where_memory_does)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = offsetof(struct tw_task, flags);
	struct probe probe = PROBE(&rig, 1);
	struct tw_task whole = {.size = size, .fn = probe_run, .arg = &probe, .when_ns = 3 * MS};
	char *pages =
	    mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert(pages != MAP_FAILED);
	expect_eq(mprotect(pages + page, page, PROT_NONE), 0);
	void *older = memcpy(pages + page - size, &whole, size);
	expect_eq(tw_schedule_task(rig.service, older, &probe.timer), 0);
	rig_advance(&rig, 3 * MS);
	expect_ran_at(&probe, RIG_START_NS + 3 * MS);
	expect_eq(munmap(pages, 2 * page), 0);
}
