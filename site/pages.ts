import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import type { DefaultTheme } from 'vitepress';
import { repository, root } from './repository.ts';

/** Files of the repository that are pages of the site, and what they are called there. */
export const REWRITES = {
  'README.md': 'index.md',
  'CHANGELOG.md': 'changelog.md',
  'CONTRIBUTING.md': 'contributing.md',
  'SECURITY.md': 'security.md',
  'docs/README.md': 'documentation.md',
  'docs/:page(.*)': ':page',
  'site/pages/:page(.*)': ':page',
  'site/api/:page(.*)': 'api/:page',
};

/** The address in the site of a file of the repository, without a slash in front; `undefined` if it is none. */
export function pageAt(file: string): string | undefined {
  if (!file.endsWith('.md')) return undefined;
  const rewritten: unknown = Reflect.get(REWRITES, file);
  const path =
    typeof rewritten === 'string'
      ? rewritten
      : /^(?:docs|site\/pages)\/(.*)$|^site\/(api\/.*)$/.exec(file)?.slice(1).find(Boolean);
  if (path === undefined || !existsSync(join(root, file))) return undefined;
  return path.replace(/(^|\/)index\.md$/, '$1').replace(/\.md$/, '');
}

/** Pages that are packed link so to pages that are not. */
const IN_REPOSITORY = `${repository}/blob/main/`;

/** The pages in the order of docs/README.md, in its sections; then whatever that does not name, and the reference. */
export function sidebar(): DefaultTheme.SidebarItem[] {
  const sections: { text: string; items: { text: string; link: string }[] }[] = [
    { text: 'Begin', items: [{ text: 'The queue, live', link: '/live' }] },
  ];
  const named = new Set(['docs/README.md']);
  for (const line of readFileSync(join(root, 'docs/README.md'), 'utf8').split('\n')) {
    const section = /^## (.+)$/.exec(line)?.[1];
    const [, text, path] = /^- \[([^\]]+)\]\(([^)#]+)\)/.exec(line) ?? [];
    if (text !== undefined && path !== undefined) {
      const file = path.startsWith(IN_REPOSITORY)
        ? path.slice(IN_REPOSITORY.length)
        : posix.join('docs', path);
      const page = pageAt(file);
      if (page === undefined) continue;
      named.add(file);
      sections.at(-1)?.items.push({ text, link: `/${page}` });
    } else if (section !== undefined) sections.push({ text: section, items: [] });
  }
  const unnamed = filesIn('docs').filter((file) => !named.has(file));
  // Several have the title of a guide, so they need a heading of their own.
  const decisions = unnamed.filter((file) => file.startsWith('docs/decisions/'));
  sections.push({ text: 'More', items: unnamed.filter((file) => !decisions.includes(file)).map(itemOf) });
  sections.push({ text: 'Decisions', items: decisions.map(itemOf) });
  sections.push({ text: 'API reference', items: filesIn('site/api').map(itemOf) });
  sections.push({
    text: 'Project',
    items: ['CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md'].map(itemOf),
  });
  return sections.filter(({ items }) => items.length > 0);
}

function filesIn(folder: string): string[] {
  const paths = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' });
  return paths
    .filter((path) => path.endsWith('.md'))
    .map((path) => posix.join(folder, path))
    .sort();
}

/** An item by the page's title. */
function itemOf(file: string): { text: string; link: string } {
  const text = readFileSync(join(root, file), 'utf8');
  const title = /^# (.*)$/m.exec(text)?.[1] ?? file;
  return { text: title.replaceAll('\\', ''), link: `/${pageAt(file)}` };
}
