import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { anchorOf } from './links.ts';

/**
 * Mends links of the reference to headings beyond the last of a name. TypeDoc counts members of parameters among the anchors,
 * such as `queue.stats`, and then calls the type `QueueStats` the second of that name, although there is one.
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
    const links = /\]\(([^)#\s]*)#([^)\s]+)-(\d+)\)/g;
    const fixed = text.replaceAll(links, (link, file: string, anchor: string, place: string) => {
      const target = file === '' ? path : join(dirname(path), file);
      const count = counts.get(`${target}#${anchor}`) ?? 0;
      if (count === 0 || Number(place) < count) return link;
      return `](${file}#${anchor}${count === 1 ? '' : `-${count - 1}`})`;
    });
    if (fixed !== text) writeFileSync(path, fixed);
  }
}
