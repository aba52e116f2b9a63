import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import type {} from './global-setup.ts';
import { createProject, installedManifest, type Project } from './support/project.ts';
import { endOf, run } from './support/run-program.ts';
import { tools } from './support/tools.ts';
import { DRIZZLE_MAJORS, DRIZZLE_VERSIONS } from './support/versions.ts';

const { tarball, projects } = inject('packed');

async function emptyProject(name: string): Promise<Project> {
  const directory = join(projects['0.45'], '..', name);
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return await createProject(directory, tarball);
}

/** The folders in which npm has put a drizzle-orm, from its lock file. */
async function drizzlesIn(directory: string): Promise<string[]> {
  const lock: { packages: object } = JSON.parse(await readFile(join(directory, 'package-lock.json'), 'utf8'));
  return Object.keys(lock.packages).filter((path) => path.endsWith('node_modules/drizzle-orm'));
}

describe('npm install of the tarball in an empty project', () => {
  test.each(DRIZZLE_MAJORS)('beside drizzle-orm %s takes that one, and no other', async (major) => {
    // The install was done before the tests, without --force and --legacy-peer-deps.
    const directory = projects[major];
    expect(await drizzlesIn(directory)).toEqual(['node_modules/drizzle-orm']);
    expect((await installedManifest(directory, 'drizzle-orm')).version).toBe(DRIZZLE_VERSIONS[major]);
    // Fails when a peer is missing or of a version that somebody does not want.
    await run('npm', ['ls', '--all'], { cwd: directory });
  });

  test('on its own brings a drizzle-orm that fits', async () => {
    const project = await emptyProject('alone');
    await project.install();
    expect(await drizzlesIn(project.directory)).toEqual(['node_modules/drizzle-orm']);
    expect((await installedManifest(project.directory, 'drizzle-orm')).version).toMatch(/^(0\.45|1\.)/);
    // The peer of one entry comes only where somebody asks for it, and the other entries do without.
    const load = (entry: string) =>
      endOf(process.execPath, ['--input-type=module', '--eval', `await import('${entry}')`], {
        cwd: project.directory,
      });
    expect(await load('drizzle-queue')).toMatchObject({ code: 0 });
    expect((await load('drizzle-queue/opentelemetry')).output).toContain(
      "Cannot find package '@opentelemetry/api'",
    );
  });

  test('beside the oldest drizzle-orm that is supported takes that one, and its types compile', async () => {
    const project = await emptyProject('oldest');
    await project.install(['drizzle-orm@0.34.1', 'pg@8', '@types/pg@8']);
    expect((await installedManifest(project.directory, 'drizzle-orm')).version).toBe('0.34.1');
    await project.write(
      'app.mts',
      `import { drizzle } from 'drizzle-orm/node-postgres';
import { pgTable, serial } from 'drizzle-orm/pg-core';
import { createQueue, createWorker, defineJob, handle, unvalidated } from 'drizzle-queue';
import { lockRows, popRows } from 'drizzle-queue/skip-locked';
import pg from 'pg';

const db = drizzle(new pg.Pool());
const users = pgTable('users', { id: serial('id').primaryKey() });
const queue = createQueue();
const greet = defineJob('greet', { payload: unvalidated<{ id: number }>() });
await db.transaction((tx) => queue.enqueue(tx, greet, { id: 1 }));
await queue.enqueueFrom(db, greet, db.select({ id: users.id }).from(users));
const [row] = await lockRows(db, users, { limit: 1 });
export const id: number | undefined = row?.id ?? (await popRows(db, users))[0]?.id;
export const worker = createWorker(db, {
  queue,
  handlers: [handle(greet, ({ payload, complete }) => db.transaction((tx) => complete(tx)).then(() => payload.id))],
});
`,
    );
    const options = ['--strict', '--noEmit', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2022'];
    const compiler = tools.typescript['5.9'];
    const { code, output } = await endOf(
      process.execPath,
      [compiler, ...options, '--types', 'pg', 'app.mts'],
      {
        cwd: project.directory,
      },
    );
    expect({ code, output }).toEqual({ code: 0, output: '' });
  });

  test('beside a drizzle-orm that is too old is refused', async () => {
    const project = await emptyProject('too-old');
    const { code, output } = await project.tryInstall(['drizzle-orm@0.33.0']);
    expect(code).not.toBe(0);
    expect(output).toContain('ERESOLVE');
  });
});
