import { existsSync, statSync } from 'node:fs';
import { join, posix } from 'node:path';
import type { MarkdownRenderer } from 'vitepress';
import { pageAt } from './pages.ts';
import { repository, root } from './repository.ts';

/** A target outside of the site, or a heading of the same page. */
const ELSEWHERE = /^([a-z][a-z+.-]*:|#|\/)/i;

/** Such links are in pages that are packed, to files that are not. */
const IN_REPOSITORY = new RegExp(`^${repository}/(blob|tree)/main/`);
/** And such are the pictures in them. */
const PICTURES = `${repository.replace('//github.com/', '//raw.githubusercontent.com/')}/main/`;

/**
 * Links in pages lead where they do on GitHub: to the page of the site, or else to the file in the repository.
 * Pictures are those of the site.
 * @throws Error when there is no such file
 */
export function linksAsOnGitHub(markdown: MarkdownRenderer): void {
  markdown.core.ruler.push('links-as-on-github', ({ tokens, env }) => {
    const path: unknown = env.realPath ?? env.path;
    // A heading alone, of which the title is made.
    if (typeof path !== 'string') return;
    const from = posix.dirname(posix.relative(root, path));
    for (const { children } of tokens) {
      for (const token of children ?? []) {
        if (token.type === 'image') token.attrSet('src', pictureOf(from, token.attrGet('src') ?? ''));
        if (token.type !== 'link_open') continue;
        const href = token.attrGet('href') ?? '';
        if (IN_REPOSITORY.test(href)) {
          token.attrSet('href', targetOf('.', href.replace(IN_REPOSITORY, '')));
        } else if (!ELSEWHERE.test(href)) token.attrSet('href', targetOf(from, href));
      }
    }
  });
}

function pictureOf(from: string, src: string): string {
  return src.startsWith(PICTURES) ? posix.relative(from, src.slice(PICTURES.length)) : src;
}

function targetOf(from: string, href: string): string {
  const [path = '', anchor] = href.split('#');
  const file = posix.normalize(posix.join(from, decodeURI(path)));
  const behind = anchor === undefined ? '' : `#${anchor}`;
  const page = pageAt(file);
  if (page !== undefined) return `/${page}${behind}`;
  if (!existsSync(join(root, file))) throw new Error(`A page in ${from} links to ${file}, which is nowhere`);
  const kind = statSync(join(root, file)).isDirectory() ? 'tree' : 'blob';
  return `${repository}/${kind}/main/${file.replace(/\/$/, '')}${behind}`;
}

/** As GitHub makes it: lower case, no punctuation, hyphens for spaces. The pages are written for that. */
export function anchorOf(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');
}
