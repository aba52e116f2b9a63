import { describe, expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { tools } from './support/tools.ts';
import { useFixture } from './support/use-fixture.ts';
import { DRIZZLE_MAJORS, DRIZZLE_VERSIONS } from './support/versions.ts';

const programs = {
  // Node.js 20 has no such flag; 22 comes from npm.
  'strip-types': [
    tools.node22,
    '--experimental-strip-types',
    '--disable-warning=ExperimentalWarning',
    'app.ts',
  ],
  bun: [tools.bun, 'run', 'app.ts'],
};

describe.each(DRIZZLE_MAJORS)('with drizzle-orm %s', (major) => {
  describe.each(Object.entries(programs))('the project %s', (name, [program = '', ...args]) => {
    const database = useTestDatabase();
    const project = useFixture(name, [`drizzle-orm@${DRIZZLE_VERSIONS[major]}`]);

    test('enqueues, rolls back, works, and finds nothing wrong', async () => {
      const said = await project().run(program, args, { DATABASE_URL: database.url });
      expect(JSON.parse(said)).toEqual({
        waiting: 1,
        output: { greeting: 'Hello Ada' },
        live: 0,
        errors: [],
      });
    });
  });
});
