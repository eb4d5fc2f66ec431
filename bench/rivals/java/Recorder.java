import java.util.concurrent.atomic.AtomicLong;

/** What callbacks record. All of them run on the one thread of the library. */
final class Recorder {
	private static final int BUCKETS = 61 * 16;
	private static final long[] buckets = new long[BUCKETS];
	private static final AtomicLong fired = new AtomicLong();
	private static long count, early, latest;

	private Recorder() {
	}

	/** A run that was due at the deadline and began now. */
	static void note(long deadline, long now) {
		long late = now - deadline;
		if (late < 0)
			early++;
		else
			add(late);
		fired.lazySet(++count);
	}

	private static void add(long late) {
		buckets[bucket(late)]++;
		if (late > latest)
			latest = late;
	}

	/** As in bench/recorder.h: 16 buckets for each doubling. */
	private static int bucket(long late) {
		if (late < 16)
			return (int) late;
		int exponent = 63 - Long.numberOfLeadingZeros(late);
		return (exponent - 3) * 16 + (int) ((late >>> (exponent - 4)) & 15);
	}

	/** Runs so far. Whoever reads it sees what these runs recorded. */
	static long fired() {
		return fired.get();
	}

	/** Forgets the lateness of what has run, and not that it has run. Only while nothing runs. */
	static void forget() {
		java.util.Arrays.fill(buckets, 0);
		latest = 0;
	}

	static void report() {
		for (int i = 0; i < BUCKETS; i++)
			if (buckets[i] != 0)
				System.out.println("lateness " + i + " " + buckets[i]);
		System.out.println("latest " + latest);
		System.out.println("early " + early);
	}
}
