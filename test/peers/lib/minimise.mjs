// Makes a script that shows a difference as short as removing lines can: first halves, then ever
// smaller parts.

export async function minimise(text, differs) {
	let [header, ...lines] = text.trim().split('\n');
	let size = Math.ceil(lines.length / 2);
	while (size >= 1) {
		let removed = false;
		for (let at = 0; at < lines.length;) {
			const shorter = [...lines.slice(0, at), ...lines.slice(at + size)];
			if (await differs([header, ...shorter].join('\n'))) {
				lines = shorter;
				removed = true;
			} else {
				at += size;
			}
		}
		if (!removed || size > 1) size = size === 1 ? 0 : Math.floor(size / 2);
	}
	return [header, ...lines].join('\n');
}
