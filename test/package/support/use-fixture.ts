import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, inject } from 'vitest';
// For the type of what `inject` returns.
import type {} from '../global-setup.ts';
import { openProject, type Project } from './project.ts';

/**
 * Gives the tests of a file a copy of the project in `fixtures/NAME`, with its own packages and the tarball installed by npm.
 *
 * @param name of the folder, or its path from there
 * @param packages to be installed in place of what its `package.json` says
 */
export function useFixture(name: string, packages: readonly string[] = []): () => Project {
  let project: Project | undefined;
  let directory: string | undefined;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), `drizzle-queue-${basename(name)}-`));
    await cp(fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url)), directory, {
      recursive: true,
      // What somebody has installed or built in the repository's copy is not part of it.
      filter: (path) => !/\/(node_modules|dist|\.next)$/.test(path),
    });
    project = openProject(directory, inject('packed').tarball);
    await project.install(packages);
  });
  afterAll(async () => {
    if (directory !== undefined) await rm(directory, { recursive: true, force: true });
  });
  return () => {
    if (project === undefined) throw new Error('the project exists only while the tests run');
    return project;
  };
}
