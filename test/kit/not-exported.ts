import { createQueue } from 'drizzle-queue';
import { expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { kitMajor, schemaEntry, useKitProjects } from './kit-project.ts';

/** The library's entry, as text of a schema. */
export const library = JSON.stringify(schemaEntry);

interface Mistake {
  readonly what: string;
  readonly schema: string;
  /** The tables that drizzle-kit makes of it. */
  readonly made: readonly string[];
  readonly message: string;
  readonly fix: string;
}

/** Declares the tests of what an app is told whose schema lacks tables of the queue. */
export function notExported(mistakes: readonly Mistake[]): void {
  const database = useTestDatabase({ template: false });
  const createProject = useKitProjects();

  test.each(mistakes)(
    `an app that $what is told, after drizzle-kit ${kitMajor}`,
    async ({ schema, made, message, fix }) => {
      const { client, db } = database;
      await client`drop schema public cascade`;
      await client`drop schema if exists drizzle cascade`;
      await client`create schema public`;
      const project = await createProject({ schema, databaseUrl: database.url });
      await project.generate();
      // Without a migration there may be nothing to read.
      await project.migrate().catch(() => undefined);
      const rows = await client<{ name: string }[]>`
    select tablename::text as name from pg_tables where schemaname = 'public' order by 1`;
      expect(rows.map(({ name }) => name)).toEqual(made);

      const [finding] = await createQueue().check(db);
      expect(finding).toMatchObject({ code: 'tables-missing', severity: 'error' });
      expect(finding?.message).toContain(message);
      expect(finding?.fix).toContain(fix);
      expect(finding?.fix).toContain("must have `export * from 'drizzle-queue/schema'` at its top level");
    },
    200_000,
  );
}
