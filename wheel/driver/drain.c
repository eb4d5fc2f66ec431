/*
 * Draining: what the lanes hold goes into the wheel, unless it is dead already.
 *
 * The base rule. A producer does not read the clock while the driver ticks; it puts the published
 * sequence number S, the lane's epoch, into its lane. The driver turns that into an instant U(S)
 * that is not before the push and not much after it: the earlier of
 *   (a) a reading of the clock taken after the lane's tail was loaded, and
 *   (b) the reading taken after S was replaced by an exchange (a producer that read S did so
 *       before).
 * A number no longer remembered takes the oldest reading remembered.
 *
 * The producer writes an estimate of the deadline into the word: it counts from B(S), the end of
 * the tick that S was published for. The driver counts from the later of B(S) and U(S), and writes
 * the word again only if that gives a later tick: when the driver itself came late. (A line that
 * goes from core to core for each timer is dear.)
 *
 * If the driver published between the producer's two loads, the producer has counted from the base
 * of a later number than S. Its entries must be filed by their words, or the wheel would move them
 * behind later timers of their tick (G6). So the entry of an epoch holds the lower 32 bits of the
 * producer's base: if they differ from those of B(S), the driver reads the words.
 *
 * Two lanes. A thread's new timers for ticks that are TW__YOUNG_TICKS or more ahead are in its
 * young lane, which is read when one of them comes near, else in parts. The other lane is read in
 * each turn. Of one thread's timers for one tick, those in the young lane were scheduled first,
 * since the border only rises. So the other lane's tail is loaded first, then the young one is
 * read, if it may hold something for such a tick, and then the other, up to that tail (G6). A
 * packing that comes meanwhile moves what it keeps beyond that tail, so the driver looks again.
 * Limit: the deadlines that a late driver corrects may cross the border; then the order within
 * their tick is that of the filing.
 *
 * Bases never fall within a lane (G6). Base and delay are added in nanoseconds and rounded up once.
 * A load may be carried out ahead of the caller's own reading of the clock: TW__SPECULATION_NS.
 */
#include "wheel/core/service.h"
#include "mpsc/base/probes.h"
#include "wheel/core/wake.h"
#include "wheel/driver/driver.h"

enum { DRAIN_AHEAD = 12 };

/* Entries that are read of a lane in a turn; of a young one this, and a part of what is unread. */
enum { NEAR_ENTRIES = 1 << 17, YOUNG_ENTRIES = 1 << 14, YOUNG_PART = 8 };

/* In ticks: by how much a deadline may exceed its delay; how early a young lane is read. */
enum { ROUNDING_TICKS = 3, AHEAD_TICKS = 16 };

static bool remembered(const tw_service *service, uint64_t sequence)
{
	return tw__gate_sequence(tw_load_relaxed(&service->gate.word)) - sequence < TW__EPOCHS;
}

static uint64_t replaced_at(const tw_service *service, uint64_t sequence, uint64_t now_ns)
{
	uint64_t current = tw__gate_sequence(tw_load_relaxed(&service->gate.word));
	if (sequence >= current)
		return now_ns;
	uint64_t known = remembered(service, sequence) ? sequence : current - TW__EPOCHS + 1;
	uint64_t replaced_ns = service->driver->bases.replaced_ns[known % TW__EPOCHS];
	return replaced_ns < now_ns ? replaced_ns : now_ns;
}

static void raise_base(struct tw__lane_base *base, uint64_t instant_ns)
{
	if (instant_ns > base->base_ns)
		base->base_ns = instant_ns;
}

/* The entries of this take may have been pushed as late as U(S) says now. */
static void raise_to_epoch(const tw_service *service, struct tw__lane_base *base, uint64_t now_ns)
{
	if (!base->sequence)
		return;
	raise_base(base, replaced_at(service, base->sequence, now_ns) + TW__SPECULATION_NS);
	if (remembered(service, base->sequence))
		raise_base(base, service->driver->bases.bases_ns[base->sequence % TW__EPOCHS]);
}

/*
 * The tick that an armed word asks for; tick: of its entry, which tells the upper bits of a near
 * word that was not moved. Returns as tw__far_read.
 */
static bool asked_tick(tw_service *service, uint32_t slot, uint64_t *word, uint64_t tick,
		       uint64_t *asked)
{
	uint64_t next = service->driver->wheel.next;
	bool tells = ((tick ^ *word) & TW__DEADLINE_MASK) == 0 && tick < next + TW__NEAR_TICKS;
	if (!tells || tw__word_is_far(*word))
		return tw__deadline_read(&service->slots, slot, word, next, asked);
	*asked = tick;
	return true;
}

/*
 * Files an entry. The word is written first if a new timer's estimate was too early (at_least), or
 * if its bits could soon be read as the future.
 */
static __attribute__((noinline)) void file(tw_service *service, uint32_t slot, uint64_t word,
					   uint64_t tick, bool at_least, bool back)
{
	uint32_t generation = tw__word_generation(word);
	uint64_t next = service->driver->wheel.next;
	do {
		uint64_t was, asked;
		if (!asked_tick(service, slot, &word, tick, &was))
			continue;
		/* RELOCATED: a reset has moved it to earlier */
		asked = at_least && was < tick && !(word & TW__RELOCATED) ? tick : was;
		bool stays =
		    tw_likely(asked == was) &&
		    (tw_likely(tw__tick_is_near(asked, next - 1)) || tw__word_is_far(word));
		uint64_t filed = stays ? word : tw__word_move(word, tw__tick_bits(asked, next - 1));
		if (!stays && !tw__deadline_move(&service->slots, slot, &word, was, filed, asked))
			continue;
		tw__file(service, slot, filed, asked, back);
		return;
	} while (tw__entry_is_armed(&service->slots, tw__entry_make(slot, generation), &word));
}

/* What an epoch's producer counted from; 0: unknown. */
static uint64_t epoch_time(const tw_service *service, const struct tw__entry *epoch)
{
	uint64_t base_ns = service->driver->bases.bases_ns[epoch->value % TW__EPOCHS];
	bool is_its_own = (uint32_t)base_ns == (uint32_t)(epoch->what >> TW__GENERATION_SHIFT);
	return is_its_own && remembered(service, epoch->value) ? base_ns : 0;
}

/* Another base of the lane. */
static __attribute__((noinline)) void take_base(tw_service *service, struct tw__lane_base *base,
						const struct tw__entry *entry, uint64_t now_ns)
{
	base->sequence = entry->value;
	base->estimate_ns = epoch_time(service, entry);
	raise_to_epoch(service, base, now_ns);
}

/* Whether an entry is of a timer that was moved, or armed again. */
static inline bool has_location(const struct tw__entry *entry)
{
	enum tw__kind kind = tw__what_kind(entry->what);
	return tw_unlikely(kind == TW__KIND_FILE || kind == TW__KIND_BACK);
}

/* Whether it may be dropped without a look at its timer's word. */
static inline bool is_covered(const tw_service *service, const struct tw__entry *entry)
{
	return has_location(entry) &&
	       tw__location_covers(service, tw__what_entry(entry->what), entry->value);
}

/*
 * A new timer's entry is filed without a look at its word, whose line stays with the core that will
 * cancel or move the timer; the entry's bucket, or a sweep, finds out what has become of it. Unless
 * the word may need writing: the estimate was too early, or the deadline is long past.
 */
static inline void drain_entry(tw_service *service, struct tw__lane_base *base,
			       const struct tw__entry *entry, uint64_t now_ns)
{
	enum tw__kind kind = tw__what_kind(entry->what);
	uint64_t tick = entry->value, next = service->driver->wheel.next, word;
	bool counts = kind == TW__KIND_DELAY, blindly = counts || kind == TW__KIND_DEADLINE;
	if (kind == TW__KIND_PADDING)
		return;
	if (tw_unlikely(kind == TW__KIND_EPOCH)) {
		take_base(service, base, entry, now_ns);
		return;
	}
	if (counts || kind == TW__KIND_OWN) {
		/* of an own instant: if that is not before what epochs have led to (G6) */
		tick = tw__tick_of(service, base->base_ns + entry->value);
		blindly &= base->estimate_ns >= base->base_ns ||
			   tw__tick_of(service, base->estimate_ns + entry->value) >= tick;
		counts = true;
	} else if (kind == TW__KIND_DEADLINE) {
		tick = tw__tick_of(service, entry->value);
	}
	if (tw_likely(blindly) && tw_likely(tick + TW__NEAR_TICKS >= next)) {
		tw__wheel_add(&service->driver->wheel, tick, tw__what_entry(entry->what));
		TW_PROBE4(file, service, tw__entry_slot(entry->what),
			  (uint32_t)(entry->what >> TW__GENERATION_SHIFT), tick);
	} else if (!is_covered(service, entry) &&
		   tw__entry_is_armed(&service->slots, tw__what_entry(entry->what), &word)) {
		file(service, tw__entry_slot(entry->what), word, tick, counts,
		     kind == TW__KIND_BACK);
	}
}

/* Of a timer that was moved, or armed again: its location first, then word and bucket. */
static inline void prefetch_look(const tw_service *service, const struct tw__entry *entry)
{
	if (has_location(entry))
		tw_prefetch_write(&service->slots.locations[tw__entry_slot(entry->what)]);
	entry -= DRAIN_AHEAD / 2;
	if (!has_location(entry) || is_covered(service, entry))
		return;
	__builtin_prefetch((const void *)&service->slots.words[tw__entry_slot(entry->what)]);
	tw__wheel_fetch(&service->driver->wheel, entry->value);
}

/* Whether the wheel can take a segment, each of whose entries may need a chunk of its own. */
static bool has_chunks(const tw_service *service)
{
	return tw__wheel_chunks_left(&service->driver->wheel) >
	       tw__chunks_wanted(service, tw__outbox_reserve(&service->driver->outboxes)) +
		   TW__SEGMENT_ENTRIES;
}

/*
 * A service with few slots may have more chunks, if the system gives them. The last resort is a
 * full sweep, where there are more entries than timers.
 */
static bool wheel_has_room(tw_service *service)
{
	struct tw__wheel *wheel = &service->driver->wheel;
	if (tw_likely(has_chunks(service)))
		return true;
	if (tw__slots_more_chunks(&service->slots))
		tw__driver_take_chunks(service);
	if (has_chunks(service))
		return true;
	if (wheel->entries <= tw__live_timers(service, NULL))
		return false;
	tw__wheel_sweep_start(wheel);
	tw__wheel_sweep(wheel, UINT64_MAX);
	return has_chunks(service);
}

/* The unread entries of a lane. */
struct part {
	uint64_t from, end;
};

static struct part look_at(const struct tw__lane *lane)
{
	struct part part;
	part.from = tw__lane_head(lane); /* LANE7: first */
	part.end = tw__lane_tail(lane);
	return part;
}

enum drained {
	ALL,
	SOME,             /* `most` */
	PACKED_MEANWHILE, /* a packing came, and has moved living entries beyond the part's end */
	NO_ROOM           /* in the wheel */
};

/* Files what is left of a part, about `most` entries. */
static enum drained drain_part(tw_service *service, struct tw__lane *lane,
			       struct tw__lane_base *base, struct part part, uint64_t most,
			       uint64_t now_ns, uint64_t *drained)
{
	struct tw__entry entries[TW__SEGMENT_ENTRIES];
	uint64_t done = 0;
	while (done < most && tw__lane_head(lane) < part.end) {
		if (!wheel_has_room(service))
			return NO_ROOM;
		unsigned n = tw__lane_take(lane, part.end, entries);
		*drained += n;
		done += n;
		if (!service->threaded) /* the words are in this thread's cache, as in a packing */
			n = lane->pack(lane->pack_context, entries, n, entries, 0);
		raise_to_epoch(service, base, now_ns);
		for (unsigned i = 0; i < n; i++) {
			if (i + DRAIN_AHEAD < n)
				prefetch_look(service, &entries[i + DRAIN_AHEAD]);
			drain_entry(service, base, &entries[i], now_ns);
		}
	}
	uint64_t head = tw__lane_head(lane);
	if (head - part.from != done)
		return PACKED_MEANWHILE;
	return head < part.end ? SOME : ALL;
}

/* As drain_part, of what is to be read of a young lane by now. */
static enum drained drain_young(tw_service *service, struct tw__local *local, struct part part,
				uint64_t now_ns, bool all, uint64_t *drained)
{
	struct tw__lane *young = &local->young;
	uint64_t sequence = tw__gate_sequence(tw_load_relaxed(&service->gate.word));
	uint64_t soonest = tw_load_relaxed(&young->soonest); /* LANE1: after the tail */
	/*
	 * All, if something in it may be filed for the tick of an entry of the other lane: those
	 * are at most TW__YOUNG_TICKS ahead of the cursor, or of the present, if a late driver
	 * counts from it (G6). Else a part at most (G12).
	 */
	uint64_t near = tw__ticks_down(service, now_ns - service->time.start_ns) + TW__YOUNG_TICKS +
			ROUNDING_TICKS;
	uint64_t before = *drained, most = UINT64_MAX;
	if (!all && soonest >= near) {
		bool wanted = soonest < near + AHEAD_TICKS || tw__young_is_long(local) ||
			      service->driver->drains_young ||
			      sequence - local->young_since > TW__EPOCHS / 2;
		most = wanted ? YOUNG_ENTRIES + tw__lane_backlog(young) / YOUNG_PART : 0;
	}
	enum drained r =
	    drain_part(service, young, &local->young_base, part, most, now_ns, drained);
	uint64_t kept = tw__kept(local), read = tw_load_relaxed(&local->kept) + *drained - before;
	if (r == ALL)
		local->young_since = sequence;
	else if (local->young_base.sequence > local->young_since)
		local->young_since = local->young_base.sequence;
	if (r != ALL && (int64_t)(kept - read) > 0)
		kept = read;
	tw_store_relaxed(&local->kept, kept);
	return r;
}

uint64_t tw__drain(tw_service *service, bool all, bool *again)
{
	TW_ASSERT_DRIVER(service);
	uint64_t drained = 0, now_ns = 0;
	for (struct tw__lane *lane = tw__queue_first(&service->queue); lane; lane = lane->next) {
		struct tw__local *local = (struct tw__local *)lane;
		/* it is looked at first, and read last: G6 */
		struct part part = look_at(lane);
		enum drained r = ALL;
		if (service->time.has_young)
			do {
				struct part young = look_at(&local->young);
				now_ns = tw__driver_now(service);
				r = drain_young(service, local, young, now_ns, all, &drained);
			} while (r == PACKED_MEANWHILE);
		if (r != NO_ROOM)
			r = drain_part(service, lane, &local->base, part, NEAR_ENTRIES, now_ns,
				       &drained);
		*again |= r != ALL;
		if (r == NO_ROOM)
			break;
	}
	return drained;
}

uint64_t tw__young_plan(tw_service *service)
{
	const uint64_t early = TW__YOUNG_TICKS + ROUNDING_TICKS + AHEAD_TICKS;
	uint64_t plan = UINT64_MAX, next = service->driver->wheel.next;
	for (struct tw__lane *lane = tw__queue_first(&service->queue); lane; lane = lane->next) {
		struct tw__local *local = (struct tw__local *)lane;
		struct tw__lane *young = &local->young;
		if (!tw__lane_unread(young))
			continue;
		uint64_t soonest = tw_load_relaxed(&young->soonest); /* LANE1: after the tail */
		if (soonest < next + early || tw__young_is_long(local))
			return next;
		if (soonest != UINT64_MAX) /* else there are epochs alone */
			plan = tw__earlier(plan, soonest - early);
	}
	return plan;
}
