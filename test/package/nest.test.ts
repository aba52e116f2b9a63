import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { endOf } from './support/run-program.ts';
import { useFixture } from './support/use-fixture.ts';
import { DRIZZLE_MAJORS, DRIZZLE_VERSIONS } from './support/versions.ts';

describe.each(DRIZZLE_MAJORS)('with drizzle-orm %s', (major) => {
  const database = useTestDatabase();
  const project = useFixture('nest', [`drizzle-orm@${DRIZZLE_VERSIONS[major]}`]);

  test('a stock NestJS project (CommonJS, node10) compiles, and works its jobs off', async () => {
    await project().run('npm', ['run', 'build']);
    // CommonJS it is: the package is loaded by require.
    const compiled = await readFile(join(project().directory, 'dist/jobs.js'), 'utf8');
    expect(compiled).toContain('require("drizzle-queue")');

    const said = await project().run(process.execPath, ['dist/main.js'], { DATABASE_URL: database.url });
    expect(JSON.parse(said)).toEqual({
      isOrdersJob: true,
      receiptId: expect.stringMatching(/^receipt-\d+$/),
      errors: [],
    });
  });

  test('its Jest tests pass by ts-jest, which compiles them with the same tsconfig', async () => {
    await database.client`create table if not exists orders (
      id int primary key generated always as identity, email text not null, receipt_id text)`;
    const { code, output } = await endOf('npx', ['jest', '--ci'], {
      cwd: project().directory,
      env: { DATABASE_URL: database.url },
    });
    expect(output).toContain('2 passed, 2 total');
    expect(code).toBe(0);
  });
});
