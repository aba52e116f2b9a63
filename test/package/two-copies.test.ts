import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, inject, test } from 'vitest';
import { createTestDatabase } from '../support/test-database.ts';
import type {} from './global-setup.ts';
import { run } from './support/run-program.ts';
import { DRIZZLE_MAJORS } from './support/versions.ts';

const { projects } = inject('packed');
const program = fileURLToPath(new URL('fixtures/two-copies/two-copies.mjs', import.meta.url));

describe.each(DRIZZLE_MAJORS)('with drizzle-orm %s', (major) => {
  test('a process that has the ES modules and the CommonJS files at once', async () => {
    const database = await createTestDatabase();
    try {
      await cp(program, join(projects[major], 'two-copies.mjs'));
      const env = { DATABASE_URL: database.url };
      const said = await run(process.execPath, ['two-copies.mjs'], { cwd: projects[major], env });
      const jobs = { snoozed: 'scheduled', cancelled: 'cancelled', refused: 'discarded', done: 'completed' };
      expect(JSON.parse(said)).toEqual({
        areTwoCopies: true,
        instances: {
          sameClass: true,
          base: true,
          otherClass: false,
          appsOwnOfOther: true,
          appsOwn: false,
          plainError: false,
        },
        // The definitions, handlers and queue of one, the worker of the other.
        'worker of the ES modules': jobs,
        'worker of the CommonJS files': jobs,
      });
    } finally {
      await database.drop();
    }
  });
});
