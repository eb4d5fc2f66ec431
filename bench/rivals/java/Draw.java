/** splitmix64, and how draws are mapped: the same as bench/random.h. */
final class Draw {
	private long state;

	Draw(long seed) {
		state = seed;
	}

	long next() {
		long z = state += 0x9e3779b97f4a7c15L;
		z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L;
		z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
		return z ^ (z >>> 31);
	}

	/** Maps the high half of a draw onto 0 .. below - 1. */
	static int slot(long draw, int below) {
		return (int) (((draw >>> 32) * below) >>> 32);
	}

	/** Maps the low half of a draw onto from .. to. */
	static long between(long draw, long from, long to) {
		return from + Math.multiplyHigh((draw << 32) >>> 1, (to - from) << 1);
	}
}
