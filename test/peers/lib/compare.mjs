// Compares two traces step by step.

/** A trace without what follows "> -1", which is how a player cleans up. */
export function withoutEnd(trace) {
	const end = trace.indexOf('> -1');
	return end < 0 ? trace : trace.slice(0, end);
}

/** A trace as steps: [{index, lines}]. */
export function steps(trace) {
	const all = [];
	let index = 'before the first step';
	for (const line of trace) {
		if (line.startsWith('> ')) {
			index = line.slice(2);
			all.push({index, lines: []});
		} else {
			if (all.length === 0) all.push({index, lines: []});
			all.at(-1).lines.push(line);
		}
	}
	return all;
}

/** null, or a text. normalise: gives the lines of a step the form in which they must be equal. */
export function compare(mine, other, normalise = (lines) => lines) {
	const a = steps(mine);
	const b = steps(other);
	for (let i = 0; i < Math.max(a.length, b.length); i++) {
		if (a[i]?.index !== b[i]?.index)
			return `step ${a[i]?.index} of ours is step ${b[i]?.index} of theirs`;
		const [x, y] = [normalise(a[i].lines), normalise(b[i].lines)];
		for (let n = 0; n < Math.max(x.length, y.length); n++)
			if (x[n] !== y[n])
				return `step ${a[i].index}: ours "${x[n] ?? 'nothing more'}", theirs "${y[n] ?? 'nothing more'}"`;
	}
	return null;
}
