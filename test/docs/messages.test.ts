import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from './pages.ts';

/** What begins like this in the guide's headings is said by Postgres, a driver, npm, Node.js or drizzle-kit. */
const OTHERS =
  /^(There's a duplicate index name|schema "work" does not exist|permission denied for|new row violates|could not serialize|terminating connection|Connection terminated|TypeError: Cannot read|Top-level await|… expected date)/;

const source = sourceTexts();

test('the messages in the headings of the troubleshooting guide are those of the library', () => {
  const guide = readFileSync(join(root, 'docs/troubleshooting.md'), 'utf8');
  const messages = headingsByMessage(guide);
  expect(messages.length).toBeGreaterThan(20);
  expect(messages.filter((message) => !isSaid(message))).toEqual([]);
});

test('a message that nobody says is found', () => {
  expect(
    headingsByMessage('## By message\n### `A: one … two`, and `three`\n## By symptom\n### `no`'),
  ).toEqual(['A: one … two', 'three']);
  expect(isSaid('LeaseLostError: Job … is no longer held by this worker')).toBe(true);
  expect(isSaid('NoSuchError: Job … is no longer held by this worker')).toBe(false);
  expect(isSaid('LeaseLostError: Job … is not held by this worker')).toBe(false);
});

/** Whatever stands in backquotes in the headings under "By message". */
function headingsByMessage(guide: string): string[] {
  const [, section = ''] = guide.split('## By message\n');
  const [messages = ''] = section.split('\n## ');
  const headings = messages.match(/^### .*$/gm) ?? [];
  return headings.flatMap((heading) => [...heading.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text));
}

/** Whether the class is one of ours, and all between what varies stands in the sources. */
function isSaid(message: string): boolean {
  const [, name, text = ''] = /^(?:(\w+(?:Error|Warning)): )?(.*)$/.exec(message) ?? [];
  if (OTHERS.test(message) || OTHERS.test(text)) return true;
  if (name !== undefined && !source.includes(name)) return false;
  // Names and numbers are examples.
  const parts = text.replaceAll(/"[^"]*"|'…'|\d+/g, '…').split('…');
  return parts.every((part) => source.includes(part.trim()));
}

/** The sources, with texts that are put together from several lines in one piece, and what is filled in as `…`. */
function sourceTexts(): string {
  const folder = join(root, 'src');
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('.ts'),
  );
  const all = paths.map((path) => readFileSync(join(folder, path), 'utf8')).join('\n');
  return all
    .replaceAll(/['`] \+\s*['`]/g, '')
    .replaceAll('\\\\', '\\')
    .replaceAll(/\$\{[^}]*\}/g, '…');
}

/** Of these the subject is named instead: it tells what was wrong better than the function that met it. */
const NAMES_NO_FUNCTION: Readonly<Record<string, string>> = {
  'A completed attempt finishes its job': 'never seen, unless there is a defect',
  'A completion has lost no job': 'never seen, unless there is a defect',
  'A job is in a group of tables that have none': 'never seen, unless there is a defect',
  'Another transaction is setting this limit right now. Try again.': 'shown in the dashboard',
  'BatchError takes a Map of at least one error': 'the name of the class',
  'It has used': 'why a job was not imported, which the report says of it',
  'It is due at': 'why a job was not imported, which the report says of it',
  'No handler for a claimed job of kind': 'never seen, unless there is a defect',
  'The batch handler of': 'never seen, unless there is a defect',
  'The queue has no table of keys': 'never seen, unless there is a defect',
};

test('what refuses an argument names the function or the option first', () => {
  const begun = /new (?:TypeError|RangeError|UnknownKindError)\(\s*['"`]([A-Z][^`'"$\n]*)/g;
  const messages = [...source.matchAll(begun)].map(([, message = '']) => message);
  const isAllowed = (message: string) => allowed.some((text) => message.startsWith(text));
  const allowed = Object.keys(NAMES_NO_FUNCTION);
  expect(messages.filter((message) => !isAllowed(message))).toEqual([]);
  expect(allowed.filter((text) => !messages.some((message) => message.startsWith(text)))).toEqual([]);
});
