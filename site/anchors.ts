import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { anchorOf } from './links.ts';

/**
 * Mends links of the reference to headings of which there is one. TypeDoc counts members of parameters among the anchors, such
 * as `queue.stats`, and then calls the type `QueueStats` the second of that name.
 */
export function mendAnchors(folder: string): void {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .map((path) => join(folder, path));
  const counts = new Map<string, number>();
  for (const path of paths) {
    for (const [, heading = ''] of readFileSync(path, 'utf8').matchAll(/^#+ (.*)$/gm)) {
      const anchor = `${path}#${anchorOf(heading)}`;
      counts.set(anchor, (counts.get(anchor) ?? 0) + 1);
    }
  }
  for (const path of paths) {
    const text = readFileSync(path, 'utf8');
    const fixed = text.replaceAll(/\]\(([^)#\s]*)#([^)\s]+)-1\)/g, (link, file: string, anchor: string) => {
      const target = file === '' ? path : join(dirname(path), file);
      return counts.get(`${target}#${anchor}`) === 1 ? `](${file}#${anchor})` : link;
    });
    if (fixed !== text) writeFileSync(path, fixed);
  }
}
