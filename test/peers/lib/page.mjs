// Reads differences.md: each listed difference has a heading, and code blocks "script", "ours" and
// "theirs".

import {readFileSync} from 'node:fs';

export function readPage(url) {
	const page = readFileSync(url, 'utf8');
	return page
		.split(/^### /m)
		.slice(1)
		.map((section) => {
			const block = (name) => {
				const found = section.match(new RegExp(`^\`\`\`${name}\\n([^]*?)^\`\`\``, 'm'));
				if (!found)
					throw new Error(
						`differences.md: "${section.split('\n')[0]}" has no block "${name}"`,
					);
				return found[1].trim();
			};
			return {
				title: section.split('\n')[0],
				script: block('script'),
				mine: block('ours'),
				other: block('theirs'),
			};
		});
}
