import { describe, expect, test } from 'vitest';
import { checkTypes } from './check-types.ts';
import { withoutFollowed } from './followed-guides.ts';
import { parsePage, readPages } from './pages.ts';

/** The compiler needs seconds, and other test files want the processor too. */
const PATIENCE_MS = 120_000;

const project = 'tsconfig.json';

// Another run, with 1.0, would only repeat it. What that makes of the pages is in `code-blocks-1.0.slow.test.ts`.
describe.skipIf(process.env.DRIZZLE === 'v1')('the code in the documentation', () => {
  test('compiles with drizzle-orm 0.45', { timeout: PATIENCE_MS }, () => {
    const pages = withoutFollowed(readPages());
    expect(pages.flatMap(({ blocks }) => blocks).filter(({ language }) => language === 'ts')).not.toEqual([]);
    expect(checkTypes(pages, project)).toEqual([]);
  });
});

describe.skipIf(process.env.DRIZZLE === 'v1')('the check', { timeout: PATIENCE_MS }, () => {
  test('reports a mistake with its page and line', () => {
    const page = parsePage(
      'docs/page.md',
      [
        '```ts',
        "await queue.enqueue(db, sendReceipt, { orderId: 'one' });",
        '```',
        '```ts',
        '// src/jobs.ts',
        "export const other = defineJob('other');",
        '```',
        '```ts',
        "import { other } from './jobs';",
        'const { id } = await queue.enqueue(db, other);',
        'await queue.find(db, other, String(id));',
        'await queue.find(db, nonsense, id);',
        '```',
        '```ts',
        'const unfinished = ;',
        '```',
      ].join('\n'),
    );
    expect(checkTypes([page], project)).toEqual([
      expect.stringMatching(/^docs\/page\.md:2: Type 'string' is not assignable to type 'number'/),
      expect.stringMatching(/^docs\/page\.md:11: /),
      expect.stringMatching(/^docs\/page\.md:12: Cannot find name 'nonsense'/),
      expect.stringMatching(/^docs\/page\.md:15: Expression expected/),
    ]);
  });

  test('lets blocks of one page build on each other, and on the prelude', () => {
    const page = parsePage(
      'docs/page.md',
      [
        '```ts',
        '// src/jobs.ts',
        'export const queue = createQueue();',
        "export const sendReceipt = defineJob('send-receipt', { payload: unvalidated<{ path: string }>() });",
        '```',
        '```ts',
        '// The page has a job of this name, which comes before the one of the prelude.',
        "await queue.enqueue(db, sendReceipt, { path: '/' });",
        '```',
        '```ts',
        "const sendReceipt = defineJob('send-receipt');",
        'await queue.enqueue(db, sendReceipt);',
        '```',
      ].join('\n'),
    );
    expect(checkTypes([page], project)).toEqual([]);
  });

  test('lets no block escape', () => {
    const page = parsePage(
      'docs/page.md',
      [
        ...['```typescript', 'nonsense;', '```'],
        ...['```ts ignore', 'nonsense;', '```'],
        ...['```ts ignore: it is about a mistake', 'nonsense;', '```'],
        ...['```ts', '// a.ts', '```', '```ts', '// a.ts', '```'],
      ].join('\n'),
    );
    expect(checkTypes([page], project)).toEqual([
      'docs/page.md:1: write ```ts instead of ```typescript, so that it is checked',
      'docs/page.md:4: behind ```ts there may stand only "ignore: REASON", not "ignore"',
      'docs/page.md:14: the page has another a.ts',
    ]);
  });
});

test('a block that is not closed is a mistake', () => {
  expect(() => parsePage('docs/page.md', 'text\n```ts\nawait 1;')).toThrow(
    'docs/page.md:2: this block is not closed',
  );
});
