/* Regions and their ranges: mapped in steps, or as a whole where there is no place for them. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "mpsc/base/reserve.h"
#include "test/support/expect.h"

TestSuite(base_reserve, .timeout = 30);

enum { MIB = 1 << 20, STEP = 16 << 10 };

#define GIB ((size_t)1 << 30)
#define PLACE (8 * GIB)
#define TOO_LARGE (16 * GIB)

static struct tw__region region;
static struct tw__range range;

static void open_another(struct tw__region *another, size_t bytes)
{
	static struct tw__range unused;
	unused = (struct tw__range){.bytes = bytes};
	expect_eq(tw__region_open(another, &unused, 1), 0);
}

static void open_one(size_t bytes)
{
	range = (struct tw__range){.bytes = bytes, .prefers_huge_pages = true};
	expect_eq(tw__region_open(&region, &range, 1), 0);
	expect_eq(region.bytes, bytes);
}

/* Returns where the range was. */
static char *close_one(void)
{
	char *at = range.at;
	tw__region_close(&region);
	return at;
}

/* Whether the mapping of an address has a flag in /proc/self/smaps. False: nothing is mapped. */
static bool has_flag(const char *address, const char *flag)
{
	char line[512];
	uintptr_t from, end, at = (uintptr_t)address;
	bool within = false, found = false;
	FILE *file = fopen("/proc/self/smaps", "r");
	cr_assert_not_null(file);
	while (fgets(line, sizeof line, file)) {
		if (sscanf(line, "%lx-%lx ", &from, &end) == 2)
			within = from <= at && at < end;
		else if (within && strncmp(line, "VmFlags:", 8) == 0)
			found = strstr(line, flag) != NULL;
	}
	fclose(file);
	return found;
}

static bool is_mapped(const char *at)
{
	return has_flag(at, " rd");
}

Test(base_reserve, range_is_mapped_in_steps)
{
	open_one(GIB);
	expect_eq(region.is_whole, false);
	expect_eq(is_mapped(range.at), false);
	expect_eq(tw__range_map(&range, 1), 0);
	expect_eq(range.mapped, STEP);
	expect_eq(range.at[STEP - 1], 0);
	expect_eq(is_mapped(range.at + STEP), false);
	memset(range.at, 1, STEP);
	expect_eq(tw__range_map(&range, MIB + 1), 0);
	expect_eq(range.mapped, 2 * MIB);
	expect_eq(range.at[0], 1);
	expect_eq(range.at[2 * MIB - 1], 0);
	expect_eq(tw__range_map(&range, STEP), 0); /* is mapped */
	expect_eq(range.mapped, 2 * MIB);
	expect_eq(has_flag(range.at, " dd"), false);
	expect_eq(is_mapped(close_one()), false);
}

/* Too large for a place. */
Test(base_reserve, region_without_a_place_is_held_and_mapped_in_steps)
{
	open_one(TOO_LARGE);
	expect_eq(region.is_whole, true);
	expect_eq(has_flag(range.at + TOO_LARGE - 1, " mr"), true);
	expect_eq(is_mapped(range.at), false);
	expect_eq(tw__range_map(&range, 1), 0);
	range.at[0] = 1;
	expect_eq(is_mapped(range.at + STEP), false);
	expect_eq(tw__range_map(&range, 4 * MIB), 0);
	expect_eq(range.at[0], 1);
	expect_eq(range.at[4 * MIB - 1], 0);
	char *at = close_one();
	expect_eq(has_flag(at, " mr"), false);
	expect_eq(has_flag(at + TOO_LARGE - 1, " mr"), false);
}

Test(base_reserve, regions_do_not_meet)
{
	struct tw__region others[20];
	open_one(PLACE);
	for (int i = 0; i < 20; i++) {
		open_another(&others[i], PLACE);
		for (int k = 0; k < i; k++)
			expect_ne(others[k].at, others[i].at);
		expect_ne(others[i].at, region.at);
	}
	for (int i = 0; i < 20; i++)
		tw__region_close(&others[i]);
	close_one();
}

/* More than there are places: those of regions that are closed are taken again. */
Test(base_reserve, open_region_keeps_its_place_while_others_come_and_go)
{
	struct tw__region other;
	open_one(GIB);
	for (int i = 0; i < 3000; i++) {
		open_another(&other, GIB);
		expect_eq(other.is_whole, false);
		expect_ne(other.at, region.at);
		tw__region_close(&other);
	}
	close_one();
}

/* Two thirds of the places are taken. */
Test(base_reserve, many_regions_leave_places_for_others)
{
	static struct tw__region regions[680];
	for (int i = 0; i < 680; i++)
		open_another(&regions[i], GIB);
	int whole = 0;
	for (int i = 0; i < 3000; i++) {
		struct tw__region other;
		open_another(&other, GIB);
		whole += other.is_whole;
		tw__region_close(&other);
	}
	expect_lt(whole, 60);
	for (int i = 0; i < 680; i++)
		tw__region_close(&regions[i]);
}

/* Somebody maps addresses behind a range later: it grows up to there. What is there stays. */
Test(base_reserve, range_does_not_grow_over_what_is_mapped)
{
	open_one(GIB);
	expect_eq(tw__range_map(&range, 2 * MIB), 0);
	char *foreign = range.at + 6 * MIB;
	expect_eq(mmap(foreign, STEP, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), foreign);
	expect_eq(tw__range_map(&range, 4 * MIB), 0);
	expect_eq(tw__range_map(&range, 6 * MIB + 1), -ENOMEM);
	expect_eq(range.mapped, 4 * MIB);
	expect_eq(foreign[0], 0);
	expect_eq(munmap(foreign, STEP), 0);
	expect_eq(tw__range_map(&range, 8 * MIB), 0);
	close_one();
}
