import { describe, expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { useFixture } from './support/use-fixture.ts';
import { DRIZZLE_MAJORS, DRIZZLE_VERSIONS } from './support/versions.ts';

describe.each(DRIZZLE_MAJORS)('with drizzle-orm %s', (major) => {
  const database = useTestDatabase();
  const project = useFixture('vitest', [`drizzle-orm@${DRIZZLE_VERSIONS[major]}`]);

  test("an app's own tests run in Vitest", async () => {
    const said = await project().run('npx', ['vitest', 'run'], { DATABASE_URL: database.url });
    expect(said).toMatch(/Tests +5 passed \(5\)/);
  });
});
