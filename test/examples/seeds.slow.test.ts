import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createDatabase } from '../support/databases.ts';
import { type PostgresServer, startPostgres } from '../support/embedded-postgres.ts';
import { hasPostgres } from '../support/postgres-binaries.ts';
import { lines, names, outputs, programs, run } from './seed-programs.ts';

describe.skipIf(!hasPostgres('14'))('on PostgreSQL 14', () => {
  let server: PostgresServer | undefined;
  beforeAll(async () => {
    server = await startPostgres({ version: '14' });
  });
  afterAll(() => server?.stop());

  test.each(names)('the design %s works', async (name) => {
    const database = await createDatabase(server?.url ?? '');
    expect(await lines(programs[name], database)).toEqual(outputs[name]);
  });
});

// A program of its own uses drizzle-orm 0.45 whatever this run was started for.
test.skipIf(process.env.DRIZZLE === 'v1').each(names)(
  '%s exits with 0, as it is run by hand',
  async (name) => {
    const { code, stdout, stderr } = await run(`../../examples/seeds/${name}.ts`);
    expect(stdout.trimEnd().split('\n'), stderr).toEqual(outputs[name]);
    expect(code).toBe(0);
  },
);
