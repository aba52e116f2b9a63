import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, inject, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import type {} from './global-setup.ts';
import { createProject, type Project } from './support/project.ts';
import { DRIZZLE_KIT_VERSIONS, DRIZZLE_MAJORS, DRIZZLE_VERSIONS } from './support/versions.ts';

const { tarball, projects } = inject('packed');

/** The SQL of a project's migrations, oldest first. */
async function migrationsOf({ directory }: Project): Promise<string[]> {
  const folder = join(directory, 'drizzle');
  const names = await readdir(folder, { recursive: true });
  const paths = names.filter((name) => name.endsWith('.sql')).sort();
  return await Promise.all(paths.map((path) => readFile(join(folder, path), 'utf8')));
}

describe.each(DRIZZLE_MAJORS)('drizzle-kit that belongs to drizzle-orm %s', (major) => {
  // 0.31 loads a schema, and what it imports, by `require`; 1.0 as the project's type says.
  describe.each(['commonjs', 'module'])('in a project of the type %s', (type) => {
    const database = useTestDatabase({ template: false });
    const directory = join(projects[major], '..', `kit-${major}-${type}`);
    let project: Project;

    beforeAll(async () => {
      // What an interrupted run has left.
      await rm(directory, { recursive: true, force: true });
      project = await createProject(directory, tarball);
      await project.write('package.json', JSON.stringify({ private: true, version: '0.0.0', type }));
      await project.install([
        `drizzle-orm@${DRIZZLE_VERSIONS[major]}`,
        `drizzle-kit@${DRIZZLE_KIT_VERSIONS[major]}`,
        'postgres@3.4.9',
      ]);
      return () => rm(directory, { recursive: true, force: true });
    });

    const kit = (command: string) => project.run('npx', ['drizzle-kit', command]);

    test('makes of the exported schema one migration, and then nothing, and carries it out', async () => {
      await project.write('schema.ts', "export * from 'drizzle-queue/schema';\n");
      const config = {
        dialect: 'postgresql',
        schema: './schema.ts',
        out: './drizzle',
        dbCredentials: { url: database.url },
      };
      await project.write('drizzle.config.ts', `export default ${JSON.stringify(config)};\n`);

      await kit('generate');
      const migrations = await migrationsOf(project);
      expect(migrations).toHaveLength(1);
      expect(migrations[0]?.match(/CREATE TABLE "\w+"/g)?.sort()).toEqual([
        'CREATE TABLE "queue_jobs"',
        'CREATE TABLE "queue_pauses"',
        'CREATE TABLE "queue_results"',
        'CREATE TABLE "queue_workers"',
      ]);
      expect(await kit('generate')).toContain('No schema changes, nothing to migrate');
      expect(await migrationsOf(project)).toEqual(migrations);

      await kit('migrate');
      const rows = await database.client<{ name: string }[]>`
        select tablename::text as name from pg_tables where schemaname = 'public' order by 1`;
      expect(rows.map(({ name }) => name)).toEqual([
        'queue_jobs',
        'queue_pauses',
        'queue_results',
        'queue_workers',
      ]);
    });
  });
});
