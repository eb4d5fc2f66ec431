/*
 * The wheel against a naive twin: an array of deadlines that is searched from end to end. Random
 * programs add, cancel, extend, poll, cascade, sweep and plan. After each step the wheel's own
 * invariants are checked. After each poll the handed-over entries are checked: exactly the due
 * ones, in the order of ticks, and within a tick in the order of adding.
 *
 * A resolve function may know the location of each entry, from tw__wheel_level_for and the due
 * ticks. The model keeps that location too, and compares it with the one that the resolve function
 * gets.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/support/random.h"
#include "test/support/rounds.h"
#include "wheel/wheel.h"

enum {
	TIMERS = 3000,
	STEPS = 4000,
	CHUNKS = 40000,
	RANGE_LOG2 = 49 /* all instants in the shortest ticks */
};

struct twin_timer {
	uint64_t deadline, order;
	bool alive, extended;
	bool tracked;
	uint64_t tick; /* if tracked: it is in the bucket of `level` that has this tick */
	unsigned level;
	unsigned moves; /* down, since it was added */
};

struct twin {
	struct tw__wheel wheel;
	void *table, *depot;
	struct tw__chunk *arena;
	struct twin_timer timers[TIMERS];
	uint32_t used;
	uint64_t adds, random;
};

static uint64_t draw(struct twin *t)
{
	return random_next(&t->random);
}

static void expect_place(const struct twin_timer *timer, const struct tw__place *place)
{
	cr_assert(timer->level == place->level && timer->tick >= place->low &&
		      timer->tick < place->high,
		  "for tick %lu on level %u, met in [%lu, %lu) of level %u", timer->tick,
		  timer->level, place->low, place->high, place->level);
}

static void track(const struct twin *t, struct twin_timer *timer, enum tw__resolve_for what_for,
		  const struct tw__place *place, uint64_t due_tick)
{
	timer->tick = due_tick;
	if (due_tick >= place->high) {
		timer->level = tw__wheel_level_for(&t->wheel, due_tick);
		timer->moves = 0;
	} else if (what_for == TW__RESOLVE_MOVE) {
		timer->level--;
		timer->moves++;
		cr_assert(timer->moves < TW__WHEEL_LEVELS, "moved %u times", timer->moves);
	}
}

static void resolve(void *context, enum tw__resolve_for what_for, const struct tw__place *place,
		    const tw__wheel_entry *entries, unsigned n, uint64_t *due_ticks)
{
	struct twin *t = context;
	for (unsigned i = 0; i < n; i++) {
		struct twin_timer *timer = &t->timers[entries[i]];
		if (timer->tracked)
			expect_place(timer, place);
		due_ticks[i] = !timer->alive                  ? TW__TICK_DEAD
			       : timer->deadline < place->low ? place->low
							      : timer->deadline;
		if (timer->tracked && timer->alive)
			track(t, timer, what_for, place, due_ticks[i]);
	}
}

static struct twin *twin_new(uint32_t buckets, uint64_t seed)
{
	struct twin *t = calloc(1, sizeof *t);
	struct tw__wheel_size size = {buckets, RANGE_LOG2};
	t->table = calloc(1, tw__wheel_table_bytes(size));
	t->depot = calloc(1, tw__depot_bytes(CHUNKS, TW__CHUNK_BLOCK_SHIFT));
	t->arena = malloc(CHUNKS * sizeof *t->arena);
	t->random = seed * 2 + 1;
	tw__wheel_init(&t->wheel, size, t->table, t->depot, t->arena, CHUNKS, resolve, t);
	return t;
}

static void twin_free(struct twin *t)
{
	free(t->table);
	free(t->depot);
	free(t->arena);
	free(t);
}

/* A distance with all magnitudes equally likely, so that each level gets its share. */
static uint64_t any_distance(struct twin *t)
{
	return draw(t) & ((UINT64_C(1) << draw(t) % (RANGE_LOG2 - 2)) - 1);
}

static void add(struct twin *t)
{
	if (t->used == TIMERS)
		return;
	struct twin_timer *timer = &t->timers[t->used];
	uint64_t distance = any_distance(t);
	bool past = draw(t) % 16 == 0 && distance < t->wheel.next;
	timer->deadline = past ? t->wheel.next - 1 - distance : t->wheel.next + distance;
	timer->order = t->adds++;
	timer->alive = timer->tracked = true;
	timer->tick = timer->deadline;
	timer->level = tw__wheel_level_for(&t->wheel, timer->tick);
	tw__wheel_add(&t->wheel, timer->deadline, t->used++);
}

static void cancel(struct twin *t)
{
	if (t->used)
		t->timers[draw(t) % t->used].alive = false;
}

static void extend(struct twin *t)
{
	if (!t->used)
		return;
	struct twin_timer *timer = &t->timers[draw(t) % t->used];
	uint64_t deadline = t->wheel.next + any_distance(t);
	if (deadline > timer->deadline) {
		timer->deadline = deadline;
		timer->extended = true;
	}
}

static uint64_t first_deadline(const struct twin *t)
{
	uint64_t first = UINT64_MAX;
	for (uint32_t i = 0; i < t->used; i++)
		if (t->timers[i].alive && t->timers[i].deadline < first)
			first = t->timers[i].deadline;
	return first;
}

/* What is handed over must be due, alive, and in order; it is struck off. */
static void check_handed(struct twin *t, struct tw__chunk *chunk, uint64_t to, uint64_t seed)
{
	uint64_t tick = 0, order = 0;
	for (; chunk; chunk = chunk->next) {
		cr_assert(chunk->count > 0, "seed %lu: an empty chunk was handed over", seed);
		for (unsigned i = 0; i < chunk->count; i++) {
			struct twin_timer *timer = &t->timers[chunk->entries[i]];
			cr_assert(timer->alive,
				  "seed %lu: a dead entry, or one twice, was handed over", seed);
			cr_assert(timer->deadline <= to, "seed %lu: early: %lu at %lu", seed,
				  timer->deadline, to);
			cr_assert(chunk->tick >= tick, "seed %lu: ticks out of order", seed);
			if (chunk->tick != tick)
				order = 0;
			tick = chunk->tick;
			if (!timer->extended && timer->deadline == tick) {
				cr_assert(timer->order >= order,
					  "seed %lu: out of order within tick %lu", seed, tick);
				order = timer->order;
			}
			timer->alive = false;
		}
	}
}

static void turn(struct twin *t, uint64_t to, uint64_t seed)
{
	struct tw__chunk_list due = {0};
	while (tw__wheel_turn(&t->wheel, to, &due))
		;
	check_handed(t, due.first, to, seed);
	struct tw__chunk *chunk;
	while ((chunk = tw__chunk_pop(&due)))
		tw__chunk_put(&t->wheel, chunk);
	cr_assert(first_deadline(t) > to, "seed %lu: late: %lu was not handed over at %lu", seed,
		  first_deadline(t), to);
	cr_assert(t->wheel.next == to + 1 || t->wheel.next > to, "seed %lu: the wheel stands still",
		  seed);
}

static void turn_some(struct twin *t, uint64_t seed)
{
	uint64_t from = t->wheel.next, step = draw(t) % 4 ? draw(t) % 8 : any_distance(t);
	turn(t, from + step, seed);
	if (draw(t) % 8)
		tw__wheel_move_nearer(&t->wheel);
}

/* A plan may be early, never late; and nothing happens before it. */
static void plan(struct twin *t, uint64_t seed)
{
	uint64_t tick = tw__wheel_plan(&t->wheel, 1u << 30);
	uint64_t first = first_deadline(t);
	cr_assert(tick <= first || first < t->wheel.next, "seed %lu: planned for %lu, due at %lu",
		  seed, tick, first);
	if (first == UINT64_MAX &&
	    /* what came late is not asked whether it lives: the next tick takes it */
	    t->wheel.late.count == 0)
		cr_assert(tick == UINT64_MAX, "seed %lu: a wake-up for nothing", seed);
}

static void step(struct twin *t, uint64_t seed)
{
	switch (draw(t) % 16) {
	case 0:
	case 1:
		cancel(t);
		break;
	case 2:
		extend(t);
		break;
	case 3:
	case 4:
	case 5:
		turn_some(t, seed);
		break;
	case 6:
		plan(t, seed);
		break;
	case 7:
		tw__wheel_sweep_start(&t->wheel);
		tw__wheel_sweep(&t->wheel, draw(t) % 512);
		break;
	default:
		add(t);
	}
	const char *wrong = tw__wheel_check(&t->wheel);
	cr_assert(!wrong, "seed %lu: %s", seed, wrong);
}

static void random_program(uint32_t buckets, uint64_t seed)
{
	struct twin *t = twin_new(buckets, seed);
	turn(t, draw(t) & ((UINT64_C(1) << draw(t) % 47) - 1), seed); /* begin anywhere */
	for (int i = 0; i < STEPS && !random_runs_out(); i++)
		step(t, seed);
	turn(t, t->wheel.next + (UINT64_C(1) << (RANGE_LOG2 - 1)), seed);
	cr_assert_eq(first_deadline(t), UINT64_MAX, "seed %lu: something was lost", seed);
	twin_free(t);
}

Test(wheel_model, random_programs_on_the_smallest_wheel)
{
	for (uint64_t seed = 1; seed <= rounds(150); seed++)
		random_program(64, seed);
}

Test(wheel_model, random_programs_on_the_default_wheel)
{
	for (uint64_t seed = 1; seed <= rounds(20); seed++)
		random_program(4096, 1000 + seed);
}

Test(wheel_model, random_programs_on_the_largest_wheel)
{
	for (uint64_t seed = 1; seed <= rounds(2); seed++)
		random_program(65536, 2000 + seed);
}

/*
 * All pairs (now, deadline) around the windows of the smallest wheel, one entry at a time, tick by
 * tick.
 */
Test(wheel_model, every_pair_of_now_and_deadline_of_a_small_wheel)
{
	for (uint64_t now = 0; now < 160; now++) {
		for (uint64_t distance = 0; distance < 2200; distance += distance < 200 ? 1 : 37) {
			struct twin *t = twin_new(64, 1);
			if (now)
				turn(t, now - 1, 0);
			t->timers[0] =
			    (struct twin_timer){.deadline = now + distance, .alive = true};
			t->used = 1;
			tw__wheel_add(&t->wheel, now + distance, 0);
			if (distance)
				turn(t, now + distance - 1, 0);
			cr_assert(t->timers[0].alive, "early: now %lu, distance %lu", now,
				  distance);
			turn(t, now + distance, 0);
			cr_assert(!t->timers[0].alive, "late: now %lu, distance %lu", now,
				  distance);
			twin_free(t);
		}
	}
}

/* A million entries for one far window: no turn moves more than a small part of them (G12). */
Test(wheel_model, a_full_coarse_bucket_is_moved_down_in_small_parts)
{
	enum { MANY = 200000 };
	struct twin *t = twin_new(4096, 7);
	uint64_t window = UINT64_C(1) << t->wheel.levels[0].window_shift, most = 0;
	t->timers[0] = (struct twin_timer){.deadline = 2 * window + 10, .alive = true};
	for (int i = 0; i < MANY; i++)
		tw__wheel_add(&t->wheel, 2 * window + 10, 0);
	for (uint64_t tick = 0; tick < 2 * window; tick++) {
		struct tw__chunk_list due = {0};
		uint64_t before = t->wheel.levels[1].entries;
		cr_assert(!tw__wheel_turn(&t->wheel, tick, &due));
		tw__wheel_move_nearer(&t->wheel);
		uint64_t moved = before - t->wheel.levels[1].entries;
		most = moved > most ? moved : most;
	}
	cr_assert_eq(t->wheel.levels[1].entries, 0u);
	cr_assert(most <= MANY / window + 3 * TW__CHUNK_ENTRIES,
		  "%lu entries were moved in one tick", most);
	twin_free(t);
}

/* A sweep leaves the live in order, gives chunks back, and may be interrupted anywhere. */
Test(wheel_model, a_sweep_drops_the_dead_and_packs_the_rest)
{
	struct twin *t = twin_new(64, 3);
	for (uint32_t i = 0; i < TIMERS; i++) {
		t->timers[i] =
		    (struct twin_timer){.deadline = 100000, .order = i, .alive = i % 3 == 0};
		tw__wheel_add(&t->wheel, 100000, i);
	}
	t->used = TIMERS;
	tw__wheel_sweep_start(&t->wheel);
	while (tw__wheel_sweep(&t->wheel, 100)) {
		const char *wrong = tw__wheel_check(&t->wheel);
		cr_assert(!wrong, "%s", wrong);
	}
	cr_assert_eq(t->wheel.entries, TIMERS / 3);
	turn(t, 100000, 3);
	twin_free(t);
}
