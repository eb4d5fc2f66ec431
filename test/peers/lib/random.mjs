// Random numbers from a seed: the same seed gives the same script everywhere.

/** Mulberry32. */
export class Random {
	constructor(seed) {
		this.state = seed >>> 0;
	}

	next() {
		this.state = (this.state + 0x6d2b79f5) >>> 0;
		let z = this.state;
		z = Math.imul(z ^ (z >>> 15), z | 1);
		z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
		return (z ^ (z >>> 14)) >>> 0;
	}

	below(bound) {
		return this.next() % bound;
	}

	between(low, high) {
		return low + this.below(high - low + 1);
	}

	percent(chance) {
		return this.below(100) < chance;
	}

	pick(list) {
		return list[this.below(list.length)];
	}

	/** weights: {name: weight}. */
	weighted(weights) {
		let left = this.below(Object.values(weights).reduce((sum, weight) => sum + weight, 0));
		for (const [name, weight] of Object.entries(weights)) {
			if (left < weight) return name;
			left -= weight;
		}
		throw new Error('no weights');
	}
}
