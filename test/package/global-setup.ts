import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { packLibrary } from './support/pack.ts';
import { createProject } from './support/project.ts';
import { installTools } from './support/tools.ts';
import { DRIZZLE_VERSIONS, type DrizzleMajor } from './support/versions.ts';

/** The library as its users get it. */
export interface Packed {
  readonly tarball: string;
  /** The paths in it, sorted. */
  readonly files: readonly string[];
  /** A project for each major of drizzle-orm that had nothing before the tarball was installed in it. */
  readonly projects: Readonly<Record<DrizzleMajor, string>>;
}

declare module 'vitest' {
  interface ProvidedContext {
    packed: Packed;
  }
}

/** Before all tests: builds and packs the library once, and installs it beside each major of drizzle-orm. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const directory = await mkdtemp(join(tmpdir(), 'drizzle-queue-package-'));
  const teardown = () => rm(directory, { recursive: true, force: true });
  try {
    await installTools();
    const { tarball, files } = await packLibrary(directory);
    const install = async (major: DrizzleMajor): Promise<string> => {
      const app = await createProject(join(directory, `with-drizzle-${major}`), tarball);
      await app.install([`drizzle-orm@${DRIZZLE_VERSIONS[major]}`, 'postgres@3.4.9', '@types/node@20.19.43']);
      return app.directory;
    };
    const [older, newer] = [await install('0.45'), await install('1.0')];
    project.provide('packed', { tarball, files, projects: { '0.45': older, '1.0': newer } });
    return teardown;
  } catch (error) {
    await teardown();
    throw error;
  }
}
