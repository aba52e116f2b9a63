import { describe, expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { tools } from './support/tools.ts';
import { useFixture } from './support/use-fixture.ts';
import { DRIZZLE_MAJORS, DRIZZLE_VERSIONS } from './support/versions.ts';

/** How each counts the tests that have passed. */
const runners = [
  ['node-test', process.execPath, ['--test', '--test-reporter=tap', 'kit.test.cjs'], /^# pass 2$/m],
  ['bun', tools.bun, ['test', 'kit.test.ts'], undefined],
] as const;

describe.each(DRIZZLE_MAJORS)('with drizzle-orm %s', (major) => {
  describe.each(runners)('the tests of the project %s', (name, program, args, passed) => {
    const database = useTestDatabase();
    const project = useFixture(name, [`drizzle-orm@${DRIZZLE_VERSIONS[major]}`]);

    test('pass', async () => {
      // It rejects when the runner ends with a failure. Bun counts on stderr.
      const said = await project().run(program, [...args], { DATABASE_URL: database.url });
      if (passed !== undefined) expect(said).toMatch(passed);
    });
  });
});
