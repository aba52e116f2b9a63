import { from } from 'drizzle-queue/import';
import { expect, test } from 'vitest';
import { openSource } from '../../src/entries/cli/import-source.ts';

test.each([
  ['constructor', {}],
  ['constructor', { schema: 'x' }],
  ['sidekiq', {}],
])('%s is no system, with %j', async (system, flags) => {
  await expect(openSource(from, system, flags)).rejects.toThrow('import takes pg-boss');
});
