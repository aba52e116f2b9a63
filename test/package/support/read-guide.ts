import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parsePage, root } from '../../docs/pages.ts';

/** Something that a guide tells its reader to do. */
export type Step =
  | { readonly do: 'write'; readonly path: string; readonly text: string; readonly at: string }
  | { readonly do: 'run'; readonly command: string; readonly keepsRunning: boolean; readonly at: string };

/** The steps of a guide by its second-level headings, in the order of the page. */
export type Guide = ReadonlyMap<string, readonly Step[]>;

/**
 * Reads a page of `docs/guides`.
 *
 * - A block whose first line is a comment with a path is that file. Where a language has no comments, the line before the block is the path
 *   and a colon.
 * - Each line of a `sh` block is a command. One whose comment speaks of a terminal keeps running.
 * - ` ```text ` and ` ```sql ` are not steps, and neither is what says ` ignore: REASON `. Nothing else is left out.
 *
 * @throws Error for a block of which nobody can tell what file it is
 */
export function readGuide(name: string): Guide {
  const path = `docs/guides/${name}.md`;
  const text = readFileSync(join(root, path), 'utf8');
  const lines = text.split('\n');
  const { blocks } = parsePage(path, text);
  const headings = lines.flatMap((line, index) => {
    const heading = /^## (.*)$/.exec(line)?.[1];
    return heading === undefined ? [] : [{ heading, line: index + 1 }];
  });
  const guide = new Map<string, Step[]>(headings.map(({ heading }) => [heading, []]));
  for (const { language, info, code, line } of blocks) {
    if (language === 'text' || language === 'sql' || info.startsWith('ignore: ')) continue;
    const at = `${path}:${line}`;
    const heading = headings.findLast((candidate) => candidate.line < line)?.heading ?? '';
    const steps = guide.get(heading);
    if (steps === undefined) throw new Error(`${at}: this block stands before the first heading`);
    if (language === 'sh') {
      steps.push(...commandsIn(code, at));
      continue;
    }
    const file = titleIn(code) ?? /^`([^`]+)`:$/.exec(lineBefore(lines, line - 2))?.[1];
    if (file === undefined) throw new Error(`${at}: this block says in no comment which file it is`);
    steps.push({ do: 'write', path: file, text: `${code}\n`, at });
  }
  return guide;
}

function commandsIn(code: string, at: string): Step[] {
  const whole = code.replaceAll(/ *\\\n\s*/g, ' ').split('\n');
  return whole
    .map((line) => /^(?<command>.*?)(?: +# (?<comment>.*))?$/.exec(line)?.groups ?? {})
    .filter(({ command = '' }) => command.trim() !== '' && !command.startsWith('#'))
    .map(({ command = '', comment = '' }) => ({
      do: 'run',
      command,
      keepsRunning: /\bterminal\b/.test(comment),
      at,
    }));
}

/** The path that a comment in the first line names. */
function titleIn(code: string): string | undefined {
  const [first = ''] = code.split('\n', 1);
  return /^(?:\/\/|#|<!--) ([\w./$[\]@+-]+\.\w+|Dockerfile|Procfile)(?: -->)?$/.exec(first)?.[1];
}

/** The last line with text before a fence. */
function lineBefore(lines: readonly string[], fence: number): string {
  return lines.slice(0, fence).findLast((line) => line.trim() !== '') ?? '';
}
