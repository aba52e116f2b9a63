import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The root of the repository. */
export const root = fileURLToPath(new URL('../..', import.meta.url));

/** A fenced block of code. */
export interface CodeBlock {
  /** What stands behind the fence, such as `ts`. */
  readonly language: string;
  /** What stands behind the language. */
  readonly info: string;
  readonly code: string;
  /** The line of the page in which the code begins, counted from 1. */
  readonly line: number;
}

export interface Link {
  readonly target: string;
  readonly line: number;
}

/** A page of the documentation. */
export interface Page {
  /** Relative to the root, such as `docs/handlers.md`. */
  readonly path: string;
  readonly blocks: readonly CodeBlock[];
  readonly links: readonly Link[];
  /** The names that a link behind `#` may have. */
  readonly anchors: ReadonlySet<string>;
}

/** All pages: the README, the changelog, and whatever is in `docs/`. */
export function readPages(): Page[] {
  const docs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' });
  const paths = docs.filter((path) => path.endsWith('.md')).map((path) => posix.join('docs', path));
  return ['README.md', 'CHANGELOG.md', ...paths.sort()].map((path) =>
    parsePage(path, readFileSync(join(root, path), 'utf8')),
  );
}

/** @throws SyntaxError when a fence is not closed */
export function parsePage(path: string, text: string): Page {
  const blocks: CodeBlock[] = [];
  const links: Link[] = [];
  const anchors = new Set<string>();
  let open: { language: string; info: string; indent: number; line: number; code: string[] } | undefined;
  for (const [index, line] of text.split('\n').entries()) {
    const fence = /^( *)```(\S*) *(.*)$/.exec(line);
    if (open !== undefined) {
      if (fence === null) open.code.push(line.slice(open.indent));
      else {
        blocks.push({ ...open, code: open.code.join('\n') });
        open = undefined;
      }
    } else if (fence !== null) {
      const [, indent = '', language = '', info = ''] = fence;
      open = { language, info, indent: indent.length, line: index + 2, code: [] };
    } else {
      const heading = /^#+ (.*)$/.exec(line)?.[1];
      if (heading !== undefined) anchors.add(anchorOf(heading));
      // What stands in backquotes is no link.
      for (const [, target = ''] of line.replaceAll(/`[^`]*`/g, '``').matchAll(/\]\(([^)\s]+)\)/g)) {
        links.push({ target, line: index + 1 });
      }
    }
  }
  if (open !== undefined) throw new SyntaxError(`${path}:${open.line - 1}: this block is not closed`);
  return { path, blocks, links, anchors };
}

/** As GitHub makes it: lower case, no punctuation, hyphens for spaces. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');
}
