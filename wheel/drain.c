/*
 * Draining: what the lanes hold goes into the wheel, or is dropped if it is dead already, as most request timeouts are.
 *
 * The base rule. A producer does not read the clock while the driver ticks; it stamps its lane with the published sequence number
 * S. The driver turns that into an instant U(S) that is not before the push and not much after it: the earlier of
 *   (a) a reading of the clock taken after the lane's tail was loaded (the push came before the tail that shows it), and
 *   (b) the reading taken after S was replaced by an exchange (a producer that read S did so before it was replaced).
 * A number no longer remembered takes the oldest reading remembered. A published number is never taken for the time of its own
 * publication.
 *
 * So that most words need not be written again by the driver (a line that goes from core to core for each timer), the producer
 * writes its best guess of the deadline: it counts from B(S), the end of the tick that S was published for. The driver's own reckoning
 * starts from the later of B(S) and U(S), and corrects the word only if that gives a later tick: when the driver itself came late.
 *
 * A load may be carried out ahead of the caller's own reading of the clock by as much as the processor
 * speculates; TW__SPECULATION_NS covers that. Bases never fall within a lane (G6). Base and delay are added in nanoseconds and rounded up once.
 */
#include "wheel/core.h"

enum { PREFETCH_AHEAD = 12, SAMPLE = 8, TAKES_PER_TURN = 1024 };

/* Of the last numbers, it is known what they stood for. */
static bool remembered(const tw_service *service, uint64_t sequence)
{
	return tw__gate_sequence(tw_load_relaxed(&service->gate.word)) - sequence < TW__STAMPS;
}

static uint64_t replaced_at(const tw_service *service, uint64_t sequence, uint64_t now_ns)
{
	uint64_t current = tw__gate_sequence(tw_load_relaxed(&service->gate.word));
	if (sequence >= current)
		return now_ns;
	uint64_t known = remembered(service, sequence) ? sequence : current - TW__STAMPS + 1;
	uint64_t replaced_ns = service->replaced_ns[known % TW__STAMPS];
	return replaced_ns < now_ns ? replaced_ns : now_ns;
}

static void raise_base(struct tw__local *local, uint64_t instant_ns)
{
	if (instant_ns > local->base_ns)
		local->base_ns = instant_ns;
}

/* The lane's stamp holds for all entries up to the next one: those of this take may have been pushed as late as U(S) says now. */
static void raise_to_stamp(const tw_service *service, struct tw__local *local, uint64_t now_ns)
{
	if (!local->base_sequence)
		return;
	raise_base(local, replaced_at(service, local->base_sequence, now_ns) + TW__SPECULATION_NS);
	if (remembered(service, local->base_sequence))
		raise_base(local, service->bases_ns[local->base_sequence % TW__STAMPS]);
}

/* The tick that an armed word asks for. `tick` is what its entry said, which tells the upper bits if the word was not moved. */
static uint64_t asked_tick(const tw_service *service, uint64_t word, uint64_t tick)
{
	if (word & TW__UNFILED || ((tick ^ word) & TW__DEADLINE_MASK) == 0)
		return tick;
	return tw__word_deadline(word, service->wheel.next);
}

/*
 * Files an entry, and first writes the word where it must say something else: a new timer's guess came out too early (at_least),
 * a deadline is far, or lies so far back that it could be read as the future, when it becomes the last tick that is past.
 */
static void file(tw_service *service, uint32_t slot, uint64_t word, uint64_t tick, bool at_least)
{
	uint32_t generation = tw__word_generation(word);
	uint64_t next = service->wheel.next;
	while (tw__word_generation(word) == generation && tw__word_armed(word)) {
		if (word & TW__FAR) {
			tw__file(service, slot, word, 0);
			return;
		}
		uint64_t asked = asked_tick(service, word, tick);
		if (at_least && asked < tick && !(word & TW__MULTI)) /* MULTI: a reset has moved it to earlier */
			asked = tick;
		if (asked + TW__WHEEL_REACH < next)
			asked = next - 1;
		uint64_t far = asked > next + TW__WHEEL_REACH - 2 ? TW__FAR : 0;
		uint64_t filed = tw__word_move(word, TW__UNFILED, far, far ? tw__far_bits(asked) : asked);
		if (far)
			tw__note_far(service, slot, generation, asked);
		if (tw_likely(filed == word) || tw_cas_acq_rel(&service->slots.words[slot], &word, filed)) {
			tw__file(service, slot, filed, asked);
			return;
		}
	}
}

static void file_far(tw_service *service, uint32_t slot, uint64_t word, uint64_t tick)
{
	if (!(word & TW__FAR) || (word & TW__DEADLINE_MASK) != tw__far_bits(tick))
		return; /* moved again since; that brought an entry of its own */
	tw__note_far(service, slot, tw__word_generation(word), tick);
	tw__file(service, slot, word, 0);
}

/* A base of the lane. True: the entry was one, or padding. */
static bool is_base(tw_service *service, struct tw__local *local, const struct tw__entry *entry, uint64_t now_ns)
{
	enum tw__kind kind = tw__what_kind(entry->what);
	if (kind == TW__KIND_STAMP) {
		local->base_sequence = entry->value;
		local->guess_ns = remembered(service, entry->value) ? service->bases_ns[entry->value % TW__STAMPS] : 0;
		raise_to_stamp(service, local, now_ns);
	} else if (kind == TW__KIND_NOW) {
		local->base_sequence = 0;
		local->guess_ns = entry->value;
		raise_base(local, entry->value);
	}
	return kind == TW__KIND_STAMP || kind == TW__KIND_NOW || kind == TW__KIND_PADDING;
}

/* Files an entry by its word. False: its timer is gone. */
static bool drain_entry(tw_service *service, struct tw__local *local, const struct tw__entry *entry)
{
	uint32_t slot = tw__entry_slot(entry->what);
	uint64_t word = tw_load_acquire(&service->slots.words[slot]); /* W1 */
	if ((word ^ entry->what) >> TW__GENERATION_SHIFT || !tw__word_armed(word))
		return false;
	enum tw__kind kind = tw__what_kind(entry->what);
	if (kind == TW__KIND_DELAY)
		file(service, slot, word, tw__tick_of(service, local->base_ns + entry->value), true);
	else if (kind == TW__KIND_DEADLINE)
		file(service, slot, word, tw__tick_of(service, entry->value), false);
	else if (kind == TW__KIND_FAR)
		file_far(service, slot, word, entry->value);
	else if (!(word & TW__UNFILED))
		file(service, slot, word, entry->value, false);
	return true;
}

/*
 * Files a new timer's entry without a look at its word, whose line then stays with the core that will cancel or move the timer. Whatever
 * has become of the timer is found out when the entry's bucket comes, or in a sweep. False: the word must be looked at, since it may
 * need writing: the guess was too early, the deadline is far or long past.
 */
static bool drain_blindly(tw_service *service, struct tw__local *local, const struct tw__entry *entry)
{
	enum tw__kind kind = tw__what_kind(entry->what);
	uint64_t tick, next = service->wheel.next;
	if (kind == TW__KIND_DELAY) {
		tick = tw__tick_of(service, local->base_ns + entry->value);
		if (local->guess_ns < local->base_ns && tw__tick_of(service, local->guess_ns + entry->value) < tick)
			return false;
	} else if (kind == TW__KIND_DEADLINE) {
		tick = tw__tick_of(service, entry->value);
	} else {
		return false;
	}
	if (tick > next + TW__WHEEL_REACH / 2 || tick + TW__WHEEL_REACH < next)
		return false; /* half the reach: a word is UNFILED only if it was a whole one away a moment ago */
	tw__wheel_add(&service->wheel, tick, tw__what_entry(entry->what));
	return true;
}

static void prefetch_word(const tw_service *service, const struct tw__entry *entry)
{
	__builtin_prefetch((const void *)&service->slots.words[tw__entry_slot(entry->what)]);
}

/*
 * Whether to look at the words: that pays where many timers are dead already, as those of quick requests are; a few entries
 * at the front of each block tell.
 */
static void drain_entries(tw_service *service, struct tw__local *local, const struct tw__entry *entries, int n,
			  uint64_t now_ns)
{
	int looked_at = 0, dead = 0;
	raise_to_stamp(service, local, now_ns);
	for (int i = 0; i < n && i < PREFETCH_AHEAD; i++)
		prefetch_word(service, &entries[i]);
	for (int i = 0; i < n; i++) {
		bool blindly = looked_at >= SAMPLE && dead < SAMPLE / 4;
		if (!blindly && i + PREFETCH_AHEAD < n)
			prefetch_word(service, &entries[i + PREFETCH_AHEAD]);
		if (is_base(service, local, &entries[i], now_ns) ||
		    (blindly && drain_blindly(service, local, &entries[i])))
			continue;
		dead += !drain_entry(service, local, &entries[i]);
		looked_at++;
	}
}

/* Whether the wheel can take another copied-out segment; a full sweep is the last resort, and always helps. */
static bool wheel_has_room(tw_service *service)
{
	if (tw_likely(tw__wheel_chunks_left(&service->wheel) > TW__SEGMENT_ENTRIES))
		return true;
	tw__wheel_sweep_start(&service->wheel);
	tw__wheel_sweep(&service->wheel, UINT64_MAX);
	return tw__wheel_chunks_left(&service->wheel) > TW__SEGMENT_ENTRIES;
}

uint64_t tw__drain(tw_service *service, bool *again)
{
	struct tw__entry entries[TW__SEGMENT_ENTRIES];
	uint64_t drained = 0;
	for (struct tw__lane *lane = tw__queue_first(&service->queue); lane; lane = lane->next) {
		int n, takes = 0;
		do {
			if (!wheel_has_room(service)) {
				*again = true;
				return drained;
			}
			n = tw__lane_take(lane, entries);
			if (n <= 0)
				break;
			uint64_t now_ns = service->published ? tw__driver_now(service) : 0; /* for stamps alone */
			drain_entries(service, (struct tw__local *)lane, entries, n, now_ns);
			drained += (uint64_t)n;
		} while (++takes < TAKES_PER_TURN);
		*again |= n != 0;
	}
	return drained;
}
