import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import type {} from './global-setup.ts';
import { createProject, installedManifest, type Project } from './support/project.ts';
import { endOf, run } from './support/run-program.ts';
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

  test('beside a drizzle-orm that is too old is refused', async () => {
    const project = await emptyProject('too-old');
    const { code, output } = await project.tryInstall(['drizzle-orm@0.44.7']);
    expect(code).not.toBe(0);
    expect(output).toContain('ERESOLVE');
  });
});
