import { expect, test } from 'vitest';
import { checkTypes } from './check-types.ts';
import { withoutFollowed } from './followed-guides.ts';
import { readPages } from './pages.ts';

// The rest, and drizzle-orm 0.45, are in `code-blocks.slow.test.ts`.
test.skipIf(process.env.DRIZZLE === 'v1')(
  'the code in the documentation compiles with drizzle-orm 1.0',
  { timeout: 240_000 },
  () => expect(checkTypes(withoutFollowed(readPages()), 'tsconfig.v1.json')).toEqual([]),
);
