/*
 * The base rule of published time: wheel/driver/drain.c; count_from in
 * wheel/timer/schedule.c; tw__driver_publish in wheel/driver/poll.c.
 *
 * Modelled: a producer that schedules twice with equal delays, the driver that publishes its time
 * (open or parked) and drains at any moment, a clock. The delay is 0: only what is added to it
 * counts, so a deadline is the instant it is counted from. What the producer has stored but not yet
 * in memory is explicit (`stored` against `tail`); the driver publishes by an exchange, and its
 * base_ns may be visible before. The driver is as late as it likes.
 *
 * Left out: rounding to ticks (it never falls as its argument grows), TW__SPECULATION_NS (loads are
 * in program order here), the driver's clamping (this clock never steps), reset and cancel
 * (word.pml, location.pml). TW__EPOCHS is 2, so that a number may be forgotten.
 *
 * Holds:
 *   G1  a deadline never counts from before the entry of the call
 *   G2  nor from later than a tick after the push, or the reading at drain if the driver came late
 *   G6  of two with equal delays the later one's deadline is not the earlier one
 *
 *   run: BASE   G1 G2 G6
 *   mutant: PLAIN_PUBLISH    the word is published by a plain store, and its replacement timed at
 *                            once
 *   mutant: CLOCK_FIRST      the drain's reading is taken before the tail is loaded
 *       /= tail;/s/^/reading = now; /; /^\t\treading = now;$/d
 *   mutant: EPOCH_ALONE      a number stands for the end of the tick it was published for, whenever
 *                            it was replaced
 *       /:: lane_sequence/{n;N;d}
 *   mutant: ALWAYS_BLIND     the producer's estimate is never corrected
 *       /the base/{n;n;n;N;N;N;d}
 *   mutant: CLOCK_ALONE      a base read from the clock may lie before one that was published and
 *                            counted from
 *       s/MAX(now, counted)/now/
 *   mutant: OWN_ALONE        a deadline counted from a reading of the clock may lie before what an
 *                            epoch has led to
 *       />= lane_base/s/$/ :: base_kind[head] == OWN/
 *   mutant: LATER_BASE       a forgotten number takes the base of the one that has its place
 *       /raise_base();/{n;n;s/.\+/:: true ->/}
 */
#define TIMERS 2
#define TICK 1
#define EPOCHS 2
#define NUMBERS 3 /* published, the first at the beginning */
#define TIME 3    /* the clock stops here */

#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define MIN(a, b) ((a) < (b) -> (a) : (b))

byte now;

/*
 * The gate: sequence number and OPEN, one word; `next_*`: still in the driver's buffer
 * (PLAIN_PUBLISH).
 */
byte sequence = 1;
bool open = true;
byte base_ns = TICK;
bool buffered, next_open;

/* The lane: for each timer a base in front of it, if any. */
mtype = { NONE, EPOCH, OWN }; /* OWN: none, and the deadline is the word's */
mtype base_kind[TIMERS];
byte base_value[TIMERS];
byte stored, tail;

/* when the call was entered, and when its entry was published */
byte entered[TIMERS], pushed[TIMERS];
byte word[TIMERS];                    /* deadlines in the control words */

active proctype clock()
{
end:	do
	:: now < TIME -> now++
	od
}

active proctype memory()
{
end:	do
	:: tail != stored -> tail = stored
	:: buffered -> atomic { sequence++; open = next_open; buffered = false }
	od
}

active proctype producer()
{
	byte epoch, counted, seen;
	bool seen_open;
	do
	:: stored < TIMERS ->
		entered[stored] = now;
		atomic { seen = sequence; seen_open = open }; /* tw__gate_look */
		d_step { /* count_from; local->epoch_word is `epoch`, counted_ns `counted` */
			if
			:: seen_open && epoch == seen -> base_kind[stored] = NONE
			:: seen_open && epoch != seen ->
				base_kind[stored] = EPOCH;
				base_value[stored] = seen;
				epoch = seen;
				/* base_ns: of this number or a later one: an estimate */
				counted = MAX(counted, base_ns)
			:: !seen_open ->
				base_kind[stored] = OWN;
				counted = MAX(now, counted)
			fi;
			word[stored] = counted;
			seen = 0;
			seen_open = false
		};
		d_step { pushed[stored] = now; stored++ } /* tw__publish */
	:: else -> counted = 0; epoch = 0; break
	od
}

/* The driver's own numbers. */
byte current = 1, bases[EPOCHS] = TICK, replaced[EPOCHS];
byte lane_base, lane_sequence, lane_guess, last_deadline;

inline publish(says_open) /* from a reading on; atomic only where one access is */
{
	d_step { reading = now; bases[(current + 1) % EPOCHS] = reading + TICK;
		base_ns = reading + TICK };
#ifdef PLAIN_PUBLISH
	atomic { !buffered -> next_open = says_open; buffered = true; current++ };
#else
	d_step { sequence++; open = says_open; current++ }; /* exchange: gate.h, GATE1 */
#endif
	/* drain.c, (b) */
	d_step { replaced[(current - 1) % EPOCHS] = now; reading = 0; flags = false }
}

#define REMEMBERED(s) (current - (s) < EPOCHS)

/*
 * U(S): the earlier of the drain's reading and the one taken when S, or the oldest number
 * remembered, was replaced.
 */
inline replaced_at(s)
{
	if
	:: s >= current -> instant = reading
	:: s < current && REMEMBERED(s) -> instant = MIN(replaced[s % EPOCHS], reading)
	:: else -> instant = MIN(replaced[(current + 1) % EPOCHS], reading)
	fi
}

inline raise_base()
{
	lane_base = MAX(lane_base, instant)
}

inline raise_to_stamp()
{
	if
	:: lane_sequence != 0 ->
		replaced_at(lane_sequence);
		raise_base();
		if
		:: REMEMBERED(lane_sequence) ->
			instant = MAX(bases[lane_sequence % EPOCHS], lane_base);
			raise_base()
		:: else
		fi
	:: else
	fi
}

inline read_base()
{
	if
	:: base_kind[head] == EPOCH ->
		lane_sequence = base_value[head];
		lane_guess = (REMEMBERED(lane_sequence) -> bases[lane_sequence % EPOCHS] : 0);
		raise_to_stamp()
	:: else
	fi
}

/* drain_blindly, or file: the word is written if the base is later. */
inline file()
{
	if
	:: lane_guess >= lane_base && base_kind[head] != OWN /* blindly */
	:: word[head] = MAX(word[head], lane_base)
	fi;
	/* it will not be handed over early */
	assert(MAX(word[head], lane_base) == word[head] || lane_guess < lane_base);
	assert(word[head] >= entered[head]);                                        /* G1 */
	assert(word[head] <= MAX(pushed[head] + TICK, reading));                    /* G2 */
	assert(word[head] >= last_deadline);                                        /* G6 */
	last_deadline = word[head]
}

inline forget() /* what is not read again, so that there are fewer states */
{
	base_kind[head] = 0;
	base_value[head] = 0;
	entered[head] = 0;
	pushed[head] = 0;
	word[head] = 0
}

active proctype driver()
{
	byte head, upto, reading, instant;
	bool flags;
	do
	:: atomic {
		current < NUMBERS && head < TIMERS ->
		if
		:: flags = true
		:: flags = false
		fi
	   };
	   publish(flags)
	:: head != tail || head == TIMERS ->
		if
		:: head == TIMERS -> break
		:: else
		fi;
		upto = tail;
		reading = now;
		d_step {
			raise_to_stamp();
			do
			:: head < upto -> read_base(); file(); forget(); head++
			:: else -> break
			od;
			upto = 0;
			reading = 0;
			instant = 0
		}
	od
}
